"""One target on one log: its values by all estimators, their support, and their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from logeval.errors import LogevalError
from logeval.replay.estimation import Estimation, Fits
from logeval.replay.support import Support, support_of
from logeval.running.arrays import Bools, Floats

if TYPE_CHECKING:
    import pandas as pd

Z = 1.959963984540054
ROUNDING = 1e-6  # of clicks per SERP; the draws are summed in single precision


class Moments:
    """Running mean and variance of columns, draw by draw; nan is left out."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.n, self.sum, self.square = np.zeros(shape), np.zeros(shape), np.zeros(shape)

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


class Valuation:
    """One target: its values, and what the rounds add to them."""

    def __init__(
        self, estimation: Estimation, fits: Fits, log: Path, min_support: float, force: bool
    ) -> None:
        self.estimation, self.fits = estimation, fits
        target, patterns = estimation.target, estimation.logged.patterns
        W = patterns.count[:, None]
        self.n = patterns.serps
        self.fixed = target.serps  # (Q,) of a target that is a log
        used = target.mass().sum(axis=1) > 0
        self.used: Bools = used
        self.weight = np.where(used, self.n if self.fixed is None else self.fixed, 0.0)
        self.share = self.weight / self.weight.sum()
        self.value = {e: v[:, 0] for e, v in estimation.values(W, fits).items()}
        self.logged = _logged_clicks(estimation, W)[:, 0]
        figures = {e: estimation.figures(e, fits) for e in estimation.estimators}
        lists = any(e.LEVEL == "list" for e in figures)
        prefixes = estimation.prefix_support() if lists else None
        self.support = {
            e: None
            if f is None
            else support_of(
                f, self.n, self.share, min_support, prefixes if e.LEVEL == "list" else None
            )
            for e, f in figures.items()
        }
        if not force:
            self._refuse(log, min_support)
        shape = (len(self.value), estimation.Q + 1)
        self.moments, self.paired = Moments(shape), Moments(shape)
        self.refit, self.refit_paired = Moments(shape), Moments(shape)

    def _refuse(self, log: Path, enough: float) -> None:
        low = [(e, s) for e, s in self.support.items() if s and s.overall["support"] < enough]
        if not low:
            return
        queries = self.estimation.logged.patterns.queries
        _, s = min(low, key=lambda pair: pair[1].overall["support"])
        lacking = [q for q in np.argsort(-self.share) if self.used[q] and s.support[q] < enough]
        where = ", ".join(f"{queries[q]} up to K = {s.positions[q]}" for q in lacking[:8])
        more = f" and {len(lacking) - 8} more" if len(lacking) > 8 else ""
        figures = ", ".join(f"{e} {s.overall['support']:.0%}" for e, s in low)
        raise LogevalError(
            f"{log}: too little of the target {self.estimation.target.name} was ever shown: "
            f"support {figures}, below {enough:.0%}; queries without it, and up to which K they "
            f"have it: {where}{more}; ask for fewer "
            "positions, take another estimator, or use force"
        )

    def all_and_overall(self, values: Floats, n: Floats) -> Floats:
        """(Q, B) values with the overall value in front, (Q + 1, B)."""
        weight = np.where(self.used[:, None], n if self.fixed is None else self.weight[:, None], 0)
        weight = np.where(np.isfinite(values), weight, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            overall = (weight * np.nan_to_num(values)).sum(axis=0) / weight.sum(axis=0)
        return np.concatenate([overall[None], values])

    def add(self, W: Floats, fits: Fits, refit: bool) -> None:
        """Resampled logs W (P, B)."""
        n = self.estimation.serps(W)
        values = self.estimation.values(W, fits)
        logged = self.all_and_overall(_logged_clicks(self.estimation, W), n)
        at = self.logged_overall()
        moments, paired = (self.refit, self.refit_paired) if refit else (self.moments, self.paired)
        draws = np.stack([self.all_and_overall(v, n) for v in values.values()])
        centre = self.centre()
        moments.add(draws - centre[:, :, None])
        paired.add(draws - logged - (centre - at)[:, :, None])

    def centre(self) -> Floats:
        """The values themselves, (E, Q + 1)."""
        n = self.n[:, None]
        return np.stack([self.all_and_overall(v[:, None], n)[:, 0] for v in self.value.values()])

    def logged_overall(self) -> Floats:
        """The logged values, (Q + 1,)."""
        return self.all_and_overall(self.logged[:, None], self.n[:, None])[:, 0]

    def half_widths(self) -> tuple[Floats, Floats]:
        """Half of the 95% intervals of the values, and of their differences to the log.

        nan where all draws agree: a query without a click on what the target shows is worth 0 in
        every resampled log, which does not tell how far off that is.
        """
        half, paired = self.moments.half_width(True), self.paired.half_width(True)
        modelled = [i for i, e in enumerate(self.value) if e.model is not None]
        if self.refit.n.any():
            half[modelled] = self.refit.half_width(False)[modelled]
            paired[modelled] = self.refit_paired.half_width(False)[modelled]
        else:  # a direct method without a refit has no interval
            fixed = [i for i, e in enumerate(self.value) if e.LEVEL is None]
            half[fixed] = paired[fixed] = np.nan
        unknown = ~(half > ROUNDING)
        return np.where(unknown, np.nan, half), np.where(unknown, np.nan, paired)

    def table(self) -> pd.DataFrame:
        """The rows: overall first, then the queries, the most frequent first."""
        import pandas as pd

        target, queries = self.estimation.target, self.estimation.logged.patterns.queries
        centre, logged = self.centre(), self.logged_overall()
        truth = np.full(len(logged), np.nan)
        if target.clicks is not None:
            clicks = np.where(self.share > 0, target.clicks, np.nan)
            truth = self.all_and_overall(clicks[:, None], self.n[:, None])[:, 0]
        half, paired = self.half_widths()
        order = [0, *(1 + np.flatnonzero(self.used)).tolist()]
        rows = []
        for row in order:
            for i, e in enumerate(self.value):
                difference = centre[i, row] - logged[row]
                rows.append(
                    {
                        "target": target.name,
                        "query": None if row == 0 else str(queries[row - 1]),
                        "estimator": str(e),
                        "positions": target.K,
                        "value": centre[i, row],
                        "low": centre[i, row] - half[i, row],
                        "high": centre[i, row] + half[i, row],
                        "truth": truth[row],
                        "logged": logged[row],
                        "difference": difference,
                        "difference_low": difference - paired[i, row],
                        "difference_high": difference + paired[i, row],
                        "serps": int(self.weight.sum() if row == 0 else self.weight[row - 1]),
                        **_figures(self.support[e], row),
                    }
                )
        return pd.DataFrame(rows).astype({"supported_positions": "Int32", "query": object})


def _figures(s: Support | None, row: int) -> dict[str, Any]:
    if s is None:
        names = ["support", "effective_serps", "clipped", "largest_weight"]
        return dict.fromkeys(names, np.nan) | {"supported_positions": None}
    if row == 0:
        return s.overall
    q = row - 1
    return {
        "support": s.support[q],
        "effective_serps": s.effective_serps[q],
        "clipped": s.clipped[q],
        "largest_weight": s.largest_weight[q],
        "supported_positions": int(s.positions[q]),
    }


def _logged_clicks(estimation: Estimation, W: Floats) -> Floats:
    """Clicks per SERP at the first K positions, (Q, B): what the logger earned."""
    patterns = estimation.logged.patterns
    clicks = patterns.clicks[:, : estimation.target.K].sum(axis=1)
    n = estimation.serps(W)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = estimation.serps(W * clicks[:, None].astype(np.float32)) / n
    return mean
