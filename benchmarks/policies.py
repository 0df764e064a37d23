"""List-steps per second of each policy, on one core, as ratios within one run.

Two implementations of the same policy on the same users: the kernel, and the reference, a plain
NumPy loop per step and replica (``tests/references``). Both include the environment.
``python -m benchmarks.policies`` prints the table.
"""

from __future__ import annotations

import time

import numpy as np

from logeval.evaluation.loop import run
from logeval.policies.registry import parse_policies
from logeval.policies.setting import Policy, Setting
from logeval.running import seeds
from logeval.tracks.lists import b_lb
from logeval.tracks.meters import Meters
from logeval.tracks.rank1 import RANK1, Rank1Environment, needle
from logeval.tracks.ranking import RANKING, RankingEnvironment
from tests.references import as_policy

SIZES = ((16, 4), (100, 10), (871, 10))
PAIR_SIZES = ((32, 32), (871, 10))
HORIZON, REPLICAS = 10_000, 20
PAIR_HORIZON, PAIR_REPLICAS = 50_000, 8
REFERENCE_STEPS, PAIR_REFERENCE_STEPS, SECONDS = 150, 3000, 2.0
POLICIES = (
    "CascadeUCB1", "CascadeKL-UCB", "dcmKL-UCB", "First-Click", "Last-Click", "RankedUCB1",
    "RankedKL-UCB", "RankedExp3", "Random",
)  # fmt: skip
PAIR_POLICIES = ("Rank1ElimKL", "Rank1Elim", "UCB1Elim", "UCB1", "KL-UCB", "TS")


def rows() -> list[dict]:
    """One row per policy and size."""
    lists = [row(name, L, K) for L, K in SIZES for name in POLICIES]
    return lists + [pair_row(name, L, K) for L, K in PAIR_SIZES for name in PAIR_POLICIES]


def row(name: str, L: int, K: int) -> dict:
    horizon, replicas = (HORIZON, REPLICAS) if L < 500 else (HORIZON // 4, REPLICAS // 4)
    speed(name, environment(L, K, 2), 10)  # compile
    kernel = speed(name, environment(L, K, replicas), horizon)
    reference = reference_speed(name, environment(L, K, 1), HORIZON, REFERENCE_STEPS)
    return as_row(name, L, K, kernel, reference)


def pair_row(name: str, L: int, K: int) -> dict:
    """A policy of the rank-1 track; a list-step is a step of one replica."""
    speed(name, pair_environment(L, K, 2), 10)  # compile
    kernel = speed(name, pair_environment(L, K, PAIR_REPLICAS), PAIR_HORIZON)
    users = pair_environment(L, K, 1)
    reference = reference_speed(name, users, PAIR_HORIZON, PAIR_REFERENCE_STEPS)
    return as_row(name, L, K, kernel, reference)


def as_row(name: str, L: int, K: int, kernel: float, reference: float) -> dict:
    return {
        "policy": name,
        "L": L,
        "K": K,
        "list-steps/s": round(kernel),
        "to reference": round(kernel / reference),
    }


def environment(L: int, K: int, replicas: int) -> RankingEnvironment:
    problem = b_lb(L, K, p=0.2, gap=0.15, gamma=0.5)
    return RankingEnvironment([problem], [(0, r) for r in range(replicas)], seed=0)


def pair_environment(L: int, K: int, replicas: int) -> Rank1Environment:
    problem = needle(L, K, p=0.25, gap=0.5)
    return Rank1Environment([problem], [(0, r) for r in range(replicas)], seed=0)


def setting_of(name: str, users: RankingEnvironment | Rank1Environment, horizon: int) -> Setting:
    generators = [seeds.generator(0, "benchmark", r) for r in users.rows]
    return Setting.of(users, horizon, generators).tell(parse_policies([name])[0].cls, name)


def speed(name: str, users: RankingEnvironment | Rank1Environment, horizon: int) -> float:
    policy: Policy = parse_policies([name])[0].cls(setting_of(name, users, horizon))
    start = time.perf_counter()
    track = RANK1 if isinstance(users, Rank1Environment) else RANKING
    run(users, policy, Meters(track.meters, users, policy), [horizon])
    return horizon * len(users.replicas) / (time.perf_counter() - start)


def reference_speed(
    name: str, users: RankingEnvironment | Rank1Environment, horizon: int, steps: int
) -> float:
    """One replica; bounds and draws on pairs from five observations of every pair on."""
    policy = as_policy(name, setting_of(name, users, horizon))
    (one,) = policy.replicas
    before = 0
    if isinstance(users, Rank1Environment) and hasattr(one, "T"):
        problem, before = users.problems[0], 5 * len(one.T)
        p = np.outer(problem.u_bar, problem.v_bar).ravel()
        one.T[:], one.S[:] = 5.0, np.random.default_rng(0).binomial(5, p)
    start = time.perf_counter()
    done, regret = 0, 0.0
    while done < steps and time.perf_counter() < start + SECONDS:
        done += 1
        A = policy.recommend(before + done)
        clicks = users.step(A)
        regret += float(users.regret(A)[0])
        policy.update(before + done, A, clicks)
    return done / (time.perf_counter() - start)


def main() -> None:
    import pandas as pd

    print(pd.DataFrame(rows()).to_string(index=False))


if __name__ == "__main__":
    main()
