"""How often the intervals against today's ranker hold, on generated logs whose truth is known.

A log has 10 queries of the world of ``logeval generate``, dealt at random, with 12,000 SERPs in all
(Zipf: some 410 to 4,100 each) of lists that a good ranker shows. Models are fitted to it, and a
policy is run on 8 draws of them, on their fitted values, and on the true models with the items
that the log shows. The gain over all queries has its truth in the mean over all worlds; that of a
query in its true model.

    python -m benchmarks.break_even 200          coverage of break-even, cost and reward, and bias
    python -m benchmarks.break_even 100 lists    false alarms and power of ``trust.todays_lists``
    python benchmarks/run.py break_even          the first, on a few logs

``thin.py`` measures how much too good the best list is where queries have few SERPs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import logeval
from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import Options, ParameterEstimate
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.fitted import FittedModel
from logeval.clicks.fitting import fit_one
from logeval.clicks.lists import Lists
from logeval.clicks.models.registry import MODELS
from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.ranker import crossing
from logeval.reports.trust import todays_lists
from logeval.running import seeds
from logeval.storage import tables
from logeval.synthetic.sessions import MEAN_SERPS, draw_sessions
from logeval.synthetic.world import K, World, make_world

QUERIES, SERPS = 10, 12_000  # of a log
HORIZON, DRAWS, RUNS = 5000, 8, 8
POLICIES = {"DCM": "dcmKL-UCB", "PBM": "PBM-UCB"}  # by the model of the users
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
    return patterns_of(pa.Table.from_pylist(rows, schema=tables.CLICK_STATISTICS))


def true_model(world: World, fitted: FittedModel) -> FittedModel:
    """The true values in place of fitted ones."""
    queries = [query.query_id for query in fitted.queries]
    estimates = {
        p.field: ParameterEstimate.known(
            world.parameters[p.field][fitted.item_ids if p.kind == "item" else queries]
        )
        for p in MODELS[world.model].PARAMETERS
    }
    return replace(fitted, estimates=estimates)


def evaluations(world: World, data: Patterns, seed: int) -> dict[str, Runs]:
    """The runs on draws, on fitted values, and on the truth."""
    lists, name = Lists.of(data), world.model
    fitted = fit_one(name, data, Options("em"))
    setting: dict[str, Any] = {"policies": [POLICIES[name]], "horizon": HORIZON}
    setting |= {"quiet": True, "seed": seed}
    models = FittedModels({name: fitted}, lists=lists)
    truth = FittedModels({name: true_model(world, fitted)}, lists=lists)
    return {
        "draws": logeval.evaluate(models, draws=DRAWS, runs=1, **setting),
        "fitted": logeval.evaluate(models, runs=RUNS, **setting),
        "truth": logeval.evaluate(truth, runs=RUNS, **setting),
    }


def in_clicks(runs: Runs) -> Runs:
    """The same runs with clicks as their reward."""
    rows, problems = runs.rows, runs.problems()
    at = rows.schema.get_field_index("reward")
    rows = rows.set_column(at, "reward", rows["expected_clicks"])
    problems = problems.assign(ranker=problems["ranker_clicks"], best=problems["best_clicks"])
    table = pa.Table.from_pandas(problems, runs._problems.schema, preserve_index=False)
    return Runs(rows, problems=table)


def gains(runs: Runs) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the gain of each query at each of them, the mean over runs."""
    known = runs.problems().set_index("query")["ranker"]
    earned = runs.table().pivot_table(index="query", columns="t", values="reward")
    t = earned.columns.to_numpy(float)
    return t, earned.to_numpy() - np.outer(known[earned.index], t)


def judged(row: Any, true: dict[str, float]) -> dict[str, float]:
    """Which intervals hold, which ends are on the wrong side, and the estimates."""
    found: dict[str, float] = {}
    for name in MEASURES:
        low, high = (("low", "high") if name == "reward" else (f"{name}_low", f"{name}_high"))
        below, above = row[high] < true[name], row[low] > true[name]
        found |= {f"{name} holds": not (below or above), f"{name} too low": below}
        found |= {f"{name}": row[name], f"true {name}": true[name]}
    return found | {"never": np.isinf(row["break_even"]), "open": np.isinf(row["break_even_high"])}


