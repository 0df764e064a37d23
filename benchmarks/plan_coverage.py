"""What a plan says of a best list against the truth: difference, interval, power.

    python -m benchmarks.plan_coverage [--truth dcm] [--logs 12]

Each repetition draws a log of known users (10 queries of 12 to 800 items, most of them rare, 1,000
SERPs each), fits their model, and plans "logged against best" as `plan` does, with and without
rehearsals. ``true`` is the difference that the true users see between these two rankers, ``held``
whether the interval holds it, ``power`` the power that a test of the planned number of searches
then has; it was planned for 0.8. Of the A/B tests of the model's metrics and of both interleavings;
``none`` is the share of logs for which no number of searches is enough, left out of ``power``.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
import pandas as pd

from benchmarks.judgments import log_of
from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fit import Fit
from logeval.clicks.fitting import fit_one
from logeval.clicks.lists import Lists
from logeval.log.queries import Query
from logeval.planning import effects
from logeval.planning.effects import _moved, effects_of, pairs_of, traffic_of
from logeval.planning.plan import Plan
from logeval.planning.power import power
from logeval.running.arrays import place_of
from logeval.synthetic.world import make_world
from logeval.tracks.fitted import fitted_queries

QUERIES, SERPS = 10, 1_000
EFFORT = 0.1  # of the lists that `plan` draws of interleavings


def rows_of(truth: str, seed: int, rehearsals: int) -> list[dict]:
    """A row per design and metric, without rehearsals and with them."""
    world = make_world(truth, QUERIES, seed)
    (true,) = world.models().fitted.values()
    data = patterns_of(log_of(world, SERPS, seed))
    kind = truth.upper()
    fitted = fit_one(kind, data, Options("em"))
    made = {"stage": Fit.NAME, "arguments": {"models": [kind]}}
    models = FittedModels({kind: fitted}, made, Lists.of(data))
    found = []
    for n in (0, rehearsals):
        asked = Plan(models, metric="clicks", bandit=None, rehearsals=n, seed=seed, quiet=True)
        plan = asked.make({})
        queries = fitted_queries(models, None, "clicks", None)
        pairs, _ = pairs_of(asked, models, queries, "clicks")
        theirs = [true.of(Query.of(f.query)) for f in queries]
        rows = [place_of(f.model.items, m.items) for f, m in zip(queries, theirs, strict=True)]
        moved = [_moved(pair, to) for pair, to in zip(pairs, rows, strict=True)]
        metrics = plan.table.loc[plan.table["design"] == "A/B test", "metric"].tolist()
        seen = effects_of([m.users for m in theirs], moved, traffic_of(queries, "logged"), metrics)
        for row in plan.table.itertuples():
            effect = seen[row.design, row.metric]
            known = math.isfinite(row.searches)
            right = np.sign(effect.mean) == np.sign(row.effect)
            reached = float(power([effect], row.searches)) * right if known else math.nan
            found.append({
                "users": kind, "design": row.design, "metric": row.metric, "rehearsals": n,
                "true": effect.mean, "planned": row.effect, "error": row.effect - effect.mean,
                "held": row.low <= effect.mean <= row.high, "power": reached, "none": not known,
            })  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", default="dcm")
    parser.add_argument("--logs", type=int, default=12)
    parser.add_argument("--rehearsals", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1000)
    asked, start = parser.parse_args(), time.process_time()
    effects.PAIRS, effects.DRAWN = (round(n * EFFORT) for n in (effects.PAIRS, effects.DRAWN))
    seeds = range(asked.seed, asked.seed + asked.logs)
    rows = pd.DataFrame([r for s in seeds for r in rows_of(asked.truth, s, asked.rehearsals)])
    by = rows.groupby(["users", "design", "metric", "rehearsals"])
    table = by.mean()
    table["se of error"] = by["error"].sem()
    table["se of power"] = by["power"].sem()
    print(table.to_string(float_format="%.4f"))
    print(f"{asked.logs} logs, {time.process_time() - start:.0f} CPU seconds")


if __name__ == "__main__":
    main()
