"""List-steps per second of policies on one core: kernels against references, in one run.

Both are the same policy on the same users, which are counted in; the reference is plain NumPy, one
step and replica at a time (``tests/references``). Seconds are of the processor, so that other
programs on the machine matter little. ``python -m benchmarks.policies [NAME ...]`` prints some.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import pandas as pd

from logeval.policies.registry import parse_policies
from logeval.policies.setting import Setting
from logeval.running import seeds
from logeval.tracks.registry import TRACKS, synthetic_problem
from tests.references import as_policy

HORIZON, SECONDS = 10_000, 0.7
LISTS = [
    "CascadeUCB1", "CascadeKL-UCB", "dcmKL-UCB", "RankedKL-UCB", "RankedExp3", "TopRank",
    "UniRank", "CTS", "PBM-UCB(kappa=estimated)", "PB-MHB", "GRAB",
]  # fmt: skip
LARGE = ["dcmKL-UCB", "RankedKL-UCB", "TopRank"]
PAIRS = ["Rank1ElimKL", "UCB1", "TS"]
CONTEXTUAL = ["GL-CDCM", "LR", "CascadeLinUCB", "LogisticTS"]


def problems() -> list[tuple[str, str, list[str]]]:
    """Track, synthetic problem, and policies."""
    sizes = ((16, 4, LISTS), (100, 10, LISTS), (871, 10, LARGE))
    found = [("ranking", f"B_LB(L={L},K={K},p=0.2,gap=0.15,gamma=0.5)", of) for L, K, of in sizes]
    found += [("rank1", f"rank1(K={K},L={L},p=0.25,gap=0.5)", PAIRS) for L, K in ((32, 32),)]
    return [
        *found,
        ("contextual", "contextual(L=100,K=10,d=200,norm=1,contexts=fixed)", CONTEXTUAL),
    ]


def speed(track: str, problem: str, name: str, replicas: int, reference: bool) -> float:
    """List-steps per second of processor time, of as many steps as fit."""
    users = TRACKS[track].environment(
        [synthetic_problem(problem)], [(0, r) for r in range(replicas)], 0
    )
    generators = [seeds.generator(0, "benchmark", r) for r in range(replicas)]
    setting = Setting.of(users, HORIZON, generators)
    policy: Any = (
        as_policy(name, setting, track)
        if reference
        else parse_policies([name], track)[0].make(setting)
    )
    start, t = time.process_time(), 0
    while t < HORIZON and (t % 16 or time.process_time() < start + SECONDS):
        t += 1
        A = policy.recommend(t)
        clicks = users.step(A)
        users.regret(A)
        policy.update(t, A, clicks)
    return t * replicas / (time.process_time() - start)


def rows(names: list[str] | None = None) -> list[dict[str, Any]]:
    """One row per policy and problem."""
    found = []
    for track, problem, policies in problems():
        for name in (one for one in policies if not names or one in names):
            speed(track, problem, name, 20, False)  # compile
            kernel, plain = (
                speed(track, problem, name, 20, False),
                speed(track, problem, name, 1, True),
            )
            found.append(
                {
                    "policy": name,
                    "problem": problem.partition(",p=")[0],
                    "list-steps/s": round(kernel),
                    "to reference": round(kernel / plain),
                }
            )
    return found


if __name__ == "__main__":
    print(pd.DataFrame(rows(sys.argv[1:])).to_string(index=False))
