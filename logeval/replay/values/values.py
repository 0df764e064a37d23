"""The value of a target by several estimators, for many resampled logs at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from logeval.clicks.fitted import FittedModel
from logeval.replay.estimators.estimator import Estimator, View, ratio
from logeval.replay.logged import Logged
from logeval.replay.targets.target import Target
from logeval.replay.values.cells import Cells, cells_of
from logeval.replay.values.predictions import Prediction, predict
from logeval.replay.values.support import Support
from logeval.running.arrays import Floats

Predictions = list[dict[str, Prediction]]  # by fold and click model


class Values:
    """One target on one log. ``values`` may be asked for any numbers of SERPs per pattern.

    Weights are at most ``clip``; ``smoothing`` SERPs are added to every cell. With ``folds`` parts
    of the sessions (cross-fitting) the SERPs of one get the propensities and models of the others,
    so that a SERP has no part in its own propensity.
    """

    def __init__(
        self,
        logged: Logged,
        target: Target,
        estimators: Sequence[Estimator],
        *,
        clip: float = np.inf,
        smoothing: float = 0.0,
        folds: int = 1,
    ) -> None:
        self.logged, self.target, self.estimators = logged, target, list(estimators)
        self.clip, self.smoothing, self.folds = clip, smoothing, folds
        self.Q, P = logged.patterns.Q, len(logged.patterns.count)
        one = np.ones(P, dtype=np.float32)
        at = (logged.patterns.query, np.arange(P))
        self._by_query = sparse.csr_matrix((one, at), shape=(self.Q, P))
        self.cells = {
            level: cells_of(level, logged, target)
            for level in dict.fromkeys(e.LEVEL for e in self.estimators)
            if level is not None
        }

    def predictions(self, models: list[dict[str, FittedModel]]) -> Predictions:
        """What fitted click models, by fold and name, say of the log and of the target."""
        patterns = self.logged.patterns
        return [
            {name: predict(model, patterns, self.target) for name, model in of_fold.items()}
            for of_fold in models
        ]

    def serps(self, W: Floats) -> Floats:
        """The number of SERPs of each query, (Q, B)."""
        return np.asarray(self._by_query @ W)

    def values(self, W: Floats, predictions: Predictions) -> dict[Estimator, Floats]:
        """The value of the target (Q, B) under each estimator, in the logs W (P, B).

        nan where a log has no SERP of the query.
        """
        n = self.serps(W)
        out = {}
        folded = self._folded(W)
        for estimator in self.estimators:
            total = np.zeros((self.Q, W.shape[1]))
            if estimator.LEVEL is not None:
                total = self._weighted(estimator, folded, n, predictions)
            if estimator.model is not None:
                for (mine, _), of_fold in zip(folded, predictions, strict=True):
                    share = ratio(self.serps(mine), n)
                    total = total + share * of_fold[estimator.model].value[:, None]
            out[estimator] = np.where(n > 0, total, np.nan)
        return out

    def _folded(self, W: Floats) -> list[tuple[Floats, Floats]]:
        """Of each fold its SERPs, and those that its propensities come from."""
        if self.folds == 1:
            return [(W, W)]
        mine = [W * (self.logged.part == f)[:, None] for f in range(self.folds)]
        return [(m, W - m) for m in mine]

    def _weighted(
        self,
        estimator: Estimator,
        folded: list[tuple[Floats, Floats]],
        n: Floats,
        predictions: Predictions,
    ) -> Floats:
        cells = self.cells[estimator.LEVEL or ""]
        total = weight = np.zeros((self.Q, cells.K, n.shape[1]))
        for (mine, others), of_fold in zip(folded, predictions, strict=True):
            rho = estimator.weights(self._view(estimator, cells, others, of_fold))
            rho = np.minimum(rho, self.clip)
            gain = cells.clicked @ mine
            if estimator.model is not None:
                gain = gain - cells.predicted(of_fold[estimator.model].clicks) @ mine
            total = total + cells.sums(gain * rho)
            if estimator.normalised:
                weight = weight + cells.sums((cells.shown @ mine) * rho)
        if estimator.normalised:
            by_position = ratio(total, weight) * cells.mass[:, :, None]
        else:
            by_position = ratio(total, n[:, None, :])
        return by_position.sum(axis=1)

    def _view(
        self, estimator: Estimator, cells: Cells, W: Floats, of_fold: dict[str, Prediction]
    ) -> View:
        p = cells.propensities(cells.shown @ W, self.serps(W), self.smoothing)
        examined = of_fold["pbm"].e if estimator.EXAMINATION else None
        e = None if examined is None else examined[cells.query, cells.position]
        return View(cells.h, p, cells.K, e)

    def prefix_support(self) -> Floats:
        """``supported`` of Prefix (Q, K): what List would have at a smaller K."""
        cells = cells_of("prefix", self.logged, self.target)
        seen = (cells.shown @ self.logged.patterns.count)[:, None] > 0
        return cells.sums(cells.h[:, None] * seen)[:, :, 0]

    def support(self, estimator: Estimator, predictions: Predictions) -> Support | None:
        """How the log itself supports the estimator; None for one that does not weight it."""
        if estimator.LEVEL is None:
            return None
        W = self.logged.patterns.count[:, None]
        cells = self.cells[estimator.LEVEL]
        view = self._view(estimator, cells, W, predictions[0])
        once = np.ones(len(cells.h)) if cells.first is None else cells.first
        seen = cells.h[:, None] * estimator.supported(view) * once[:, None]
        weight = square = clipped = np.zeros((self.Q, cells.K))
        largest: Floats = np.zeros(self.Q * cells.K)
        at = cells.query * cells.K + cells.position
        for (mine, others), of_fold in zip(self._folded(W), predictions, strict=True):
            rho = estimator.weights(self._view(estimator, cells, others, of_fold))
            N = cells.shown @ mine
            cut = np.minimum(rho, self.clip)
            weight = weight + cells.sums(N * cut)[:, :, 0]
            square = square + cells.sums(N * cut**2)[:, :, 0]
            clipped = clipped + cells.sums(N * (rho > self.clip))[:, :, 0]
            np.maximum.at(largest, at, (rho * (N > 0))[:, 0])
        supported = cells.sums(seen)[:, :, 0]
        largest = largest.reshape(self.Q, cells.K)
        return Support(supported, cells.mass, weight, square, clipped, largest)
