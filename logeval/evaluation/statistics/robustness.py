"""Would the verdict be the same with other runs, queries, parameters, or another click model?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from logeval.errors import LogevalError
from logeval.evaluation.statistics.paired import by_policy
from logeval.evaluation.statistics.summary import is_oracle
from logeval.running.arrays import Floats

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
