"""Users that change: python -m benchmarks.drift [lists] [winners]; each at most 3 CPU minutes.

``lists``: how often fits by period say that the users of a query change, on logs in which they do,
more or less, or not. ``winners``: regret of policies on users who change more and more often.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from scipy.special import expit

from logeval import evaluate
from logeval.clicks.drift import Strata, changes_of
from logeval.log.queries import Query

N, RUNS = 40_000, 20
POLICIES = [
    "dcmKL-UCB", "SW-dcmKL-UCB", "D-dcmKL-UCB", "CascadeKL-UCB", "GLRT-CascadeKL-UCB",
    "CascadeUCB1", "GLRT-CascadeUCB", "CascadeSWUCB", "CascadeDUCB", "CascadeUCB-V",
]  # fmt: skip
CHANGES = (0, 1, 3, 7, 15, 31, 63)
LOGS = 20


def problem(changes: int, L: int = 16, K: int = 4) -> str:
    more = f",changes={changes}" if changes else ""
    return f"B_LB(L={L},K={K},p=0.2,gap=0.15,gamma=0.8{more})"


def regrets(problems: list[str]) -> pd.DataFrame:
    """Mean regret and its standard error, by problem and policy."""
    rows = evaluate(
        problem=problems, policies=POLICIES, horizon=N, runs=RUNS, checkpoints=[N], quiet=True,
        seed=11,
    ).table()  # fmt: skip
    by = rows.groupby(["simulator", "policy"]).regret
    return pd.DataFrame({"regret": by.mean(), "error": by.sem()})


def winners() -> None:
    """Regret by the number of changes in N steps."""
    found = regrets([problem(c) for c in CHANGES])
    table = found.regret.unstack("policy")[POLICIES].loc[[problem(c) for c in CHANGES]]
    table.index = pd.Index([f"{c} changes" for c in CHANGES])
    print(table.round(0).astype(int).T.to_string())
    print("largest standard error:", found.error.max().round(1))


def searches(
    users: str,
    lists: str,
    move: float,
    seed: int,
    Q: int = 6,
    n: int = 1500,
    L: int = 15,
    K: int = 5,
) -> Strata:
    """Four weeks in which every attraction moves by ``move``, up or down, on the logit scale.

    Users are those of a PBM or DCM, or ``classes``: a third clicks more, a third less. Lists are
    ordered by quality and noise: each by itself (``new``), or drawn from eight (``recurring``),
    or from one or four of each week (``1 a week``, ``4 a week``).
    """
    rng, rows, e = np.random.default_rng(seed), [], np.array([1.0, 0.8, 0.6, 0.45, 0.35])
    week = np.arange(n) * 4 // n
    for q in range(Q):
        start, slope = rng.normal(-1.0, 1.0, L), move * rng.choice([-1.0, 1.0], L)
        noisy = start + rng.normal(0, 1, L) + rng.gumbel(size=(n, L))
        drawn = np.argsort(-noisy, axis=1)[:, :K]
        size = {"new": n, "recurring": 8, "1 a week": 1, "4 a week": 4}[lists]
        A = drawn[rng.integers(size, size=n) + size * week * ("week" in lists) if size < n
                  else np.arange(n)]  # fmt: skip
        class_ = 1.5 * (rng.integers(3, size=(n, 1)) - 1) * (users == "classes")
        when = (np.arange(n) / n - 0.5)[:, None]
        w = expit((start + slope * when)[np.arange(n)[:, None], A] + class_)
        clicks = rng.random((n, K)) < w * (1.0 if users == "dcm" else e)
        leaves = (rng.random((n, K)) < 0.5) & clicks & (users == "dcm")
        clicks &= np.cumsum(leaves, axis=1) - leaves == 0
        for t in range(n):  # up to the first click
            read = int(np.argmax(clicks[t])) + 1 if clicks[t].any() else K
            rows += [(q, A[t, k], k, week[t], clicks[t, k]) for k in range(read)]
    query, item, position, period, click = np.array(rows).T
    ones, queries = np.ones(len(rows)), [Query(q) for q in range(Q)]
    return Strata(4, queries, query, item, position, period, ones, click.astype(float))


def lists() -> None:
    """Logs of 6 queries, each with 1,500 searches in 4 weeks, in which users are said to change."""
    for users in ("pbm", "dcm", "classes"):
        for kind in ("recurring", "new", "4 a week", "1 a week"):
            line = [f"{users:8} {kind:10}"]
            for move in (0.0, 0.5, 2.0):
                pairs = [changes_of(searches(users, kind, move, 100 + i)) for i in range(LOGS)]
                logs = np.mean([log.found[0] for _, log in pairs])
                found = np.concatenate([q.found[q.tested] for q, _ in pairs])
                power = np.mean([log.power[0] for _, log in pairs])
                line.append(f"moves by {move}: {logs:.0%} of logs, {found.mean():.0%} of queries")
            print("; ".join(line), f"; power {power:.0%}")


if __name__ == "__main__":
    for part in sys.argv[1:] or ("lists", "winners"):
        {"lists": lists, "winners": winners}[part]()
