"""One axis for all tracks: cumulative regret over cumulative optimal reward.

A step earns a list in one track and a pair in the other, so regrets of two tracks do not compare;
their shares of the optimum do. In a PBM the list policies are also judged by the pair that they
show at the most examined position, which earns what the rank-1 track earns. ``reward`` says which:
``list``, ``top pair`` (of a list), or ``pair`` (of the rank-1 track).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from logeval.arrays import Floats
from logeval.evaluation import statistics
from logeval.evaluation.samples import by_query

KEYS = ["simulator", "track", "policy"]


def relative(rows: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """One row per simulator, track, policy and reward at one step, the smallest share first.

    ``relative_regret`` with its 95% bootstrap interval (``low``, ``high``).
    """
    found = []
    for keys, part in rows.groupby(KEYS):
        for reward, regret, optimal in _rewards(part):
            value, low, high = _shares(part, regret, optimal, seed, resamples=2000)
            found.append((*keys, reward, value[0], low[0], high[0]))
    table = pd.DataFrame(found, columns=[*KEYS, "reward", "relative_regret", "low", "high"])
    return table.sort_values(["simulator", "relative_regret"], kind="stable", ignore_index=True)


def relative_curves(rows: pd.DataFrame, seed: int = 0) -> dict[tuple[str, str], pd.DataFrame]:
    """Per policy and reward: t, relative_regret, low, high; of the rows of one simulator."""
    curves = {}
    for keys, part in rows.groupby(KEYS):
        for reward, regret, optimal in _rewards(part):
            value, low, high = _shares(part, regret, optimal, seed, resamples=500)
            curves[str(keys[2]), reward] = pd.DataFrame(
                {"t": np.unique(part["t"]), "relative_regret": value, "low": low, "high": high}
            )
    return curves


def _rewards(rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    """The rewards by which a policy is judged, with their columns."""
    if rows["track"].iloc[0] == "rank1":
        return [("pair", "regret", "optimal_reward")]
    lists = [("list", "regret", "optimal_reward")]
    if rows["pair_regret"].notna().all():
        lists.append(("top pair", "pair_regret", "pair_optimal_reward"))
    return lists


def _shares(
    rows: pd.DataFrame, regret: str, optimal: str, seed: int, resamples: int
) -> tuple[Floats, Floats, Floats]:
    """Mean regret over mean optimal reward at each t, and the interval of the share."""
    wide = [rows.pivot(index=["query", "run"], columns="t", values=c) for c in (regret, optimal)]
    x = np.stack([by_query(w) for w in wide], axis=-1)
    mean = statistics.mean(x)
    boot = statistics.bootstrap_means(x, resamples=resamples, seed=seed)
    low, high = statistics.interval(_share(boot))
    return _share(mean), low, high


def _share(x: Floats) -> Floats:
    return np.divide(x[..., 0], x[..., 1], out=np.zeros(x.shape[:-1]), where=x[..., 1] > 0.0)
