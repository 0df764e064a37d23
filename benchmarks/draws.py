"""How often the interval of a policy's regret holds its regret under the true models.

A log is drawn from known models of one query or more, models are fitted to it, and a policy is run
on draws of their parameters and on the fitted values alone. Its regret under the true models, from
many runs, is in the interval of 95%, or not. Small problems: DCMs with L = 8 items, K = 3 and
400 SERPs.

    python benchmarks/run.py draws
"""

from __future__ import annotations

from typing import Any

import numpy as np

import logeval
from benchmarks.intervals import clicks_of
from logeval import seeds
from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.fit import fit_one
from logeval.clicks.models.dcm import DCM
from logeval.log.queries import Query

L, K, SERPS = 8, 3, 400
HORIZON, RUNS, DRAWS, TRUE_RUNS = 300, 4, 20, 40


def truths(Q: int, rng: np.random.Generator) -> list[DCM]:
    """The models of Q queries."""
    items = np.arange(L)
    return [
        DCM(items=items, K=K, w=rng.beta(2, 5, L), v=rng.uniform(0.3, 0.8, K)) for _ in range(Q)
    ]


def repetition(Q: int, seed: int, policy: str) -> dict[str, bool]:
    """Whether the interval holds the true regret, with draws and without."""
    rng = seeds.generator(seed, "draws benchmark", Q)
    models = truths(Q, rng)
    data = clicks_of(models, SERPS, rng, K)
    fitted = FittedModels({"DCM": fit_one("DCM", data, Options("em"))})
    true = [("DCM", Query(q), model) for q, model in enumerate(models)]
    setting: dict[str, Any] = {"policies": [policy], "horizon": HORIZON, "checkpoints": [HORIZON]}
    setting |= {"quiet": True, "seed": seed}
    regret = logeval.evaluate(true, runs=TRUE_RUNS, **setting).summary()["regret"].iloc[0]
    found = {}
    for name, draws, runs in (("draws", DRAWS, RUNS), ("fitted values", 0, DRAWS * RUNS)):
        row = logeval.evaluate(fitted, runs=runs, draws=draws, **setting).summary().iloc[0]
        found[name] = bool(row["low"] <= regret <= row["high"])
    return found


def rows(repetitions: int = 100, policy: str = "dcmKL-UCB", seed: int = 0) -> list[dict[str, Any]]:
    """Coverage for one query and for several."""
    out = []
    for Q in (1, 6):
        held = [repetition(Q, seed * 10_000 + r, policy) for r in range(repetitions)]
        share = {name: float(np.mean([h[name] for h in held])) for name in held[0]}
        out.append({"queries": Q, "repetitions": repetitions, "policy": policy, **share})
    return out
