"""Does the order of the policies depend on the click model that simulates the users?

Every simulator ranks the policies by their mean cumulative regret on the same queries. Kendall's
tau between two of these rankings is the share of pairs of policies that both put in the same order,
minus the share that they do not (Kendall 1938). Its 95% interval is the percentile interval of a
bootstrap over queries (over runs where there is one query), the same ones for all simulators.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from logeval.errors import LogevalError
from logeval.evaluation.statistics import intervals
from logeval.evaluation.statistics.intervals import REPLICA, by_query
from logeval.running.arrays import Floats
from logeval.running.seeds import generator
from logeval.tracks.ranking import RANKING

if TYPE_CHECKING:
    from logeval.evaluation.results import Runs


RESAMPLES = 1000
ENDS = ("Random", "Oracle")  # they are last and first everywhere


class Sensitivity(NamedTuple):
    """The regrets of the policies by simulator, and how much the rankings agree."""

    regret: pd.DataFrame  # policies x simulators, the best on average first
    tau: pd.DataFrame  # one row per pair of simulators: a, b, tau, low, high


def sensitivity(runs: Runs, track: str = RANKING.name, t: int | None = None) -> Sensitivity:
    """How the policies' order differs between the simulators of a run, at step t (the horizon).

    Only policies, queries and runs that all simulators have are compared.
    """
    rows = runs.to_pandas()
    rows = rows[(rows["track"] == track) & (rows["t"] == (t or runs.horizon))]
    rows = rows[~rows["policy"].isin(ENDS)]
    simulators = list(dict.fromkeys(rows["simulator"]))
    if len(simulators) < 2:
        raise LogevalError(
            "to compare simulators there must be two or more; fit several click models "
            "(fit-models -m dcm -m pbm) and evaluate on all of them"
        )
    wide = rows.pivot(index=REPLICA, columns=["simulator", "policy"], values="regret")
    everywhere = [
        p for p in dict.fromkeys(rows["policy"]) if all((s, p) in wide for s in simulators)
    ]
    wide = wide[[(s, p) for s in simulators for p in everywhere]].dropna()
    if len(everywhere) < 2 or wide.empty:
        raise LogevalError("no two policies were run on the same queries of all simulators")
    x = by_query(wide)
    means = intervals.mean(x).reshape(len(simulators), -1)
    units = intervals.units(x).values  # queries, or the runs of a single one
    drawn = generator(runs.seed, "sensitivity").integers(len(units), size=(RESAMPLES, len(units)))
    boot = units[drawn].mean(axis=1).reshape(-1, *means.shape)
    ranks = means.argsort(axis=1).argsort(axis=1).mean(axis=0)
    order = np.argsort(ranks, kind="stable")
    regret = pd.DataFrame(
        means[:, order].T, index=[everywhere[i] for i in order], columns=simulators
    )
    return Sensitivity(regret, _taus(simulators, means, boot))


def _taus(simulators: list[str], means: Floats, boot: Floats) -> pd.DataFrame:
    found = []
    for a, b in combinations(range(len(simulators)), 2):
        low, high = np.quantile(tau(boot[:, a], boot[:, b]), [0.025, 0.975])
        row = {"a": simulators[a], "b": simulators[b], "tau": float(tau(means[a], means[b]))}
        found.append({**row, "low": float(low), "high": float(high)})
    return pd.DataFrame(found)


def tau(x: Floats, y: Floats) -> Floats:
    """Kendall's tau-b of rankings along the last axis; 1 is the same order, -1 the opposite.

    The sum of s_ij t_ij over pairs by the root of (the sum of s_ij^2 times that of t_ij^2), where
    s_ij and t_ij are the signs of x_i - x_j and y_i - y_j (Kendall 1945, The treatment of ties).
    """
    i, j = np.triu_indices(x.shape[-1], 1)
    s, t = np.sign(x[..., i] - x[..., j]), np.sign(y[..., i] - y[..., j])
    with np.errstate(invalid="ignore"):  # not a number where all are equal
        return (s * t).sum(-1) / np.sqrt((s * s).sum(-1) * (t * t).sum(-1))
