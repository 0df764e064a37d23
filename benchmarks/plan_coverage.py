"""How often the interval of a plan's difference holds the truth: best list against production.

    python -m benchmarks.plan_coverage [--logs 25]

Each repetition draws a log of a known DCM (or PBM, UBM), fits the model, and plans "logged against
best" with the draws of the fit, as `plan` does. The best list is chosen by the same clicks that the
draws come from, so this is where a winner would be flattered. Bias and coverage of the difference
in what a list earns by the model's own reward, with best lists of all items, and of those that were
shown 100 times; with 25 logs the standard error of a coverage of 95% is 4.4 points.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from benchmarks.judgments import log_of
from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.lists import Lists
from logeval.log.queries import Query
from logeval.planning.experiment import _interval
from logeval.planning.rankers import shown_by
from logeval.synthetic.world import make_world
from logeval.tracks.fitted import fitted_queries

QUERIES = 10


def one(truth: str, serps: int, least: int, seed: int) -> dict:
    world = make_world(truth, QUERIES, seed)
    true = next(iter(world.models().fitted.values()))
    data = patterns_of(log_of(world, serps, seed))
    kind = truth.upper()
    fitted = fit_one(kind, data, Options("em"))
    models = FittedModels({kind: fitted}, {}, Lists.of(data))
    queries = fitted_queries(models, None, None, None)
    reward = queries[0].model.rewards[0]
    rankers = [shown_by(name, models, queries, reward, 0, least) for name in ("logged", "best")]

    def effect(users) -> float:
        values = []
        for f, *both in zip(queries, *rankers, strict=True):
            model = users.of(Query.of(f.query))
            a, b = (
                s.p @ model.expected_reward(model.rows_of(f.model.items[s.A]), reward) for s in both
            )
            values.append(b - a)
        return float(np.average(values, weights=fitted.serps))

    low, high = _interval(draws := [effect(one) for one in fitted.some_draws(20)])
    wanted, planned = effect(true), float(np.mean(draws))
    return {"truth": kind, "reward": reward, "min_shown": least, "true": wanted, "planned": planned,
            "fitted": effect(fitted), "held": low <= wanted <= high}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=25)
    asked = parser.parse_args()
    rows = [
        one(truth, 1_000, least, 1000 + i)
        for truth in ("dcm", "pbm", "ubm")
        for least in (0, 100)
        for i in range(asked.logs)
    ]
    table = pd.DataFrame(rows).groupby(["truth", "reward", "min_shown"]).mean()
    print(table.to_string(float_format="%.4f"))


if __name__ == "__main__":
    main()
