"""One target on one log: its values by all estimators, their support, and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from logeval.clicks.fitted import FittedModel
from logeval.errors import LogevalError
from logeval.replay.bootstrap import resampled
from logeval.replay.logged import Logged
from logeval.replay.values.support import COLUMNS
from logeval.replay.values.values import Predictions, Values
from logeval.running.arrays import Floats
from logeval.running.progress import Progress

if TYPE_CHECKING:
    import pandas as pd

Z = 1.959963984540054
ROUNDING = 1e-6  # of clicks per SERP; the draws are summed in single precision


class Moments:
    """Running mean and variance of columns, draw by draw; nan is left out."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.n, self.sum, self.square = np.zeros((3, *shape))

    def add(self, x: Floats) -> None:
        """Draws in the last axis, centred near 0."""
        there = np.isfinite(x)
        x = np.where(there, x, 0.0)
        self.n += there.sum(axis=-1)
        self.sum += x.sum(axis=-1)
        self.square += (x**2).sum(axis=-1)

    def half_width(self, normal: bool) -> Floats:
        """1.96 (or Student's quantile, for few draws) standard deviations; nan without draws."""
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = (self.square - self.sum**2 / self.n) / (self.n - 1)
            quantile = Z if normal else stdtrit(self.n - 1, 0.975)
            return np.where(self.n > 1, quantile * np.sqrt(np.maximum(variance, 0.0)), np.nan)


