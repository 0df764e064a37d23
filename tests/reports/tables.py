"""Runs tables written by hand, for verdicts that everybody can check."""

import numpy as np
import pandas as pd
import pyarrow as pa

from logeval.evaluation.results import Runs
from logeval.facts import Fact
from logeval.storage.schemas import PROBLEMS, RUNS

STEPS = (1, 50, 100)


def rows(regrets, simulator="DCM", track="ranking", shape=None, **columns):
    """Runs from the final regret of each query, by policy: {"A": [1.0, 2.0]}.

    ``shape`` gives the share of the final regret at each of STEPS; default: a flat curve.
    """
    shape = shape or (0.5, 0.9, 1.0)
    found = [
        {
            "simulator": simulator,
            "track": track,
            "policy": policy,
            "query": f"{q}@0",
            "draw": 0,
            "run": 0,
            "t": t,
            "regret": final * part,
            "reward": t - final * part,
            "optimal_reward": float(t),
            "clicks": 0,
            "optimal_steps": 0,
            **columns,
        }
        for policy, finals in regrets.items()
        for q, final in enumerate(finals)
        for t, part in zip(STEPS, shape, strict=True)
    ]
    return pd.DataFrame(found)


def runs_of(*frames, problems=(), notes=(), simulators=None):
    """The runs of some tables."""
    table = pd.concat(frames).reindex(columns=RUNS.names)
    rows = pa.Table.from_pandas(table, schema=RUNS, preserve_index=False)
    known = pa.Table.from_pylist(list(problems), schema=PROBLEMS)
    facts = [Fact("of-the-models", more={"note": note}) for note in notes]
    return Runs(rows, problems=known, facts=facts, simulators=simulators)


def problem(query="0@0", simulator="DCM", track="ranking", **facts):
    """A row of the table of problems."""
    about = {"draw": 0, "reward": "satisfaction", "positions": 4, "items": 8, "proven": True}
    key = {"simulator": simulator, "track": track, "query": query}
    return {**key, **about, "n": 100, "best": 1.0, **facts}


def around(mean, spread, n=12, seed=0):
    """n regrets with this mean and spread."""
    x = np.random.default_rng(seed).normal(size=n)
    return list(mean + spread * (x - x.mean()) / x.std())
