"""Qualities of several models with their uncertainty, as rows of ``tables.QUALITY``.

Intervals are bootstraps over SERPs, each weighted by Poisson(1). All models meet the same
weights, so the differences between them are paired. The weights are drawn for a block of
patterns at a time, so memory does not grow with the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from logeval.clicks.quality.scores import BINS, MEASURES, Score, at_ranks, measures
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats

if TYPE_CHECKING:
    import pandas as pd

REPLICATES = 500
BLOCK = 20_000
ALL = "all"


def quality_table(
    scores: dict[str, Score], seed: int = 0, replicates: int = REPLICATES
) -> pd.DataFrame:
    """All measures of all models: overall, per rank, by query frequency; and the difference of
    each model to the one with the best log-likelihood."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    overall = {}
    serps = {band: int(s.count[inside].sum()) for s in scores.values() for band, inside in bands(s)}
    for name, sums in bootstrap_sums(scores, seed, replicates).items():
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
    columns = ["model", "baseline", "measure", "rank", "frequency", "serps", "value", "low", "high"]
    return pd.DataFrame(rows).reindex(columns=columns).astype({"rank": "Int64"})


def bands(score: Score) -> list[tuple[str, Bools]]:
    """All SERPs, and those of each band of query frequency that occurs."""
    out = [(ALL, np.ones(len(score.count), dtype=np.bool_)), ("unseen", score.frequency == -1)]
    for i, low in enumerate(BINS):
        name = f"{low}-{BINS[i + 1] - 1}" if i + 1 < len(BINS) else f"{low}+"
        out.append((name, score.frequency == i))
    return [(name, inside) for name, inside in out if inside.any()]


def bootstrap_sums(
    scores: dict[str, Score], seed: int, replicates: int
) -> dict[str, dict[str, Floats]]:
    """Sums of ``Score.columns`` by model and band: as they are, then of each replicate."""
    sums: dict[str, dict[str, Floats]] = {name: {} for name in scores}
    columns = {name: score.columns() for name, score in scores.items()}
    count = next(iter(scores.values())).count
    for block, start in enumerate(range(0, len(count), BLOCK)):
        rows = slice(start, start + BLOCK)
        rng = seeds.generator(seed, "quality", "bootstrap", block)
        drawn = rng.poisson(count[rows], (replicates, len(count[rows])))
        weights = np.concatenate([count[rows][None], drawn])
        for name, score in scores.items():
            for band, inside in bands(score):
                part = (weights * inside[rows]) @ columns[name][rows]
                sums[name][band] = sums[name].get(band, 0.0) + part
    return sums


def _interval(values: Floats) -> dict[str, float]:
    """The first value, and the central 95% of the others."""
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return {"value": float(values[0]), "low": float(low), "high": float(high)}
