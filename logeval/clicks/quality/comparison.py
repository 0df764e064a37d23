"""What scores of several click models on the same SERPs say of them, side by side.

Intervals are bootstraps over SERPs, each weighted by Poisson(1). All models meet the same
weights, so the differences between them are paired. The weights are drawn for a block of
patterns at a time, so memory does not grow with the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from logeval.clicks.collection import FittedModels
from logeval.clicks.quality.scores import BINS, MEASURES, Score, at_ranks, measures
from logeval.log.log import Log
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats
from logeval.storage.results import Stored
from logeval.storage.schemas import QUALITY
from logeval.storage.tables import Manifest

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

HELD_OUT = "held-out SERPs"
REPLICATES = 500  # of the bootstrap
BLOCK = 20_000  # patterns
ALL = "all"


@dataclass(frozen=True)
class Comparison(Stored):
    """Qualities (schema ``schemas.QUALITY``), and what was unseen or impossible by model."""

    TABLES: ClassVar = {"table": "quality"}
    KEPT = ("unseen", "scored_on")

    table: pd.DataFrame
    unseen: list[dict[str, Any]]  # by model
    scored_on: str = HELD_OUT  # which SERPs
    manifest: Manifest = field(default_factory=dict)

    @property
    def coverage(self) -> pd.DataFrame:
        """One row per model: SERPs, and what of them was unseen or impossible."""
        import pandas as pd

        return pd.DataFrame(self.unseen)

    def overall(self) -> pd.DataFrame:
        """One row per model: each measure over everything, the best log-likelihood first."""
        table = self.table
        rows = table[table["baseline"].isna() & table["rank"].isna() & table["frequency"].isna()]
        wide = rows.pivot_table(index="model", columns="measure", values=["value", "low", "high"])
        wide = wide.sort_values(("value", MEASURES[0]), ascending=False)
        return wide[[(v, m) for m in MEASURES for v in ("value", "low", "high")]]

    def by_frequency(self, measure: str = MEASURES[0]) -> pd.DataFrame:
        """One row per model, one column per band of query frequency."""
        rows = self.table[self.table["frequency"].notna() & (self.table["measure"] == measure)]
        return rows.pivot_table(index="model", columns="frequency", values="value", sort=False)

    def plot(self, measure: str = "perplexity", ax: Axes | None = None) -> Axes:
        """Perplexity by rank of each model (or another measure), with intervals."""
        from logeval.reports.figures.models import plot_perplexity

        return plot_perplexity(self, measure, ax)

    def plot_differences(self, measure: str = "log-likelihood", ax: Axes | None = None) -> Axes:
        """How far each model is from the best one, with paired 95% intervals."""
        from logeval.reports.figures.models import plot_differences

        return plot_differences(self, measure, ax)


def compared(
    scores: dict[str, Score], seed: int, manifest: Manifest, scored_on: str = HELD_OUT
) -> Comparison:
    """The scores side by side."""
    unseen = [
        {
            "model": name,
            "serps": int(s.count.sum()),
            "unseen_items": s.unseen_items,
            "unseen_queries": s.unseen_queries,
            "impossible": s.impossible,
        }
        for name, s in scores.items()
    ]
    return Comparison(_quality_table(scores, seed), unseen, scored_on, manifest)


def scored_on(models: FittedModels, log: Log) -> str:
    """Whether the models have seen the log before."""
    if models.manifest.get("inputs") == [{"log": log.identity}]:
        part = "partly " if models.manifest["arguments"].get("holdout") else ""
        return f"the log that the models were {part}fitted to, not held out"
    return f"all SERPs of {log.path}"


def _quality_table(scores: dict[str, Score], seed: int) -> pd.DataFrame:
    """All measures of all models: overall, per rank, by query frequency; and the difference of
    each model to the one with the best log-likelihood."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    overall = {}
    serps = {
        band: int(s.count[inside].sum()) for s in scores.values() for band, inside in _bands(s)
    }
    for name, sums in _bootstrap_sums(scores, seed).items():
        for band, band_sums in sums.items():
            base = {"model": name, "serps": serps[band]}
            if band != ALL:
                base["frequency"] = band
            values = measures(band_sums)
            for measure, value in zip(MEASURES, values.T, strict=True):
                rows.append({**base, "measure": measure, **_interval(value)})
            if band == ALL:
                overall[name] = values
                for measure, ranks in zip(MEASURES[1:], at_ranks(band_sums), strict=True):
                    for k, value in enumerate(ranks.T):
                        rows.append({**base, "measure": measure, "rank": k + 1, **_interval(value)})
    best = max(scores, key=lambda name: overall[name][0, 0])
    for name in scores:
        if name != best:
            change = overall[name] - overall[best]
            base = {"model": name, "baseline": best, "serps": serps[ALL]}
            for measure, value in zip(MEASURES, change.T, strict=True):
                rows.append({**base, "measure": measure, **_interval(value)})
    return pd.DataFrame(rows).reindex(columns=QUALITY.names).astype({"rank": "Int64"})


def _bands(score: Score) -> list[tuple[str, Bools]]:
    """All SERPs, and those of each band of query frequency that occurs."""
    out = [(ALL, np.ones(len(score.count), dtype=np.bool_)), ("unseen", score.frequency == -1)]
    for i, low in enumerate(BINS):
        name = f"{low}-{BINS[i + 1] - 1}" if i + 1 < len(BINS) else f"{low}+"
        out.append((name, score.frequency == i))
    return [(name, inside) for name, inside in out if inside.any()]


def _bootstrap_sums(scores: dict[str, Score], seed: int) -> dict[str, dict[str, Floats]]:
    """Sums of ``Score.columns`` by model and band: as they are, then of each replicate."""
    sums: dict[str, dict[str, Floats]] = {name: {} for name in scores}
    columns = {name: score.columns() for name, score in scores.items()}
    count = next(iter(scores.values())).count
    for block, start in enumerate(range(0, len(count), BLOCK)):
        rows = slice(start, start + BLOCK)
        rng = seeds.generator(seed, "quality", "bootstrap", block)
        drawn = rng.poisson(count[rows], (REPLICATES, len(count[rows])))
        weights = np.concatenate([count[rows][None], drawn])
        for name, score in scores.items():
            for band, inside in _bands(score):
                part = (weights * inside[rows]) @ columns[name][rows]
                sums[name][band] = sums[name].get(band, 0.0) + part
    return sums


def _interval(values: Floats) -> dict[str, float]:
    """The first value, and the central 95% of the others."""
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return {"value": float(values[0]), "low": float(low), "high": float(high)}