def coverage(model: str, logs: int, seed: int) -> list[dict[str, Any]]:
    """A row for each reward, kind of simulator, and all queries of a log or each of them."""
    kinds = ("draws", "fitted", "truth")
    units = {"satisfaction": False, "clicks": True} if model == "DCM" else {"clicks": False}
    every: list[dict[str, Any]] = []
    curves: dict[str, list[np.ndarray]] = {unit: [] for unit in units}
    ends: dict[str, list[float]] = {unit: [] for unit in units}
    whole: list[tuple[str, str, Any]] = []
    t = np.zeros(0)
    for i, (world, data) in enumerate(worlds(model, logs, seed)):
        found = evaluations(world, data, seed * 10_000 + i)
        for unit, other in units.items():
            runs = {kind: in_clicks(found[kind]) if other else found[kind] for kind in kinds}
            t, gain = gains(runs["truth"])
            curves[unit].append(gain)
            each = runs["truth"].against_ranker(by_query=True).set_index("query")
            ends[unit] += each["reward"].tolist()
            for kind in kinds:
                whole.append((unit, kind, runs[kind].against_ranker().iloc[0]))
                if kind == "truth":
                    continue
                for _, row in runs[kind].against_ranker(by_query=True).iterrows():
                    truth = each.loc[row["query"], list(MEASURES)].to_dict()
                    every.append({"unit": unit, "simulators": kind, **judged(row, truth)})
        print(f"{model} {i + 1} of {logs}", end="\r", file=sys.stderr, flush=True)
    everywhere = []
    for unit in units:
        mean = np.concatenate(curves[unit]).mean(axis=0)
        true = {"break_even": crossing(t, mean), "cost": max(-mean.min(), 0.0)}
        true["reward"] = float(np.mean(ends[unit]))
        everywhere += [
            {"unit": unit, "simulators": kind, **judged(row, true)}
            for mine, kind, row in whole
            if mine == unit
        ]
    parts = {"all queries": everywhere, "each query": every}
    return [
        {"users": model, "of": of, "unit": unit, "simulators": kind, **summary(part)}
        for of, table in parts.items()
        for (unit, kind), part in pd.DataFrame(table).groupby(["unit", "simulators"])
    ]


def summary(part: pd.DataFrame) -> dict[str, float]:
    """Shares that hold; medians of break-even (it may be infinite), means of what is finite."""
    found: dict[str, float] = {"intervals": len(part)}
    for name in MEASURES:
        found |= {key: part[key].mean() for key in (f"{name} holds", f"{name} too low")}
        middle = "median" if name == "break_even" else "mean"
        found |= {key: part[key].agg(middle) for key in (name, f"true {name}")}
    return found | {
        "true never": np.isinf(part["true break_even"]).mean(),
        "never": part["never"].mean(),
        "open": part["open"].mean(),
    }


def lists(logs: int, seed: int) -> list[dict[str, Any]]:
    """How often a fit of a model to a log of the same, or of another, is said to be wrong."""
    rows = []
    for users in POLICIES:
        for i, (_, data) in enumerate(worlds(users, logs, seed)):
            for fitted in POLICIES:
                models = FittedModels(
                    {fitted: fit_one(fitted, data, Options("em"))}, lists=Lists.of(data)
                )
                for draws in (DRAWS, 0):
                    runs = logeval.evaluate(
                        models, policies=["Random"], horizon=1, runs=1, draws=draws, quiet=True
                    )
                    table = todays_lists(runs)
                    row = {"users": users, "fitted": fitted, "draws": draws}
                    row["faulted"] = table["faulted"].any()
                    row["queries faulted"] = table["faulted"].mean()
                    row["spread of z"] = table["z"].std()
                    row["simulated over logged"] = table["simulated"].sum() / table["log"].sum()
                    rows.append(row)
            print(f"{users} {i + 1} of {logs}", end="\r", file=sys.stderr, flush=True)
    means = pd.DataFrame(rows).groupby(["users", "fitted", "draws"]).mean().reset_index()
    return [{"logs": logs, **row} for row in means.to_dict("records")]


def rows(logs: int = 20, seed: int = 0) -> list[dict[str, Any]]:
    """Coverage with users of each model."""
    return [row for model in POLICIES for row in coverage(model, logs, seed)]


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    found = lists(many, seed=0) if "lists" in sys.argv else rows(many)
    print(pd.DataFrame(found).round(4).to_csv(index=False))
