"""How often a replayed policy's interval holds: python -m benchmarks.replay_policies [repetitions]

Logs from a logger that shows all lists alike, to users of a DCM. The truth is the mean of many
simulated runs with the true parameters. Once a replica passes a fifth of its log, once most of it:
the shuffles of one log then share most of its SERPs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from logeval import evaluate
from logeval.clicks.models.dcm import DCM
from logeval.log.queries import Query
from logeval.policies.registry import parse_policies
from logeval.replay.policy import curve, replayed, streams_of
from logeval.running import seeds
from tests.replay.worlds import all_lists, logged_of

L, K, SERPS, SHUFFLES = 4, 2, 12_000, 10
MODEL = DCM(items=np.arange(L), K=K, w=np.array([0.6, 0.4, 0.2, 0.1]), v=np.array([0.8, 0.5]))
POLICIES = ("dcmKL-UCB", "RankedKL-UCB")
STEPS = (200, 800)  # of the 1,000 SERPs that show a wanted list in the mean


def draw(repetition: int) -> Any:
    """The patterns of a log."""
    rng = seeds.generator(12, "replay of policies", repetition)
    A = all_lists(L, K)[rng.integers(L * (L - 1), size=SERPS)]
    return logged_of(A, MODEL.sample(A, rng.random(A.shape))).patterns


def rows(repetitions: int = 300, simulated: int = 4000) -> list[dict[str, Any]]:
    """One row per policy and number of steps."""
    truth = evaluate(
        [("DCM", Query(0), MODEL)], policies=list(POLICIES), horizon=STEPS[-1], runs=simulated,
        reward="clicks", checkpoints=STEPS, quiet=True, seed=99,
    ).to_pandas()  # fmt: skip
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for r in range(repetitions):
        streams = streams_of(draw(r), None)
        for spec in parse_policies(POLICIES):
            table, _ = replayed(spec, streams, SHUFFLES, STEPS, seed=r)
            for t in STEPS:
                found.setdefault((spec.name, t), []).append(curve(table, t))
    out = []
    for (name, t), pairs in found.items():
        value, half = np.array(pairs).T
        true, _ = curve(truth[truth["policy"] == name], t)
        error = value - true
        out.append(
            {
                "policy": name,
                "steps": t,
                "true value": true,
                "bias": np.nanmean(error),
                "its s.e.": np.nanstd(error) / np.sqrt(repetitions),
                "s.d.": np.nanstd(error),
                "mean half width": np.nanmean(half),
                "exhausted": np.isnan(half).mean(),
                "coverage": (np.abs(error) <= half)[~np.isnan(half)].mean(),
            }
        )
    return out


if __name__ == "__main__":
    import pandas as pd

    found = rows(*(int(x) for x in sys.argv[1:2]))
    print(pd.DataFrame(found).to_string(index=False, float_format="%.4f"))
