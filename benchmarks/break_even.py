"""How often the intervals against today's ranker hold, on generated logs whose truth is known.

A log has 10 queries of the world of ``logeval generate``, dealt at random, with 12,000 SERPs in all
(Zipf: some 410 to 4,100 each) of lists that a good ranker shows. Models are fitted to it, and a
policy is run on 8 draws of them, on their fitted values, and on the true models with the items
that the log shows. The gain over all queries has its truth in the mean over all worlds; that of a
query in its true model.

    python -m benchmarks.break_even 50 DCM       coverage of break-even, cost and reward, and bias
    python -m benchmarks.break_even 14 "DCM(classes=3)"    with users that differ
    python benchmarks/run.py break_even          the first, on a few logs

``thin.py`` measures how much too good the best list is where queries have few SERPs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import logeval
from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import Options, ParameterEstimate
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.fitted import FittedClasses, FittedModel
from logeval.clicks.fitting import fit_one
from logeval.clicks.lists import Lists
from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.ranker import crossing
from logeval.running import seeds
from logeval.running.names import parse_call
from logeval.storage.schemas import CLICK_STATISTICS, PROBLEMS
from logeval.synthetic.sessions import MEAN_SERPS, draw_sessions
from logeval.synthetic.world import K, World, make_world

QUERIES, SERPS = 10, 12_000  # of a log
HORIZON, DRAWS, RUNS = 5000, 8, 8
POLICIES = {"DCM": "dcmKL-UCB", "PBM": "PBM-UCB"}  # by the model of the users
USERS = (*POLICIES, "DCM(classes=3)")
NEVER = 1e18  # searches
MEASURES = ("break_even", "cost", "reward")


def worlds(model: str, logs: int, seed: int) -> Iterator[tuple[World, Patterns]]:
    """The world, and a log of some of its queries after the other; each query is in one log."""
    world = make_world(model, QUERIES * logs, seed)
    dealt = seeds.generator(seed, "break-even", model).permutation(QUERIES * logs)
    for i in range(logs):
        popularity = np.zeros(QUERIES * logs)
        popularity[dealt[i * QUERIES : (i + 1) * QUERIES]] = 1.0 / np.arange(1, QUERIES + 1)
        mine = replace(world, popularity=np.cumsum(popularity))
        yield mine, log_of(mine, SERPS, seed * 10_000 + i)


def log_of(world: World, serps: int, seed: int) -> Patterns:
    """Some SERPs of a world, as the estimators want them."""
    drawn = draw_sessions(world, int(serps / MEAN_SERPS), 1000, seed, 0)
    bits = (drawn.clicks > 0).astype(np.int64) @ (1 << np.arange(K))
    seen = pd.DataFrame(np.column_stack([drawn.query, drawn.lists, bits])[~drawn.test])
    folded = seen.value_counts(sort=False).reset_index().to_numpy().tolist()
    rows = [
        {"query_id": q, "holdout": False, "items": items, "clicks": c, "count": n}
        for q, *items, c, n in folded
    ]
    return patterns_of(pa.Table.from_pylist(rows, schema=CLICK_STATISTICS))


def true_model(world: World, fitted: FittedModel) -> FittedModel:
    """The true values in place of fitted ones."""
    queries = [query.query_id for query in fitted.queries]

    def known(one: FittedModel, parameters: dict[str, Any]) -> FittedModel:
        values = {
            p.field: parameters[p.field][one.item_ids if p.kind == "item" else queries]
            for p in world.kind.PARAMETERS
        }
        estimates = {field: ParameterEstimate.known(x) for field, x in values.items()}
        return replace(one, estimates=estimates)

    if world.share is None:
        return known(fitted, world.parameters)
    assert isinstance(fitted, FittedClasses)
    share = {"share": ParameterEstimate.known(world.share[queries])}
    return replace(fitted, estimates=share, parts=tuple(map(known, fitted.parts, world.classes)))


def evaluations(world: World, data: Patterns, seed: int) -> dict[str, Runs]:
    """The runs on draws, on fitted values, and on the truth."""
    lists, name = Lists.of(data), world.model
    base, given = parse_call(name)
    fitted = fit_one(name, data, Options("em", classes=int(given.get("classes", 1))))
    setting: dict[str, Any] = {"policies": [POLICIES[base]], "horizon": HORIZON}
    setting |= {"quiet": True, "seed": seed}
    models = FittedModels({name: fitted}, lists=lists)
    truth = FittedModels({name: true_model(world, fitted)}, lists=lists)
    return {
        "draws": logeval.evaluate(models, draws=DRAWS, runs=1, **setting),
        "fitted": logeval.evaluate(models, runs=RUNS, **setting),
        "truth": logeval.evaluate(truth, runs=RUNS, **setting),
    }


def in_units(runs: Runs) -> list[Runs]:
    """The runs, and where they count satisfaction the same runs with clicks as their reward."""
    problems = runs.problems()
    if problems["reward"].iloc[0] == "clicks":
        return [runs]
    at = runs.rows.schema.get_field_index("reward")
    rows = runs.rows.set_column(at, "reward", runs.rows["expected_clicks"])
    problems = problems.assign(
        reward="clicks", ranker=problems["ranker_clicks"], best=problems["best_clicks"]
    )
    return [runs, Runs(rows, problems=pa.Table.from_pandas(problems, PROBLEMS, False))]


def gains(runs: Runs) -> pd.DataFrame:
    """The gain of each query (rows) at each step (columns), the mean over runs."""
    ranker = runs.problems().set_index("query")["ranker"]
    earned = runs.to_pandas().pivot_table(index="query", columns="t", values="reward")
    return earned - np.outer(ranker[earned.index], earned.columns)


def judged(table: pd.DataFrame, true: pd.DataFrame) -> pd.DataFrame:
    """Which intervals hold the truth, and which end below it; both tables have the same rows."""
    found = table[["unit", "simulators", *MEASURES]].copy()
    for name, ends in zip(MEASURES, ("break_even_", "cost_", ""), strict=True):
        low, high = table[f"{ends}low"], table[f"{ends}high"]
        found[f"true {name}"] = true[name].to_numpy()
        found[f"{name} too low"] = high < found[f"true {name}"]
        found[f"{name} holds"] = ~found[f"{name} too low"] & (low <= found[f"true {name}"])
    found["true never"] = np.isinf(found["true break_even"])
    at, true = (
        np.nan_to_num(found[name], posinf=NEVER) for name in ("break_even", "true break_even")
    )
    found["comes before the truth"] = (at < true) + 0.5 * (at == true)
    return found.assign(
        never=np.isinf(table["break_even"]), open=np.isinf(table["break_even_high"])
    )


def coverage(model: str, logs: int, seed: int) -> list[dict[str, Any]]:
    """A row for all queries of a log, and for each of them, by reward and kind of simulator."""
    whole, each, curves = [], [], []
    for i, (world, data) in enumerate(worlds(model, logs, seed)):
        for kind, found in evaluations(world, data, seed * 10_000 + i).items():
            for runs in in_units(found):
                whole.append(runs.against_ranker().assign(simulators=kind))
                each.append(runs.against_ranker(by_query=True).assign(simulators=kind, log=i))
                if kind == "truth":
                    curves.append(gains(runs).assign(unit=whole[-1]["unit"].iloc[0]))
        print(f"{model} {i + 1} of {logs}", end="\r", file=sys.stderr, flush=True)
    everywhere, by_query = pd.concat(whole), pd.concat(each)
    truth = by_query[by_query["simulators"] == "truth"].set_index(["unit", "log", "query"])
    mean = pd.concat(curves).groupby("unit").mean()
    expected = pd.DataFrame(
        {
            "break_even": [crossing(mean.columns.to_numpy(float), y) for y in mean.to_numpy()],
            "cost": -mean.min(axis=1),
            "reward": truth["reward"].groupby("unit").mean(),
        },
        index=mean.index,
    )
    by_query = by_query[by_query["simulators"] != "truth"]
    keys = pd.MultiIndex.from_frame(by_query[["unit", "log", "query"]])
    parts = {
        "all queries": judged(everywhere, expected.loc[everywhere["unit"]]),
        "each query": judged(by_query, truth.loc[keys]),
    }
    return [
        {"users": model, "of": of, "unit": unit, "simulators": kind, **summary(part)}
        for of, table in parts.items()
        for (unit, kind), part in table.groupby(["unit", "simulators"])
    ]


def summary(part: pd.DataFrame) -> dict[str, float]:
    """Shares that hold; medians of break-even, which may be infinite, and means of the others."""
    numbers = part.drop(columns=["unit", "simulators"])
    found = numbers.drop(columns=["break_even", "true break_even"]).mean().to_dict()
    medians = numbers[["break_even", "true break_even"]].median().to_dict()
    return {"intervals": len(part), **{str(key): x for key, x in (medians | found).items()}}


def rows(logs: int = 20, seed: int = 0, users: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Coverage with users of each model, or of some."""
    return [row for model in users or USERS for row in coverage(model, logs, seed)]


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    asked = [name for name in USERS if name in sys.argv]
    found = rows(many, users=asked)
    print(pd.DataFrame(found).round(4).to_csv(index=False))
