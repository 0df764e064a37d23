"""Whether ``evaluate --pilot`` predicts the runs that a comparison needs.

50 cases: 30 with one synthetic query and 20 with eight queries of a synthetic log, two policies
each, drawn from six, 500 steps. The truth is found by trying: of a pool of other runs, whose
differences are moved so that they are 10% on average, samples of N runs are drawn, and the N is
taken at which 80% of them tell the policies apart. A prediction is right within a factor of 1.5, or
if it says that no number of runs is enough where that is true.

The last rows are of the queries that it says are needed: of ten logs with 150 queries, two policies
each, pilots of 8, 24 and 48 queries are drawn, ten of each; in truth the number is right at which
80% of samples of queries tell the policies apart.

    python benchmarks/run.py pilot
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from logeval.evaluation.evaluate import evaluate
from logeval.evaluation.statistics.intervals import by_policy, critical_value
from logeval.evaluation.statistics.summary import POWER, SIZE, need
from logeval.running.arrays import Floats
from logeval.synthetic.world import make_world

POLICIES = ["dcmKL-UCB", "CascadeKL-UCB", "CascadeUCB1", "TopRank", "RankedKL-UCB", "TS-Cascade"]
ONE, MANY, TRIES = 30, 20, 400
LOGS, QUERIES, PILOTS = 10, 150, 10
POOL = {1: 1_500, 8: 150}  # runs, by queries
FACTOR, MOST = 1.5, 2_000


def case(number: int, seed: int) -> tuple[dict[str, Any], int]:
    """What is evaluated, and of how many queries."""
    rng = np.random.default_rng([seed, number])
    pair = rng.choice(POLICIES, 2, replace=False).tolist()
    if number < ONE:
        p, gap, gamma = rng.uniform(0.1, 0.3), rng.uniform(0.05, 0.3), rng.uniform(0.3, 0.9)
        L, K = int(rng.integers(8, 33)), int(rng.integers(2, 6))
        problem = f"B_LB(L={L},K={K},p={p:.3f},gap={min(gap, p * 0.9):.3f},gamma={gamma:.2f})"
        return {"problem": [problem], "policies": pair}, 1
    models = make_world("dcm", 8, int(rng.integers(10**6))).models()
    return {"models": models, "policies": pair, "positions": 5}, 8


def power(pool: Floats, size: float, N: int, rng: np.random.Generator) -> float:
    """How often N runs of each query tell apart policies that differ by ``size``; pool (Q, M)."""
    Q, M = pool.shape
    moved = pool - pool.mean() + size
    drawn = np.stack([moved[q][rng.integers(0, M, (TRIES, N))] for q in range(Q)])  # (Q, tries, N)
    unit = drawn[0].T if Q == 1 else drawn.mean(axis=2)
    error = unit.std(axis=0, ddof=1) / math.sqrt(len(unit))
    return float((np.abs(unit.mean(axis=0)) > critical_value(len(unit), 2) * error).mean())


def truth(pool: Floats, size: float, rng: np.random.Generator) -> float:
    """The number of runs with the power wanted; inf if none up to ``MOST`` has it."""
    N = 2.0
    while power(pool, size, round(N), rng) < POWER:
        N *= 1.15
        if N > (MOST if len(pool) == 1 else 200):
            return math.inf
    return float(round(N))


def rows(seed: int = 1, one: int = ONE, many: int = MANY) -> Iterator[dict[str, Any]]:
    """How many predictions are right, and by which factor they are off."""
    found: dict[int, list[tuple[float, float]]] = {1: [], 8: []}
    for number in [*range(one), *range(ONE, ONE + many)]:
        asked, queries = case(number, seed)
        runs = evaluate(**asked, horizon=500, pilot=True, seed=seed, quiet=True)
        (predicted,) = runs.needs().values()
        pool = evaluate(**asked, horizon=500, runs=POOL[queries], seed=seed + 777, quiet=True)
        table = pool.table()
        policies, x = by_policy(table[table["t"] == 500], "regret")
        order = [policies.index(name) for name in predicted.policies]
        means = x.mean(axis=(0, 1))
        size = SIZE * float(means.min())
        pair = x[..., order[1]] - x[..., order[0]]
        rng = np.random.default_rng([seed, number, 1])
        found[queries].append((predicted.runs, truth(pair, size, rng)))
    for queries, pairs in found.items():
        if not pairs:
            continue
        said, true = np.array(pairs).T
        neither = np.isinf(said) & np.isinf(true)
        both = np.isfinite(said) & np.isfinite(true)
        factor = np.where(both, said / np.where(both, true, 1.0), np.inf)
        near = both & (factor <= FACTOR) & (factor >= 1 / FACTOR)
        yield {
            "queries": queries,
            "cases": len(pairs),
            "right": int((near | neither).sum()),
            "no number is enough, rightly": int(neither.sum()),
            "median factor": float(np.median(factor[both])) if both.any() else math.nan,
            "runs needed, median": float(np.median(true[both])) if both.any() else math.nan,
        }
    yield from _queries(seed)


def _queries(seed: int) -> Iterator[dict[str, Any]]:
    """How many predictions of the queries needed are right."""
    found: dict[int, list[tuple[float, float, float, float]]] = {8: [], 24: [], 48: []}
    for number in range(LOGS):
        rng = np.random.default_rng([seed, number, 2])
        pair = rng.choice(POLICIES, 2, replace=False).tolist()
        models = make_world("dcm", QUERIES, int(rng.integers(10**6))).models()
        runs = evaluate(models, policies=pair, positions=5, horizon=500, runs=3, seed=seed,
                        quiet=True)  # fmt: skip
        table = runs.table()
        table = table[table["t"] == 500]
        _, x = by_policy(table, "regret")
        means = x.mean(axis=1)  # (queries, policies)
        true = _needed_queries(
            means[:, 1] - means[:, 0], SIZE * float(means.mean(axis=0).min()), rng
        )
        names = table["query"].unique()
        for Q, each in found.items():
            for _ in range(PILOTS):
                drawn = rng.choice(names, Q, replace=False)
                one = need(table[table["query"].isin(drawn)])
                assert one is not None
                each.append((one.queries_needed, one.queries_low, one.queries_high, true))
    for size, numbers in found.items():
        said, low, high, true = np.array(numbers).T
        near = (said / true <= FACTOR) & (said / true >= 1 / FACTOR)
        yield {
            "queries": f"queries needed, by {size}",
            "cases": len(numbers),
            "right": int(near.sum()),
            "within the range": float(((low <= true) & (true <= high)).mean()),
            "median factor": float(np.median(said / true)),
            "queries needed, median": float(np.median(true)),
        }


def _needed_queries(difference: Floats, size: float, rng: np.random.Generator) -> float:
    """The queries of which 80% of samples tell apart policies that differ by ``size``."""
    moved, Q = difference - difference.mean() + size, 3.0
    while True:
        n = round(Q)
        x = moved[rng.integers(0, len(moved), (TRIES, n))]
        error = x.std(axis=1, ddof=1) / math.sqrt(n)
        if (np.abs(x.mean(axis=1)) > critical_value(n, 2) * error).mean() >= POWER:
            return float(n)
        Q *= 1.08
