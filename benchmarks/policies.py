"""List-steps per second of each policy, on one core, as ratios within one run.

Three implementations of the same policy on the same users: the lazy kernel, the eager kernel
(every bound at every step), and a plain NumPy loop per step (``benchmarks.naive``). All include
the environment. The rank-1 track likewise (``benchmarks.naive_pairs``). ``python -m
benchmarks.policies`` prints the table.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks import naive, naive_pairs
from logeval import seeds
from logeval.evaluation.loop import run
from logeval.policies.ranking.exp3 import auer_gamma
from logeval.policies.registry import parse_policies
from logeval.policies.setting import Setting
from logeval.tracks.meters import Meters
from logeval.tracks.problems import b_lb
from logeval.tracks.rank1 import RANK1, Rank1Environment, needle
from logeval.tracks.ranking import RANKING, RankingEnvironment

SIZES = ((16, 4), (100, 10), (871, 10))
PAIR_SIZES = ((32, 32), (871, 10))
HORIZON, REPLICAS = 10_000, 20
PAIR_HORIZON, PAIR_REPLICAS = 50_000, 8
NAIVE_STEPS = 150
POLICIES = (
    "CascadeUCB1", "CascadeKL-UCB", "dcmKL-UCB", "First-Click", "Last-Click", "RankedUCB1",
    "RankedKL-UCB", "RankedExp3", "Random",
)  # fmt: skip
NAIVE = {
    "CascadeUCB1": lambda K, free, L: naive.Cascade(
        K, free[0], np.arange(L), "first", naive.ucb1, naive.ucb1_budget
    ),
    "CascadeKL-UCB": lambda K, free, L: naive.Cascade(K, free[0], np.arange(L), "first"),
    "dcmKL-UCB": lambda K, free, L: naive.Cascade(K, free[0], np.arange(L), "all"),
    "First-Click": lambda K, free, L: naive.Cascade(K, free[0], np.arange(L), "first"),
    "Last-Click": lambda K, free, L: naive.Cascade(K, free[0], np.arange(L), "last"),
    "RankedUCB1": lambda K, free, L: naive.Ranked(
        K, free, np.arange(L), naive.ucb1, naive.ucb1_budget
    ),
    "RankedKL-UCB": lambda K, free, L: naive.Ranked(K, free, np.arange(L)),
    "RankedExp3": lambda K, free, L: naive.RankedExp3(K, L, auer_gamma(np.array([L]), HORIZON)[0]),
}


def rows() -> list[dict]:
    """One row per policy and size."""
    lists = [row(name, L, K) for L, K in SIZES for name in POLICIES]
    return lists + [pair_row(name, L, K) for L, K in PAIR_SIZES for name in naive_pairs.PLAIN]


def row(name: str, L: int, K: int) -> dict:
    has_eager = "UCB" in name or "Click" in name
    horizon, replicas = (HORIZON, REPLICAS) if L < 500 else (HORIZON // 4, REPLICAS // 4)
    kernel(name, L, K, 10, 2)  # compile
    lazy = kernel(name, L, K, horizon, replicas)
    eager = kernel(name, L, K, horizon, replicas, lazy=False) if has_eager else None
    plain = numpy_loop(name, L, K) if name in NAIVE else None
    return {
        "policy": name,
        "L": L,
        "K": K,
        "list-steps/s": round(lazy),
        "to eager": round(lazy / eager, 1) if eager else None,
        "to NumPy": round(lazy / plain) if plain else None,
    }


def pair_row(name: str, L: int, K: int) -> dict:
    """A policy of the rank-1 track; a list-step is a step of one replica."""
    pair_kernel(name, L, K, 10, 2)  # compile
    ours = pair_kernel(name, L, K, PAIR_HORIZON, PAIR_REPLICAS)
    has_eager = name in ("UCB1", "KL-UCB")
    eager = pair_kernel(name, L, K, PAIR_HORIZON // 4, 2, lazy=False) if has_eager else None
    return {
        "policy": name,
        "L": L,
        "K": K,
        "list-steps/s": round(ours),
        "to eager": round(ours / eager, 1) if eager else None,
        "to NumPy": round(ours / pair_loop(name, L, K)),
    }


def pair_kernel(name: str, L: int, K: int, horizon: int, replicas: int, **options: bool) -> float:
    users = Rank1Environment(
        [needle(L, K, p=0.25, gap=0.5)], [(0, r) for r in range(replicas)], seed=0
    )
    generators = [seeds.generator(0, "benchmark", r) for r in range(replicas)]
    spec = parse_policies([name])[0]
    setting = Setting.of(users, horizon, generators).tell(spec.cls, spec.name)
    policy = spec.cls(setting, **options)
    start = time.perf_counter()
    run(users, policy, Meters(RANK1.meters, users, policy, [horizon]), [horizon])
    return horizon * replicas / (time.perf_counter() - start)


def pair_loop(name: str, L: int, K: int) -> float:
    """One replica in NumPy, from five observations of every pair on."""
    problem, rng = needle(L, K, p=0.25, gap=0.5), np.random.default_rng(0)
    policy = naive_pairs.PLAIN[name](L, K, PAIR_HORIZON, name)
    if isinstance(policy, naive_pairs.Index):
        p = np.outer(problem.u_bar, problem.v_bar).ravel()
        policy.T[:], policy.S[:] = 5.0, rng.binomial(5, p)
    steps, regret = 20 * NAIVE_STEPS, 0.0
    start = time.perf_counter()
    for t in range(L * K, L * K + steps):
        i, j = policy.recommend(t, rng)
        p_click = problem.u_bar[i] * problem.v_bar[j]
        policy.update((i, j), rng.random() < p_click)
        regret += 0.75 * 0.75 - p_click
        if time.perf_counter() - start > 2.0:
            steps = t + 1 - L * K
            break
    return steps / (time.perf_counter() - start)


def environment(L: int, K: int, replicas: int) -> RankingEnvironment:
    problem = b_lb(L, K, p=0.2, gap=0.15, gamma=0.5)
    return RankingEnvironment([problem], [(0, r) for r in range(replicas)], seed=0)


def kernel(name: str, L: int, K: int, horizon: int, replicas: int, **options: bool) -> float:
    users = environment(L, K, replicas)
    generators = [seeds.generator(0, "benchmark", r) for r in range(replicas)]
    spec = parse_policies([name])[0]
    setting = Setting.of(users, horizon, generators).tell(spec.cls, spec.name)
    policy = spec.cls(setting, **options)
    start = time.perf_counter()
    run(users, policy, Meters(RANKING.meters, users, policy, [horizon]), [horizon])
    return horizon * replicas / (time.perf_counter() - start)


def numpy_loop(name: str, L: int, K: int) -> float:
    """One replica; each step in NumPy, the users as well."""
    users = environment(L, K, 1)
    chain = users.problems[0].users
    policy = NAIVE[name](K, users.free_samples(0, K), L)
    rng = np.random.default_rng(0)
    best = chain.expected_reward(users.best, "satisfaction")[0]
    chain.sample(users.best, rng.random((1, K)))  # compile
    start = time.perf_counter()
    regret = 0.0
    for t in range(1, NAIVE_STEPS + 1):
        u = rng.random(K)
        A = policy.recommend(t, u) if "Ranked" in name else policy.recommend(t)
        clicks = chain.sample(A[None], rng.random((1, K)))[0][0]
        policy.update(A, clicks)
        regret += best - chain.expected_reward(A[None], "satisfaction")[0]
    return NAIVE_STEPS / (time.perf_counter() - start)


def main() -> None:
    import pandas as pd

    print(pd.DataFrame(rows()).to_string(index=False))


if __name__ == "__main__":
    main()
