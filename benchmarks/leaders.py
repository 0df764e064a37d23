"""How many leaders UniRank and GRAB hold and forget over ten million steps.

On settings A (PBM) and B (CM) of ``reproduction/modern.toml``. ``python -m benchmarks.leaders GRAB
A`` runs one of the four. The table of leaders has a fixed size, so memory does not grow.
"""

from __future__ import annotations

import sys

from benchmarks.modern import memory
from logeval.policies.registry import parse_policies
from logeval.policies.setting import Setting
from logeval.policies.shared.blocks import SETS, WAYS
from logeval.running import seeds
from logeval.tracks.ranking import RankingEnvironment
from logeval.tracks.registry import synthetic_problem
from reproduction.data import named

LOOKS = (100_000, 1_000_000, 10_000_000)


def run(name: str, letter: str) -> None:
    """Print a row at each of ``LOOKS``."""
    (problem,) = named(f"modern-{letter}").parts[0].problems
    users = RankingEnvironment([synthetic_problem(problem)], [(0, 0)], seed=0)
    spec = parse_policies([name])[0]
    setting = Setting.of(users, LOOKS[-1], [seeds.generator(0, "leaders", 0)])
    policy = spec.cls(setting.tell(spec.cls, name))
    for t in range(1, LOOKS[-1] + 1):
        A = policy.recommend(t)
        policy.update(t, A, users.step(A))
        if t in LOOKS:
            leaders = policy.memory.leaders
            print(
                f"{name} on {letter}, {t:,} steps: {(leaders.key != 0).sum()} leaders held of "
                f"{SETS * WAYS} places, {leaders.lost.sum()} forgotten, "
                f"{memory(policy) // 1000} KB",
                flush=True,
            )


if __name__ == "__main__":
    names = [arg for arg in sys.argv[1:] if arg not in ("A", "B")] or ["UniRank", "GRAB"]
    for name in names:
        for letter in [arg for arg in sys.argv[1:] if arg in ("A", "B")] or ["A", "B"]:
            run(name, letter)
