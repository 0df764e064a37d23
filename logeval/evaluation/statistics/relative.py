"""One axis for all tracks: cumulative regret over cumulative optimal reward.

A step earns a list in one track and a pair in the other, so regrets of two tracks do not compare;
their shares of the optimum do. In a PBM the list policies are also judged by the pair that they
show at the most examined position, which earns what the rank-1 track earns. ``reward`` says which
of the rewards of the track is meant (``Track.rewards``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from logeval.evaluation.statistics import intervals
from logeval.evaluation.statistics.paired import by_step
from logeval.tracks.registry import TRACKS

KEYS = ["simulator", "track", "policy"]


def relative(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per simulator, track, policy and reward at one step, the smallest share first.

    ``relative_regret`` with its 95% interval (``low``, ``high``).
    """
    found = []
    for keys, part in rows.groupby(KEYS):
        for reward, curve in _curves(part).items():
            about: dict[str, Any] = {**dict(zip(KEYS, keys, strict=True)), "reward": reward}
            found.append(curve.drop(columns="t").assign(**about))
    table = pd.concat(found)[[*KEYS, "reward", "relative_regret", "low", "high"]]
    return table.sort_values(["simulator", "relative_regret"], kind="stable", ignore_index=True)


def relative_curves(rows: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Per policy and reward: t, relative_regret, low, high; of the rows of one simulator."""
    return {
        (str(keys[2]), reward): curve
        for keys, part in rows.groupby(KEYS)
        for reward, curve in _curves(part).items()
    }


def _curves(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Mean regret over mean optimal reward of a policy at each t, by what it is judged by.

    These are the rewards of the track, as far as they were measured.
    """
    found = {}
    for reward in TRACKS[rows["track"].iloc[0]].rewards:
        if rows[reward.regret].notna().all():
            x, y = by_step(rows, reward.regret), by_step(rows, reward.optimal)
            share, low, high = intervals.ratio(x, y)
            columns = {"t": np.unique(rows["t"]), "relative_regret": share, "low": low}
            found[reward.name] = pd.DataFrame({**columns, "high": np.minimum(high, 1.0)})
    return found
