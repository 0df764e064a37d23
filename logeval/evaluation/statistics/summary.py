"""The policies of one simulator and track at one step, as tables: one by one, and in pairs.

All numbers are of the replicas (query and run) that all policies have. The Oracle, which knows
the answer, is shown and does not compete.

One axis for all tracks: cumulative regret over cumulative optimal reward.

A step earns a list in one track and a pair in the other, so regrets of two tracks do not compare;
their shares of the optimum do. In a PBM the list policies are also judged by the pair that they
show at the most examined position, which earns what the rank-1 track earns. ``reward`` says which
of the rewards of the track is meant (``Track.rewards``).

The policies of all tracks of a PBM against each other, by the pair at the best position.

A list policy is judged by the item that it shows at the most examined position, a rank-1 policy
by its pair: both earn a click there, so their regrets are compared query by query like those of one
track. They are given as shares of what the best pairs earn on average, so that the mean over
queries is the ratio of means that ``Runs.relative`` has. Runs of two tracks meet different users,
so what pairs them is the query.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from logeval.errors import LogevalError
from logeval.evaluation.statistics import intervals
from logeval.evaluation.statistics.intervals import (
    REPLICA,
    ROUNDING,
    by_policy,
    by_step,
    compare,
    compare_ratios,
)
from logeval.running.arrays import Bools, Floats
from logeval.tracks.registry import TRACKS

ORACLE = "Oracle"
FEW = 10  # queries (or runs of one) below which only large differences are found


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per policy, best first; the columns are explained in ``Runs.summary``."""
    policies, x = _regrets(rows)
    regret = intervals.mean(x)
    optimal = intervals.mean(by_policy(rows, "optimal_reward")[1])
    low, high = intervals.interval(x, most=optimal)
    competes = _compete(policies)
    found = compare(x[..., competes], scale=float(optimal.max()))
    optimal = np.where(optimal > 0.0, optimal, np.inf)
    best = found.order()[0]
    by_query = intervals.query_means(x)
    smallest = by_query[:, competes].min(axis=1, keepdims=True)
    table = pd.DataFrame(
        {
            "simulator": rows["simulator"].iloc[0],
            "track": rows["track"].iloc[0],
            "policy": policies,
            "regret": regret,
            "low": low,
            "high": high,
            "stderr": [intervals.standard_error(_by_run(x[..., i])) for i in range(len(policies))],
            "relative_regret": regret / optimal,
            "share_of_optimum": intervals.mean(by_policy(rows, "reward")[1]) / optimal,
            "optimal_steps": intervals.mean(by_policy(rows, "optimal_steps")[1])
            / rows["t"].iloc[0],
            "difference": regret - regret[competes][best],
            "difference_low": _spread(competes, found.low[:, best]),
            "difference_high": _spread(competes, found.high[:, best]),
            "p": _spread(competes, found.p[:, best]),
            "in_best_set": _spread(competes, found.best_set().astype(float)) == 1.0,
            "best_on": np.where(competes, (by_query <= smallest + 1e-9).sum(axis=0), 0),
            "queries": len(x),
            "replicas": int((~np.isnan(x[..., 0])).sum()),
            "missing": list(_missing(rows)),
        }
    )
    table.loc[np.flatnonzero(competes)[best], "p"] = np.nan  # nobody is compared with itself
    return table.sort_values("regret", kind="stable")


def pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per pair of policies, the best with its next first; see ``Runs.compare``."""
    policies, x = _regrets(rows)
    competes = _compete(policies)
    names = np.array(policies)[competes]
    x = x[..., competes]
    scale = float(rows["optimal_reward"].mean())
    found = compare(x, scale=scale)
    ratios = compare_ratios(x) if len(x) > 1 and (x > ROUNDING * scale).all() else None
    means = intervals.query_means(x)
    order = found.order()
    i, j = (order[rank] for rank in np.triu_indices(len(order), 1))
    unknown = np.full(len(i), np.nan)
    return pd.DataFrame(
        {
            "simulator": rows["simulator"].iloc[0],
            "track": rows["track"].iloc[0],
            "better": names[i],
            "worse": names[j],
            "difference": found.difference[j, i],
            "low": found.low[j, i],
            "high": found.high[j, i],
            "p": found.p[j, i],
            "ratio": unknown if ratios is None else np.exp(ratios.difference[j, i]),
            "ratio_low": unknown if ratios is None else np.exp(ratios.low[j, i]),
            "ratio_high": unknown if ratios is None else np.exp(ratios.high[j, i]),
            "ratio_p": unknown if ratios is None else ratios.p[j, i],
            "queries_better": (means[:, i] < means[:, j] - 1e-9).sum(axis=0),
            "queries": len(x),
        }
    )


MEASURED_SPREAD = 1.25  # sample log-sd of regrets, beyond which a caution says so


def cautions(rows: pd.DataFrame) -> list[str]:
    """What limits the conclusions from these rows, one sentence each."""
    policies, x = _regrets(rows)
    n, found = intervals.units(x).size, []
    units = "queries" if len(x) > 1 else _kind(x)
    if n == 1:
        found.append("there is one run of one query: no interval or test is possible")
    elif len(x) == 1:
        found.append(
            f"there is one query: intervals and p-values are over its {_kind(x)} and say nothing "
            "about other queries"
        )
    if 1 < n < FEW:
        found.append(f"{n} {units} are few: intervals are wide, and only large differences show")
    if n > 1:  # do regrets spread more than in the simulations that intervals were measured in?
        spread = np.nan_to_num(intervals.log_spread(intervals.units(x).values), nan=0.0)
        wide = [name for name, s in zip(policies, spread, strict=True) if s > MEASURED_SPREAD]
        if wide:
            found.append(
                f"regrets differ between {units} by more than was measured (log-sd "
                f"{spread.max():.1f}; up to 1 was): intervals of means may hold in less than 90% "
                f"({', '.join(wide)})"
            )
    missing = _missing(rows)
    if missing.any():
        where = ", ".join(f"{count} of {policy}" for policy, count in missing.items() if count)
        found.append(
            f"replicas are missing ({where}): the policies are compared on the "
            f"{int((~np.isnan(x[..., 0])).sum())} that all have"
        )
    return found


def _regrets(rows: pd.DataFrame) -> tuple[list[str], Floats]:
    wide = rows.pivot(index=REPLICA, columns="policy", values="regret")
    if wide.dropna().empty:
        raise LogevalError(
            f"the policies {', '.join(wide.columns)} have no query and run in common on "
            f"{rows['simulator'].iloc[0]}: run 'evaluate' to its end, or choose policies"
        )
    return by_policy(rows, "regret")


def _missing(rows: pd.DataFrame) -> pd.Series:
    """Per policy, the replicas that another one has and this one has not."""
    return rows.pivot(index=REPLICA, columns="policy", values="regret").isna().sum()


def _by_run(x: Floats) -> Floats:
    """(Q, N): all runs of a query, whatever the draw."""
    return x.reshape(len(x), -1)


def _kind(x: Floats) -> str:
    """What varies within a query."""
    return "draws" if x.ndim == 4 else "runs"


def _compete(policies: list[str]) -> Bools:
    others = np.array([not is_oracle(policy) for policy in policies])
    return others if others.any() else ~others


def is_oracle(policy: str) -> bool:
    """Whether it knows the answer, in whatever order it shows it."""
    return policy.partition("(")[0] == ORACLE


def _spread(competes: Bools, values: Floats) -> Floats:
    """Values of the competing policies, at their places among all; nan for the others."""
    spread = np.full(len(competes), np.nan)
    spread[competes] = values
    return spread


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


TRACK = "top pair"


def top_pair_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of one simulator at one step, with ``regret`` the share of the best pairs' mean reward.

    Empty unless the policies of several tracks were measured so. What runs in every track
    (Random, Oracle) is taken from the first.
    """
    rows = rows[rows["pair_regret"].notna() & (rows["pair_optimal_reward"] > 0.0)]
    if rows["track"].nunique() < 2:
        return rows.iloc[:0]
    rows = rows.drop_duplicates(["policy", *REPLICA])
    best = rows.groupby("query")["pair_optimal_reward"].mean().mean()
    share, optimal = rows["pair_regret"] / best, rows["pair_optimal_reward"] / best
    return rows.assign(regret=share, track=TRACK, optimal_reward=optimal, reward=optimal - share)


def compare_top_pairs(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Summary and pairs (as ``Runs.summary`` and ``Runs.compare``) of these shares, if any."""
    found = top_pair_rows(rows)
    if found.empty or found["policy"].nunique() < 2:
        return None
    return summary(found), pairs(found)
