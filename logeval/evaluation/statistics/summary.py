"""The policies of one simulator and track at one step, as tables: one by one, and in pairs.

All numbers are of the replicas (query and run) that all policies have. The Oracle, which knows
the answer, is shown and does not compete.

One axis for all tracks: cumulative regret over cumulative optimal reward. A step earns a list in
one track and a pair in the other, so regrets of two tracks do not compare; their shares of the
optimum do. In a PBM the list policies are also judged by the pair that they show at the most
examined position, which earns what the rank-1 track earns (``Track.rewards``).
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
    by_query,
    by_step,
    compare,
    compare_ratios,
)
from logeval.running.arrays import Bools, Floats
from logeval.tracks.registry import TRACKS

ORACLE = "Oracle"
ENDS = ("Random", ORACLE)  # they are last and first everywhere
MEASURED_SPREAD = 1.25  # log-sd of regrets, beyond which intervals may hold less often
FEW = 10  # queries (or runs of one) below which only large differences are found


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per policy, best first; the columns are explained in ``Runs.summary``."""
    policies, x = _regrets(rows)
    regret = intervals.mean(x)
    optimal = intervals.mean(by_policy(rows, "optimal_reward")[1])
    low, high = intervals.interval(x, most=optimal)
    competes, n = _compete(policies), intervals.units(x).size
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
            "log_sd": intervals.log_spread(intervals.units(x).values) if n > 1 else np.nan,
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


def by_simulator(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean regret of each policy (rows) on each simulator, the best on average first; one track.

    Only policies, queries and runs that all simulators have are compared; empty if these are not
    two policies on two simulators at least.
    """
    rows = rows[~rows["policy"].isin(ENDS)]
    wide = rows.pivot(index=REPLICA, columns=["simulator", "policy"], values="regret")
    simulators = list(dict.fromkeys(rows["simulator"]))
    policies = [p for p in dict.fromkeys(rows["policy"]) if all((s, p) in wide for s in simulators)]
    wide = wide[[(s, p) for s in simulators for p in policies]].dropna()
    if len(simulators) < 2 or len(policies) < 2 or wide.empty:
        return pd.DataFrame()
    means = intervals.mean(by_query(wide)).reshape(len(simulators), -1)
    table = pd.DataFrame(means.T, index=pd.Index(policies, name="policy"), columns=simulators)
    return table.loc[table.rank().mean(axis=1).sort_values(kind="stable").index]
