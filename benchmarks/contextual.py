"""Rounds per second of the contextual policies, against direct refits and inverses, in one run.

One query, L = 100, K = 10, random features of norm 1; rounds of all replicas count. The reference
(``tests/references``) fits all rows again and inverts V in every round; its
speed is measured after as many rows as a run of 5,000 rounds has seen in the middle. Seconds are
of the processor, the fewest of three repetitions: others may be using the machine.
``python -m benchmarks.contextual`` prints the table.
"""

from __future__ import annotations

import time

import numpy as np

from logeval.policies.registry import parse_policies
from logeval.policies.setting import Policy, Setting
from logeval.running import seeds
from logeval.tracks.contextual import ContextualEnvironment, contextual
from tests.references import as_policy

L, K, REPLICAS = 100, 10, 20
DIMENSIONS = (200, 400)
ROUNDS, DIRECT_ROWS, DIRECT_ROUNDS, REPETITIONS = 400, 10_000, 3, 3
POLICIES = (
    "GL-CDCM", "LR", "GL-CDCM(update=sgd)", "LR(update=sgd)", "CascadeLinUCB", "CascadeLinTS",
    "C3-UCB", "LogisticTS", "UCB-GLM",
)  # fmt: skip


def rows() -> list[dict]:
    """One row per policy and dimension."""
    return [row(name, d) for d in DIMENSIONS for name in POLICIES]


def row(name: str, d: int) -> dict:
    speed(name, d, 2, 5)  # compile
    kernel = max(speed(name, d, REPLICAS, ROUNDS) for _ in range(REPETITIONS))
    direct = direct_speed(name, d)
    return {
        "policy": name,
        "d": d,
        "rounds/s": round(kernel),
        "direct rounds/s": round(direct, 1),
        "to direct": round(kernel / direct),
    }


def made(name: str, d: int, replicas: int, reference: bool) -> tuple[ContextualEnvironment, Policy]:
    problem = contextual(L, K, d, 1.0, "fixed")
    users = ContextualEnvironment([problem], [(0, r) for r in range(replicas)], 0)
    generators = [seeds.generator(0, "benchmark", r) for r in range(replicas)]
    setting = Setting.of(users, ROUNDS, generators)
    if reference:
        return users, as_policy(name, setting, "contextual")
    return users, parse_policies([name], "contextual")[0].make(setting)


def steps(users: ContextualEnvironment, policy: Policy, n: int) -> float:
    start = time.process_time()
    for t in range(1, n + 1):
        A = policy.recommend(t)
        policy.update(t, A, users.step(A))
    return time.process_time() - start


def speed(name: str, d: int, replicas: int, n: int) -> float:
    users, policy = made(name, d, replicas, False)
    return replicas * n / steps(users, policy, n)


def direct_speed(name: str, d: int) -> float:
    """The reference of one replica, with rows behind it."""
    users, policy = made(name, d, 1, True)
    (one,) = policy.replicas  # type: ignore[attr-defined]
    rng = np.random.default_rng(0)
    one.X = users.at(1).X[0, rng.integers(L, size=DIRECT_ROWS)]
    one.y = (rng.random(DIRECT_ROWS) < 0.5).astype(float)
    return DIRECT_ROUNDS / steps(users, policy, DIRECT_ROUNDS)


def main() -> None:
    import pandas as pd

    print(pd.DataFrame(rows()).to_string(index=False))


if __name__ == "__main__":
    main()
