"""The value of a target by several estimators, for many resampled logs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from logeval.clicks.fitted import FittedModel
from logeval.replay.cells import Cells, cells_of
from logeval.replay.estimators.estimator import Estimator, View, ratio
from logeval.replay.logged import Logged
from logeval.replay.predictions import Prediction, examination, fit, predict
from logeval.replay.propensities import propensities
from logeval.replay.targets import Target
from logeval.running.arrays import Floats


@dataclass(frozen=True)
class Settings:
    """How the weights are made."""

    clip: float = np.inf  # M
    smoothing: float = 0.0  # SERPs added to every cell
    folds: int = 1  # parts of the sessions for cross-fitting; 1: none
    scope: str = "per-query"  # of the click models


@dataclass(frozen=True)
class Fits:
    """Click models fitted to the log, one per fold: predictions by name, and e of the PBM."""

    predictions: list[dict[str, Prediction]] = field(default_factory=list)
    examination: list[Floats] = field(default_factory=list)  # (Q, K) each


@dataclass(frozen=True)
class Figures:
    """How well the log supports an estimate, by query and position (Q, K)."""

    supported: Floats  # probability of the target that the log has shown
    mass: Floats  # probability of the target
    weight: Floats  # sum of the weights of the SERPs, clipped
    square: Floats  # sum of their squares
    clipped: Floats  # SERPs whose weight was clipped
    largest: Floats  # largest weight before clipping


def fit_models(
    estimators: Sequence[Estimator], whole: Logged, weight: Floats, settings: Settings
) -> list[dict[str, FittedModel]]:
    """The click models that the estimators need, by fold and name.

    They are fitted to ``weight`` (P,) SERPs of each pattern, of the other folds if there are any.
    """
    names = {e.model for e in estimators if e.model is not None}
    names |= {"pbm" for e in estimators if e.EXAMINATION}
    found = []
    for fold in range(settings.folds):
        mine = weight if settings.folds == 1 else weight * (whole.part != fold)
        found.append({n: fit(n, whole.patterns, mine, settings.scope) for n in sorted(names)})
    return found


class Estimation:
    """One target on one log. ``values`` may be asked for any numbers of SERPs per pattern."""

    def __init__(
        self, logged: Logged, target: Target, estimators: Sequence[Estimator], settings: Settings
    ) -> None:
        self.logged, self.target, self.settings = logged, target, settings
        self.estimators = list(estimators)
        patterns, K = logged.patterns, target.K
        self.Q = patterns.Q
        P = len(patterns.count)
        one = np.ones(P, dtype=np.float32)
        self._by_query = sparse.csr_matrix((one, (patterns.query, np.arange(P))), shape=(self.Q, P))
        items, clicks = patterns.items[:, :K], patterns.clicks[:, :K]
        p = None if logged.propensities is None else logged.propensities[:, :K]
        self.cells = {
            level: cells_of(level, items, clicks, patterns.query, target, p)
            for level in dict.fromkeys(e.LEVEL for e in self.estimators)
            if level is not None
        }

    def fits(self, models: list[dict[str, FittedModel]]) -> Fits:
        """What fitted click models, by fold and name, say of the log and of the target."""
        names = sorted({e.model for e in self.estimators if e.model is not None})
        need_e = any(e.EXAMINATION for e in self.estimators)
        patterns = self.logged.patterns
        return Fits(
            [{n: predict(of_fold[n], patterns, self.target) for n in names} for of_fold in models],
            [examination(of_fold["pbm"], patterns.queries, self.target.K) for of_fold in models]
            if need_e
            else [],
        )

    def serps(self, W: Floats) -> Floats:
        """The number of SERPs of each query, (Q, B)."""
        return np.asarray(self._by_query @ W)

    def values(self, W: Floats, fits: Fits) -> dict[Estimator, Floats]:
        """The value of the target (Q, B) under each estimator, in the logs W (P, B).

        nan where a log has no SERP of the query.
        """
        n = self.serps(W)
        out = {}
        folded = self._folded(W)
        for estimator in self.estimators:
            total = np.zeros((self.Q, W.shape[1]))
            if estimator.LEVEL is not None:
                total = self._weighted(estimator, folded, n, fits)
            if estimator.model is not None:
                for (mine, _), predictions in zip(folded, fits.predictions, strict=True):
                    share = ratio(self.serps(mine), n)
                    total = total + share * predictions[estimator.model].value[:, None]
            out[estimator] = np.where(n > 0, total, np.nan)
        return out

    def _folded(self, W: Floats) -> list[tuple[Floats, Floats]]:
        """Of each fold its SERPs, and those that its propensities come from."""
        if self.settings.folds == 1:
            return [(W, W)]
        mine = [W * (self.logged.part == f)[:, None] for f in range(self.settings.folds)]
        return [(m, W - m) for m in mine]

    def _weighted(
        self, estimator: Estimator, folded: list[tuple[Floats, Floats]], n: Floats, fits: Fits
    ) -> Floats:
        cells = self.cells[estimator.LEVEL or ""]
        total = weight = np.zeros((self.Q, cells.K, n.shape[1]))
        for fold, (mine, others) in enumerate(folded):
            rho = estimator.weights(self._view(estimator, cells, others, fits, fold))
            rho = np.minimum(rho, self.settings.clip)
            gain = cells.clicked @ mine
            if estimator.model is not None:
                predicted = fits.predictions[fold][estimator.model].clicks
                gain = gain - cells.predicted(predicted) @ mine
            total = total + cells.sums(gain * rho)
            if estimator.normalised:
                weight = weight + cells.sums((cells.shown @ mine) * rho)
        if estimator.normalised:
            by_position = ratio(total, weight) * cells.mass[:, :, None]
        else:
            by_position = ratio(total, n[:, None, :])
        return by_position.sum(axis=1)

    def _view(self, estimator: Estimator, cells: Cells, W: Floats, fits: Fits, fold: int) -> View:
        p = propensities(cells, cells.shown @ W, self.serps(W), self.settings.smoothing)
        e = None
        if estimator.EXAMINATION:
            e = fits.examination[fold][cells.query, cells.position]
        return View(cells.h, p, cells.K, e)

    def prefix_support(self) -> Floats:
        """``supported`` of Prefix (Q, K): what List would have at a smaller K."""
        patterns, K = self.logged.patterns, self.target.K
        items, clicks = patterns.items[:, :K], patterns.clicks[:, :K]
        cells = cells_of("prefix", items, clicks, patterns.query, self.target, None)
        seen = (cells.shown @ patterns.count)[:, None] > 0
        return cells.sums(cells.h[:, None] * seen)[:, :, 0]

    def figures(self, estimator: Estimator, fits: Fits) -> Figures | None:
        """How the log itself supports the estimator; None for one that does not weight it."""
        if estimator.LEVEL is None:
            return None
        W = self.logged.patterns.count[:, None]
        cells = self.cells[estimator.LEVEL]
        view = self._view(estimator, cells, W, fits, 0)
        once = np.ones(len(cells.h)) if cells.first is None else cells.first
        seen = cells.h[:, None] * estimator.supported(view) * once[:, None]
        weight = square = clipped = np.zeros((self.Q, cells.K))
        largest = np.zeros(self.Q * cells.K)
        at = cells.query * cells.K + cells.position
        for fold, (mine, others) in enumerate(self._folded(W)):
            rho = estimator.weights(self._view(estimator, cells, others, fits, fold))
            N = cells.shown @ mine
            cut = np.minimum(rho, self.settings.clip)
            weight = weight + cells.sums(N * cut)[:, :, 0]
            square = square + cells.sums(N * cut**2)[:, :, 0]
            clipped = clipped + cells.sums(N * (rho > self.settings.clip))[:, :, 0]
            np.maximum.at(largest, at, (rho * (N > 0))[:, 0])
        supported = cells.sums(seen)[:, :, 0]
        return Figures(
            supported, cells.mass, weight, square, clipped, largest.reshape(self.Q, cells.K)
        )