class Estimate:
    """One target: its values, and what the rounds add to them.

    Arrays have the overall value in front, and then the queries, (Q + 1,).
    """

    def __init__(self, values: Values, predictions: Predictions, min_support: float = 0.0) -> None:
        self.values, self.predictions, self.min_support = values, predictions, min_support
        target, patterns = values.target, values.logged.patterns
        self.estimators, n = values.estimators, patterns.serps
        self.used = target.mass().sum(axis=1) > 0
        # those of a target that is a log are its own
        self.weight = np.where(self.used, n if target.serps is None else target.serps, 0.0)
        self.share = self.weight / self.weight.sum()
        value, logged = self._all(patterns.count[:, None], predictions)
        self.value, self.logged = value[:, :, 0], logged[:, 0]
        lists = any(e.LEVEL == "list" for e in self.estimators)
        prefixes = values.prefix_support() if lists else None
        self.support = []
        for e in self.estimators:
            found, at = values.support(e, predictions), prefixes if e.LEVEL == "list" else None
            self.support.append(
                dict.fromkeys(COLUMNS, np.full(values.Q + 1, np.nan))
                if found is None
                else found.columns(n, self.share, min_support, at)
            )
        shape = (2, *self.value.shape)  # of the values, and of their differences to the log
        self.rounds, self.refits = Moments(shape), Moments(shape)

    def check_support(self, log: Path) -> None:
        """Raise where too little of the target was ever shown."""
        enough, queries = self.min_support, self.values.logged.patterns.queries
        low = [
            (s["support"][0], e, s)
            for e, s in zip(self.estimators, self.support, strict=True)
            if s["support"][0] < enough
        ]
        if not low:
            return
        _, _, s = min(low, key=lambda each: each[0])
        lacking = [q for q in np.argsort(-self.share) if self.used[q]]
        lacking = [q for q in lacking if s["support"][1 + q] < enough]
        where = ", ".join(
            f"{queries[q]} up to K = {s['supported_positions'][1 + q]}" for q in lacking[:8]
        )
        more = f" and {len(lacking) - 8} more" if len(lacking) > 8 else ""
        raise LogevalError(
            f"{log}: too little of the target {self.values.target.name} was ever shown: "
            f"support {', '.join(f'{e} {share:.0%}' for share, e, _ in low)}, below {enough:.0%}; "
            f"queries without it, and up to which K they have it: {where}{more}; ask for fewer "
            "positions, take another estimator, or use force"
        )

    def _with_overall(self, values: Floats, n: Floats) -> Floats:
        """(Q, B) values with the overall value in front, (Q + 1, B)."""
        fixed = self.values.target.serps is not None
        weight = np.where(self.used[:, None], self.weight[:, None] if fixed else n, 0.0)
        weight = np.where(np.isfinite(values), weight, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            overall = (weight * np.nan_to_num(values)).sum(axis=0) / weight.sum(axis=0)
        return np.concatenate([overall[None], values])

    def _all(self, W: Floats, predictions: Predictions) -> tuple[Floats, Floats]:
        """The values (E, Q + 1, B) in logs W (P, B), and what the logger earned (Q + 1, B)."""
        n, patterns = self.values.serps(W), self.values.logged.patterns
        clicks = patterns.clicks[:, : self.values.target.K].sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            logged = self.values.serps(W * clicks[:, None].astype(np.float32)) / n
        found = self.values.values(W, predictions).values()
        return np.stack([self._with_overall(v, n) for v in found]), self._with_overall(logged, n)

    def add(self, to: Moments, W: Floats, predictions: Predictions) -> None:
        """Resampled logs W (P, B), to the rounds or to the refits."""
        value, logged = self._all(W, predictions)
        paired = value - logged - (self.value - self.logged)[:, :, None]
        to.add(np.stack([value - self.value[:, :, None], paired]))

    def half_widths(self) -> tuple[Floats, Floats]:
        """Half of the 95% intervals of the values, and of their differences to the log.

        nan where all draws agree: a query without a click on what the target shows is worth 0 in
        every resampled log, which does not tell how far off that is.
        """
        half = self.rounds.half_width(True)
        if self.refits.n.any():
            modelled = [i for i, e in enumerate(self.estimators) if e.model is not None]
            half[:, modelled] = self.refits.half_width(False)[:, modelled]
        else:  # a direct method without a refit has no interval
            half[:, [i for i, e in enumerate(self.estimators) if e.LEVEL is None]] = np.nan
        value, paired = np.where(half[0] > ROUNDING, half, np.nan)
        return value, paired

    def table(self) -> pd.DataFrame:
        """The rows: overall first, then the queries, the most frequent first."""
        import pandas as pd

        target, patterns = self.values.target, self.values.logged.patterns
        truth = np.full(1 + patterns.Q, np.nan)
        if target.clicks is not None:
            clicks = np.where(self.share > 0, target.clicks, np.nan)
            truth = self._with_overall(clicks[:, None], patterns.serps[:, None])[:, 0]
        half, paired = self.half_widths()
        serps = np.append(self.weight.sum(), self.weight).astype(np.int64)
        rows = []
        for row in [0, *(1 + np.flatnonzero(self.used)).tolist()]:
            for i, e in enumerate(self.estimators):
                value, difference = self.value[i, row], self.value[i, row] - self.logged[row]
                rows.append(
                    {
                        "target": target.name,
                        "query": None if row == 0 else str(patterns.queries[row - 1]),
                        "estimator": str(e),
                        "positions": target.K,
                        "value": value,
                        "low": value - half[i, row],
                        "high": value + half[i, row],
                        "truth": truth[row],
                        "logged": self.logged[row],
                        "difference": difference,
                        "difference_low": difference - paired[i, row],
                        "difference_high": difference + paired[i, row],
                        "serps": serps[row],
                        **{name: column[row] for name, column in self.support[i].items()},
                    }
                )
        return pd.DataFrame(rows).astype({"supported_positions": "Int32", "query": object})


def add_intervals(
    estimates: Sequence[Estimate],
    whole: Logged,
    fit: Callable[[Floats], list[dict[str, FittedModel]]],
    rounds: int,
    refits: int,
    seed: int,
    quiet: bool,
) -> None:
    """What bootstrap rounds say, the same for all; some ``fit`` the click models again.

    ``whole`` is the log with whole lists, to which models are fitted.
    """
    short = estimates[0].values.logged
    assert short.fold is not None  # it is cut from the whole
    with Progress("bootstrap", rounds, "rounds", quiet) as progress:
        for W in resampled(short, rounds, seed):
            for each in estimates:
                each.add(each.rounds, W, each.predictions)
            progress.advance(W.shape[1])
    if not rounds or all(e.model is None for e in estimates[0].estimators):
        return
    with Progress("fit again", refits, "rounds", quiet) as progress:
        for W in resampled(whole, refits, seed):
            for b in range(W.shape[1]):
                weight = W[:, b].astype(np.float64)
                models = fit(weight)
                for each in estimates:
                    predictions = each.values.predictions(models)
                    each.add(each.refits, short.fold @ weight[:, None], predictions)
                progress.advance(1)
