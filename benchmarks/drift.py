"""Users that change: python -m benchmarks.drift [lists] [size] [winners].

``lists``: how often fits by period say that the users of a query change, on logs in which they do,
more or less, or not. ``size``: what the best constant list loses to users whose logits vary from
period to period. ``winners``: regret of policies on users who change more and more often.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from logeval import evaluate
from logeval.clicks.drift import SIZE, Strata, changes_of
from logeval.log.queries import Query
from logeval.synthetic.world import make_world

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
    ).to_pandas()  # fmt: skip
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
        t, k = np.nonzero(np.cumsum(clicks, axis=1) - clicks == 0)  # up to the first click
        rows.append(np.stack([np.full(len(t), q), A[t, k], k, week[t], clicks[t, k]]))
    query, item, position, period, click = np.concatenate(rows, axis=1)
    ones, queries = np.ones(len(query)), [Query(q) for q in range(Q)]
    return Strata(4, queries, query, item, position, period, ones, click.astype(float))


def lists() -> None:
    """Share of logs of 6 queries and 4 weeks in which users are said to change, by sd of logits."""
    per_move = np.std((np.arange(4) - 1.5) / 4, ddof=1)
    for n in (1500, 12_000):
        for users in ("pbm", "dcm", "classes"):
            for kind in ("recurring", "new", "4 a week", "1 a week"):
                line = [f"{n:6} SERPs of a query, {users:8} {kind:10}"]
                for size in (0.0, SIZE / 2, SIZE, 2 * SIZE):
                    move = size / per_move
                    each = [searches(users, kind, move, 100 + i, n=n) for i in range(LOGS)]
                    logs = [changes_of(data)[1] for data in each]
                    found, power = (np.mean([getattr(x, a)[0] for x in logs]) for a in
                                    ("found", "power"))  # fmt: skip
                    tau = np.mean([x.size[0] for x in logs])
                    line.append(f"{size}: {found:.0%} (size {tau:.2f})")
                print("; ".join(line), f"; power {power:.0%}", flush=True)


def size() -> None:
    """Share of clicks that the best constant list loses to the best of each period."""
    rng, P = np.random.default_rng(0), 4
    for name in ("PBM", "DCM"):
        for tau in (SIZE / 2, SIZE, 2 * SIZE):
            got = best = 0.0
            for seed in range(10):
                world = make_world(name, 20, seed)
                for q in range(20):
                    mine = slice(world.first_item[q], world.first_item[q + 1])
                    own = {
                        p.field: world.parameters[p.field][mine if p.kind == "item" else q]
                        for p in world.kind.PARAMETERS
                    }
                    L = len(own["w"])
                    w = expit(logit(own["w"]) + tau * rng.normal(size=(P, L)))
                    models = [
                        world.kind(items=np.arange(L), K=10, **{**own, "w": x})
                        for x in (w.mean(axis=0), *w)
                    ]
                    A = models[0].optimum(10, "clicks").A[None]
                    got += sum(float(m.expected_reward(A, "clicks")[0]) for m in models[1:])
                    best += sum(m.optimum(10, "clicks").value for m in models[1:])
            print(f"{name}, sd {tau} on the logit scale: loses {1 - got / best:.2%}", flush=True)


if __name__ == "__main__":
    for part in sys.argv[1:] or ("lists", "size", "winners"):
        {"lists": lists, "size": size, "winners": winners}[part]()
