"""Would the verdict be the same with other runs, queries, parameters, or another click model?

Does the order of the policies depend on the click model that simulates the users?

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
from logeval.evaluation.statistics.intervals import REPLICA, by_policy, by_query
from logeval.evaluation.statistics.summary import is_oracle
from logeval.running.arrays import Floats
from logeval.running.seeds import generator
from logeval.tracks.ranking import RANKING

if TYPE_CHECKING:
    from logeval.evaluation.results import Runs


LEVELS = ("model", "query", "draw", "run")
MEANING = {"run": "runs", "query": "queries", "draw": "parameters", "model": "choice of model"}


def variance(rows: pd.DataFrame) -> pd.DataFrame:
    """Where the variance of each policy's mean regret comes from, at one step; one track.

    One row per policy and source, with its variance ``component`` (nested analysis of variance,
    ``components_of``), what that is in the variance of the mean regret (``of_mean``) and the
    ``share`` of it. The truth is one model and one draw of the parameters of each query, however
    many were simulated: with Q queries, D draws and N runs these are the component of the model
    itself, those of queries and parameters over Q, and that of runs over Q D N. With several models
    the regret is taken relative to the optimal reward, since their rewards need not be the same.
    """
    if rows["simulator"].nunique() > 1:  # of models that earn differently, shares of the optimum
        rows = _common(rows.assign(regret=rows["regret"] / rows["optimal_reward"]))
    samples = [_samples(part) for _, part in rows.groupby("simulator")]
    policies = [p for p in samples[0][0] if all(p in names for names, _ in samples)]
    found = []
    for policy in policies:
        x = _aligned([x[..., names.index(policy)] for names, x in samples])
        components = components_of(x, LEVELS)
        _, Q, D, N = x.shape
        of_mean = {
            "run": components["run"] / (Q * D * N),
            "query": components["query"] / Q,
            "draw": components["draw"] / Q,
            "model": components["model"],
        }
        total = float(np.nansum(list(of_mean.values())))
        for level, value in of_mean.items():
            share = value / total if total > 0.0 else np.nan
            found.append((policy, MEANING[level], components[level], value, share))
    columns = ["policy", "source", "component", "of_mean", "share"]
    return pd.DataFrame(found, columns=columns)


def components_of(x: Floats, levels: tuple[str, ...]) -> dict[str, float]:
    """Variance components of x, one axis per level, each nested in the one before it.

    For queries x draws x runs, x_qdr = mean + a_q + b_qd + e_qdr, with the mean squares MS of
    each level the unbiased estimates of the analysis of variance are (Searle, Casella and
    McCulloch 1992, chapter 3)

        run: MS_r    draw: (MS_d - MS_r) / N    query: (MS_q - MS_d) / (D N)

    cut off at 0, and Var(mean) = query / Q + draw / (Q D) + run / (Q D N). A level with one unit
    has no estimate, nan: what varies there is in the level above it (draws with one run each
    contain the runs) or, at the top, left out (one query).
    """
    if x.ndim != len(levels):
        raise LogevalError(f"samples with {x.ndim} axes do not have the levels {levels}")
    if not np.isfinite(x).all():
        raise LogevalError("variance components need the same number of runs everywhere")
    components = {}
    inner = 0.0  # mean square of the next level below that has one
    for axis in reversed(range(x.ndim)):
        below = int(np.prod(x.shape[axis + 1 :]))
        means = x.mean(axis=tuple(range(axis + 1, x.ndim)))
        if x.shape[axis] < 2:
            components[levels[axis]] = np.nan
            continue
        square = below * float(means.var(axis=-1, ddof=1).mean())
        components[levels[axis]] = max(0.0, (square - inner) / below)
        inner = square
    return {level: components[level] for level in levels}


def _common(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the queries that all simulators have; all rows, if there is no such query."""
    simulators = rows.groupby("query")["simulator"].transform("nunique")
    common = rows[simulators == rows["simulator"].nunique()]
    return rows if common.empty else common


def _samples(rows: pd.DataFrame) -> tuple[list[str], Floats]:
    """Policies, and their regret (Q, D, N, policies) on one simulator."""
    policies, x = by_policy(rows, "regret")
    return policies, x if x.ndim == 4 else x[:, None]


