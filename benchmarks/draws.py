"""How often the interval of a policy's regret holds its regret under the true models.

A log is drawn from known models of one query or more, models are fitted to it, and a policy is run
on draws of their parameters and on the fitted values alone. Its regret under the true models, from
many runs, is in the interval of 95%, or not. Three worlds of DCMs:

small   L = 8 items, K = 3, 400 SERPs, v uniform in [0.3, 0.8], one query and six
wide    8 queries, L = 100 of which some 40 are shown at most 20 times, K = 6, 2,000 SERPs, lists by
        quality, v = .5 .3 .1 .003 .001 .001
thin    the same with 300 SERPs

    python benchmarks/run.py draws
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import logeval
from benchmarks.intervals import clicks_of
from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.dcm import DCM
from logeval.log.queries import Query
from logeval.running import seeds

DRAWS, TRUE_RUNS = 20, 20
V = np.array([0.5, 0.3, 0.1, 0.003, 0.001, 0.001])


def small(Q: int, rng: np.random.Generator) -> tuple[list[DCM], Patterns]:
    """A few items, all of them well known."""
    models = [
        DCM(items=np.arange(8), K=3, w=rng.beta(2, 5, 8), v=rng.uniform(0.3, 0.8, 3))
        for _ in range(Q)
    ]
    return models, clicks_of(models, 400, rng, 3)


def wide(n: int, rng: np.random.Generator) -> tuple[list[DCM], Patterns]:
    """Many rare items, a good ranker, terminations near 0."""
    models = [DCM(items=np.arange(100), K=6, w=rng.beta(1, 8, 100), v=V) for _ in range(8)]
    return models, clicks_of(models, n, rng, 6, quality=2.5)


WORLDS: dict[str, Callable[[np.random.Generator], tuple[list[DCM], Patterns]]] = {
    "small, 1 query": partial(small, 1),
    "small, 6 queries": partial(small, 6),
    "wide": partial(wide, 2000),
    "thin": partial(wide, 300),
}


def repetition(world: str, seed: int, policy: str) -> dict[str, float]:
    """Regret under the truth, the fitted values and draws; whether the intervals hold the first."""
    rng = seeds.generator(seed, "draws benchmark", world)
    models, data = WORLDS[world](rng)
    fitted = FittedModels({"DCM": fit_one("DCM", data, Options("em"))})
    true = [("DCM", Query(q), model) for q, model in enumerate(models)]
    horizon = 300 if world.startswith("small") else 2000
    setting: dict[str, Any] = {"policies": [policy], "horizon": horizon, "checkpoints": [horizon]}
    setting |= {"quiet": True, "seed": seed}
    regret = logeval.evaluate(true, runs=TRUE_RUNS, **setting).summary()["regret"].iloc[0]
    out = {"true regret": regret, "true optimum": np.mean([m.optimum().value for m in models])}
    for name, draws, runs in (("fitted", 0, TRUE_RUNS), ("draws", DRAWS, 1)):
        row = logeval.evaluate(fitted, runs=runs, draws=draws, **setting).summary().iloc[0]
        held = row["low"] <= regret <= row["high"]
        out |= {f"{name} regret": row["regret"], f"{name} hold": float(held)}
        out[f"{name} width"] = (row["high"] - row["low"]) / regret
    dcm = fitted.named("DCM")
    out["fitted optimum"] = np.mean([dcm.of(q).optimum().value for q in dcm.queries])
    drawn_optima = [
        dcm.drawn(d + 1).of(q).optimum().value for d in range(DRAWS) for q in dcm.queries
    ]
    out["draws optimum"] = np.mean(drawn_optima)
    return out


def rows(repetitions: int = 60, policy: str = "dcmKL-UCB", seed: int = 0) -> list[dict[str, Any]]:
    """Means over logs of each world."""
    out = []
    for world in WORLDS:
        found = pd.DataFrame(
            [repetition(world, seed * 10_000 + r, policy) for r in range(repetitions)]
        )
        out.append({"world": world, "logs": repetitions, **found.mean().to_dict()})
    return out
