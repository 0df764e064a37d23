"""The policies of one simulator and track at one step, as tables: one by one, and in pairs.

All numbers are of the replicas (query and run) that all policies have. The Oracle, which knows
the answer, is shown and does not compete.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from logeval.errors import LogevalError
from logeval.evaluation.statistics import intervals
from logeval.evaluation.statistics.comparisons import ROUNDING, compare, compare_ratios
from logeval.evaluation.statistics.paired import REPLICA, by_policy
from logeval.running.arrays import Bools, Floats

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
    """One row per pair of policies, the best with its next first; see ``Runs.pairs``."""
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