def _aligned(samples: list[Floats]) -> Floats:
    """(models, Q, D, N): as many of each as all have; queries with gaps left out."""
    Q, D, N = (min(x.shape[axis] for x in samples) for axis in range(3))
    x = np.stack([x[:Q, :D, :N] for x in samples])
    return x[:, np.isfinite(x).all(axis=(0, 2, 3))]


def best(rows: pd.DataFrame) -> pd.DataFrame:
    """How often each policy is best, at one step and in one track; the Oracle does not compete.

    ``simulators`` is on how many of the click models (``of``) its mean regret is the smallest, and
    ``on`` names them. ``probability`` is the share of queries and draws on which its mean over runs
    is the smallest, as the mean over the click models, with ``lowest`` that of the model where it
    is least. Ties are shared.
    """
    winners: dict[str, str] = {}
    shares: dict[str, pd.Series] = {}
    for simulator, part in rows[~rows["policy"].map(is_oracle)].groupby("simulator"):
        policies, x = _samples(part)
        by_draw = np.nanmean(x, axis=2)
        mean = np.nanmean(by_draw, axis=1).mean(axis=0)
        units = by_draw.reshape(-1, len(policies))
        units = units[np.isfinite(units).all(axis=1)]
        smallest = units <= units.min(axis=1, keepdims=True) + 1e-9
        share = (smallest / smallest.sum(axis=1, keepdims=True)).mean(axis=0)
        winners[str(simulator)] = policies[int(np.argmin(mean))]
        shares[str(simulator)] = pd.Series(share, policies)
    table = pd.DataFrame(shares)
    on = [[s for s, winner in winners.items() if winner == policy] for policy in table.index]
    found = pd.DataFrame(
        {
            "policy": table.index,
            "simulators": [len(simulators) for simulators in on],
            "of": len(winners),
            "on": [", ".join(simulators) for simulators in on],
            "probability": table.mean(axis=1).to_numpy(),
            "lowest": table.min(axis=1).to_numpy(),
        }
    )
    return found.sort_values(["simulators", "probability"], ascending=False, ignore_index=True)


def best_text(found: pd.DataFrame) -> list[str]:
    """The same in sentences; a conclusion that holds under one model only is marked."""
    said = []
    for row in found.to_dict(orient="records"):
        if not row["simulators"]:
            continue
        models = "click model" if row["of"] == 1 else "click models"
        only = row["of"] > 1 and row["simulators"] == 1
        said.append(
            f"{row['policy']} has the smallest mean regret on {row['simulators']} of {row['of']} "
            f"{models} ({row['on']}) and is best on {row['probability']:.0%} of queries and draws"
            + ("; on the others another policy has it" if only else "")
        )
    return said


RESAMPLES = 1000
ENDS = ("Random", "Oracle")  # they are last and first everywhere


class Sensitivity(NamedTuple):
    """The regrets of the policies by simulator, and how much the rankings agree."""

    regret: pd.DataFrame  # policies x simulators, the best on average first
    tau: pd.DataFrame  # one row per pair of simulators: a, b, tau, low, high
    pairs: pd.DataFrame  # one row per pair of policies: better, worse, in how many simulators


def sensitivity(runs: Runs, track: str = RANKING.name, t: int | None = None) -> Sensitivity:
    """How the policies' order differs between the simulators of a run, at step t (the horizon).

    Only policies, queries and runs that all simulators have are compared.
    """
    rows = runs.table()
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
    return Sensitivity(regret, _taus(simulators, means, boot), _pairs(regret))


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


def _pairs(regret: pd.DataFrame) -> pd.DataFrame:
    """Which of two policies is better, and in how many simulators; the doubtful pairs first."""
    found = []
    for first, second in combinations(regret.index, 2):
        wins = int((regret.loc[first] < regret.loc[second]).sum())
        better, worse = (first, second) if 2 * wins >= regret.shape[1] else (second, first)
        agree = max(wins, regret.shape[1] - wins)
        found.append({"better": better, "worse": worse, "simulators": agree})
    table = pd.DataFrame(found, columns=["better", "worse", "simulators"])
    return table.sort_values("simulators", kind="stable", ignore_index=True)
