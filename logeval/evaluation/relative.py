"""One axis for all tracks: cumulative regret over cumulative optimal reward.

A step earns a list in one track and a pair in the other, so regrets of two tracks do not compare;
their shares of the optimum do. In a PBM the list policies are also judged by the pair that they
show at the most examined position, which earns what the rank-1 track earns. ``reward`` says which
of the rewards of the track is meant (``Track.rewards``).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from logeval.evaluation import statistics
from logeval.evaluation.paired import by_step
from logeval.running.arrays import Floats
from logeval.tracks.registry import TRACKS
from logeval.tracks.track import Reward

KEYS = ["simulator", "track", "policy"]


def relative(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per simulator, track, policy and reward at one step, the smallest share first.

    ``relative_regret`` with its 95% interval (``low``, ``high``).
    """
    found = []
    for keys, part in rows.groupby(KEYS):
        for reward in _rewards(part):
            value, low, high = _shares(part, reward)
            found.append((*keys, reward.name, value[0], low[0], high[0]))
    table = pd.DataFrame(found, columns=[*KEYS, "reward", "relative_regret", "low", "high"])
    return table.sort_values(["simulator", "relative_regret"], kind="stable", ignore_index=True)


def relative_curves(rows: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Per policy and reward: t, relative_regret, low, high; of the rows of one simulator."""
    curves = {}
    for keys, part in rows.groupby(KEYS):
        for reward in _rewards(part):
            value, low, high = _shares(part, reward)
            curves[str(keys[2]), reward.name] = pd.DataFrame(
                {"t": np.unique(part["t"]), "relative_regret": value, "low": low, "high": high}
            )
    return curves


def _rewards(rows: pd.DataFrame) -> list[Reward]:
    """The rewards by which a policy of one track is judged, as far as they were measured."""
    rewards = TRACKS[rows["track"].iloc[0]].rewards
    return [reward for reward in rewards if rows[reward.regret].notna().all()]


def _shares(rows: pd.DataFrame, reward: Reward) -> tuple[Floats, Floats, Floats]:
    """Mean regret over mean optimal reward at each t, and the interval of the share."""
    share, low, high = statistics.ratio(by_step(rows, reward.regret), by_step(rows, reward.optimal))
    return share, low, np.minimum(high, 1.0)
