"""List-steps per second of the modern list policies, as a ratio to their references, and memory.

Both meet the same users of a PBM whose attraction falls from 0.5 to 0.05 and whose examination
falls from 1 to 0.2, environment included. Processor time is measured, so that other programs on
the machine matter little. Memory is that of all arrays a policy holds, per replica, random numbers
drawn ahead included. ``python -m benchmarks.modern 1 CTS`` prints the row of a policy at the second
of the sizes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from logeval.policies.registry import parse_policies
from logeval.policies.setting import Setting
from logeval.running import seeds
from logeval.running.seeds import Uniforms
from logeval.tracks.ranking import RankingEnvironment
from logeval.tracks.registry import synthetic_problem
from tests.references import as_policy

SIZES = ((10, 5), (100, 10), (871, 10))
HORIZON, REPLICAS, SECONDS = 10_000, 20, 2.0
POLICIES = (
    "TopRank", "UniRank", "UniRank(optimism=loglog)", "CTS", "TS-Cascade", "PBM-UCB",
    "PBM-UCB(kappa=estimated)", "PBM-PIE", "PBM-TS", "BC-MPTS", "PB-MHB", "GRAB", "S-GRAB",
    "KL-CombUCB1", "BubbleRank(items=base)", "BatchRank",
)  # fmt: skip


def rows() -> list[dict]:
    """One row per policy and size."""
    return [row(name, L, K) for L, K in SIZES for name in POLICIES]


def row(name: str, L: int, K: int) -> dict:
    steps(name, L, K, 2, False, 5, SECONDS)  # compile
    replicas = REPLICAS if L < 500 else 4
    ours, policy = steps(name, L, K, replicas, False, HORIZON, 2 * SECONDS)
    reference, _ = steps(name, L, K, 1, True, HORIZON, SECONDS)
    return {
        "policy": name,
        "L": L,
        "K": K,
        "list-steps/s": round(ours),
        "to reference": round(ours / reference),
        "KB/replica": round(memory(policy) / replicas / 1000),
    }


def memory(policy: object) -> int:
    """The bytes of all arrays that a policy holds."""
    found: dict[int, int] = {}
    held = list(vars(policy).values())
    while held:
        one = held.pop()
        if isinstance(one, np.ndarray):
            whole = one if one.base is None else one.base
            found[id(whole)] = whole.nbytes
        elif isinstance(one, tuple):
            held.extend(one)
        elif isinstance(one, Uniforms):
            held.extend(vars(one).values())
    return sum(found.values())


def steps(
    name: str, L: int, K: int, replicas: int, reference: bool, most: int, seconds: float
) -> tuple[float, Any]:
    """List-steps per second of processor time, over at most the given steps or seconds."""
    w = "/".join(f"{p:.6g}" for p in np.linspace(0.5, 0.05, L))
    e = "/".join(f"{p:.6g}" for p in np.linspace(1.0, 0.2, K))
    base = ">".join(str(i) for i in range(1, K + 1))
    users = RankingEnvironment(
        [synthetic_problem(f"PBM(w={w},e={e},base={base})")],
        [(0, r) for r in range(replicas)],
        seed=0,
    )
    generators = [seeds.generator(0, "benchmark", r) for r in range(replicas)]
    setting = Setting.of(users, HORIZON, generators)
    policy: Any = as_policy(name, setting) if reference else parse_policies([name])[0].make(setting)
    start, t = time.process_time(), 0
    while t < most and (t % 16 or time.process_time() < start + seconds):
        t += 1
        A = policy.recommend(t)
        clicks = users.step(A)
        users.regret(A)
        policy.update(t, A, clicks)
    return t * replicas / (time.process_time() - start), policy


def main(sizes: Sequence[tuple[int, int]], names: Sequence[str]) -> None:
    for L, K in sizes:
        for name in names:
            found = row(name, L, K)
            print("  ".join(f"{value:>12}" for value in found.values()), flush=True)


if __name__ == "__main__":
    numbers = [SIZES[int(i)] for i in sys.argv[1:] if i.isdigit()]
    main(numbers or SIZES, [name for name in sys.argv[1:] if not name.isdigit()] or POLICIES)
