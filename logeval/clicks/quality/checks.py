"""Predictive checks: does a fitted model click as the log does, on the lists of the log?

Users of the model are simulated on the held-out lists, many times, and compared with the log in
what ``features.CHECKS`` names: over all queries and by query. The simulations carry what is not
known of the parameters: to each, the effect of a draw of (true - fitted) is added, to first order.
Gelman, Meng, Stern: Posterior predictive assessment of model fitness (Statistica Sinica, 1996).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from logeval import seeds, tables
from logeval.arrays import Floats, Ints
from logeval.clicks.collection import FittedModels, read_models
from logeval.clicks.estimation.click_statistics import fold
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.fit import FitPlan
from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.deviations import FAMILIES, LEVEL, Deviations, Family, deviations
from logeval.clicks.quality.features import CHECKS, TOP_ITEMS, Components, Layout
from logeval.clicks.quality.ranker_change import RankerChange, changed_rankers
from logeval.clicks.quality.simulate import (
    QueryRows,
    observed_features,
    replicates,
    sensitivity,
)
from logeval.clicks.quality.truth import against_truth
from logeval.clicks.quality.uncertainty import ParameterErrors
from logeval.clicks.quality.verdict import Verdict, verdict_of
from logeval.errors import LogevalError
from logeval.log.log import Log, load
from logeval.log.queries import Query
from logeval.progress import Progress

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SIMULATIONS = 200
FEWEST = int(FAMILIES / LEVEL)  # simulations, below which no p-value is small enough
SERPS = 20_000  # more held-out SERPs than this are sampled from
QUICK_SIMULATIONS, QUICK_SERPS = 80, 2_000  # behind the one-line verdict of a fit
QUERY_SERPS = 50  # queries with fewer are checked only together with the others
QUERIES = 100  # the most frequent ones, that are checked by themselves
OVERALL_ITEMS = 20
MOST_EFFECT = 2.0  # of other parameters on the log of a count


@dataclass(frozen=True)
class Sample:
    """The SERPs to check on, and those the models were fitted to where these are known."""

    test: Patterns
    train: Patterns | None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Checks:
    """Rows by model, check and query (schema ``CHECKS``), the curves behind them, in words.

    ``change`` is there where the models could be fitted again, ``truth`` where one was given.
    """

    table: pd.DataFrame
    curves: pd.DataFrame
    verdicts: dict[str, Verdict]
    notes: list[str] = field(default_factory=list)
    change: RankerChange | None = None
    truth: pd.DataFrame | None = None

    def rows(self) -> dict[str, Any]:
        """Everything as lists of rows, for JSON."""

        def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = json.loads(frame.to_json(orient="records"))
            return found

        return {
            "checks": records(self.table),
            "verdicts": {name: verdict.line for name, verdict in self.verdicts.items()},
            "ranker_change": None if self.change is None else records(self.change.table),
            "truth": None if self.truth is None else records(self.truth),
            "notes": self.notes,
        }

    def plot(self, check: str, models: Iterable[str] | None = None) -> Figure:
        """The figure of a check, one panel per model."""
        from logeval.reports.check_figures import plot_check

        return plot_check(self.curves, check, None if models is None else list(models))

    def write(self, out: Path | str, arguments: dict[str, Any]) -> None:
        """Write ``checks.parquet``, ``curves.parquet`` and their manifest to a folder."""
        import pyarrow as pa

        found = {"checks": self.table, "curves": self.curves}
        with tables.staged(out) as folder:
            for name, frame in found.items():
                schema = tables.TABLES[name]
                rows = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
                tables.write_parquet(rows, folder / f"{name}.parquet")
            more = {key: value for key, value in self.rows().items() if key != "checks"}
            tables.write_manifest(folder, tables.manifest_of("checks", arguments, [], **more))


def check_models(
    models: FittedModels | Path | str,
    log: Log | Path | str,
    *,
    simulations: int = SIMULATIONS,
    serps: int = SERPS,
    ranker_change: bool = True,
    truth: FittedModels | Path | str | None = None,
    out: Path | str | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> Checks:
    """Check fitted models against the clicks of a log.

    If the models were fitted to a part of this log, the held-out part is checked; if to all of
    it, all of it, which is lenient; otherwise all SERPs of the queries they know. Models of this
    log are also fitted again, to see how they bear a change of ranker. ``truth`` are the true
    models of a generated log, as ``generate`` puts them beside it.
    """
    fitted = models if isinstance(models, FittedModels) else read_models(models)
    true = truth if truth is None or isinstance(truth, FittedModels) else read_models(truth)
    beside = None if true is None else against_truth(fitted, true)
    log = load(log)
    sample = held_out_sample(fitted, log, serps, seed)
    checks = check_patterns(fitted.fitted.values(), sample, simulations, seed, quiet)
    checks = replace(checks, truth=beside)
    plan = _plan_of_log(fitted, log)
    if ranker_change and plan is not None:
        data, _ = replace(plan, holdout=None).patterns(log)
        change = changed_rankers(plan.models, data, plan.fit, seed=seed, quiet=quiet)
        checks = replace(checks, change=change)
    if out is not None:
        arguments = {"log": str(log.path), "simulations": simulations, "serps": serps, "seed": seed}
        checks.write(out, arguments)
    return checks


def quick_checks(
    models: FittedModels, log: Log | Path | str, seed: int = 0, quiet: bool = False
) -> Checks:
    """The checks from fewer SERPs and simulations, and without a change of ranker."""
    sample = held_out_sample(models, load(log), QUICK_SERPS, seed)
    return check_patterns(models.fitted.values(), sample, QUICK_SIMULATIONS, seed, quiet)


def quick_verdicts(
    models: FittedModels, log: Log | Path | str, seed: int = 0, quiet: bool = False
) -> dict[str, str]:
    """The verdict on each model in one line, from ``quick_checks``."""
    verdicts = quick_checks(models, log, seed, quiet).verdicts
    return {name: verdict.line for name, verdict in verdicts.items()}


def held_out_sample(models: FittedModels, log: Log, serps: int = SERPS, seed: int = 0) -> Sample:
    """The SERPs of a log to check models on."""
    plan = _plan_of_log(models, log)
    notes: list[str] = []
    train: Patterns | None = None
    if plan is not None:
        train, held_out = plan.patterns(log)
        test = held_out
        if test is None:
            test, train = train, None
            notes.append(
                "the models were fitted to these SERPs, so the checks are lenient; fit with "
                "--holdout to check on others"
            )
    else:
        test = patterns_of(fold(log))
        notes.append(
            "the SERPs that the models were fitted to are not in this log: the parameters are "
            "taken as known, and their errors count as the models'"
        )
    return sample_of(models.queries, test, train, serps, seed, notes)


def sample_of(
    queries: list[Query], test: Patterns, train: Patterns | None, serps: int, seed: int,
    notes: Iterable[str] = (),
) -> Sample:  # fmt: skip
    """At most ``serps`` SERPs of the queries that the models know."""
    notes = list(notes)
    known = test.only(set(queries))
    if not len(known.count):
        raise LogevalError("the log has no SERPs of the queries that the models were fitted to")
    if len(known.count) < len(test.count):
        left_out = int(test.count.sum() - known.count.sum())
        notes.append(f"{left_out:,} SERPs of queries that the models do not know are left out")
    total = int(known.count.sum())
    if total > serps:
        rng = seeds.generator(seed, "checks", "sample")
        each = np.repeat(np.arange(len(known.count)), known.count.astype(np.int64))
        chosen = rng.choice(each, serps, replace=False)
        kept = np.bincount(chosen, minlength=len(known.count)).astype(np.float64)
        known = replace(known, count=kept).take(kept > 0)
        notes.append(f"{serps:,} SERPs, drawn from {total:,}, are checked")
    return Sample(known, train, notes)


def _plan_of_log(models: FittedModels, log: Log) -> FitPlan | None:
    """How the models were fitted to this log; None for those from elsewhere."""
    inputs = [{"log": tables.identity(log.path)}]
    if models.manifest.get("stage") != "fit-models" or models.manifest.get("inputs") != inputs:
        return None
    arguments = dict(models.manifest["arguments"])
    options = arguments.pop("options", {})
    names, queries = arguments.pop("models"), arguments.pop("queries")
    return FitPlan.of(names, queries=queries, **arguments, **options)


def check_patterns(
    models: Iterable[FittedModel],
    sample: Sample,
    simulations: int = SIMULATIONS,
    seed: int = 0,
    quiet: bool = False,
) -> Checks:
    """The checks of some models on given SERPs."""
    import pandas as pd

    models = list(models)
    if simulations < FEWEST:
        raise LogevalError(f"simulations={simulations}: fewer than {FEWEST} cannot fault anything")
    rows: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    verdicts = {}
    with Progress("check", total=len(models), unit="models", quiet=quiet) as progress:
        for fitted in models:
            overall, queries = _levels(fitted, sample, simulations, seed)
            together = Family.of([overall[1]], simulations + 1)
            apart = Family.of([level for _, level in queries.values()], simulations + 1)
            mine = []
            for query, (serps, level), family in [
                (None, overall, together),
                *((query, found, apart) for query, found in queries.items()),
            ]:
                mine += _rows(fitted.model, query, serps, level, family)
                curves += _curves(fitted.model, query, level, family.critical)
            verdicts[fitted.model] = verdict_of(fitted.model, mine, overall[1], together.critical)
            rows += mine
            progress.advance(1)
    return Checks(pd.DataFrame(rows), pd.DataFrame(curves), verdicts, sample.notes)


Level = tuple[int, Deviations]  # SERPs, and how far off their clicks are


def _levels(
    fitted: FittedModel, sample: Sample, n: int, seed: int
) -> tuple[Level, dict[Query, Level]]:
    """The deviations over all queries, and of the frequent ones."""
    test, train = sample.test, sample.train
    layout = Layout(max(test.K, train.K if train is not None else 1))
    place, top = _top_items(test)
    rows_of = QueryRows(test, place)
    serps = test.serps
    queries = [test.queries[q] for q in np.argsort(-serps, kind="stable") if serps[q] > 0]
    queries = [query for query in queries if query in fitted.index]
    errors = None
    if train is not None:
        errors = ParameterErrors(fitted, QueryRows(train), queries, layout.K, n, seed)

    total = np.zeros((n + 1, layout.size))
    number = {query: q for q, query in enumerate(test.queries)}
    levels: dict[Query, Level] = {}
    shown_most = _overall_items(test, top, queries, number)
    items: list[tuple[int, Floats, Floats]] = []
    shown, clicked = layout.items
    for query in queries:
        model = fitted.of(query, unseen=True, K=layout.K)
        batches = list(rows_of.batches(query, model))
        features = np.empty((n + 1, layout.size))
        features[0] = observed_features(model, batches, layout)
        rng = seeds.generator(seed, "checks", "users", str(query))  # the same for all models
        features[1:] = replicates(model, batches, layout, n, rng)
        if errors is not None:
            delta = errors.draw(query)
            rng = seeds.generator(seed, "checks", "sensitivity", fitted.model, str(query))
            effect = sensitivity(model, batches, layout, len(delta), rng)
            features[1:] = _with_errors(features[1:], (effect @ delta).T)
        total += features
        q = number[query]
        for slot in shown_most.get(q, []):
            items.append((
                int(test.item_ids[top[q][slot]]),
                features[:, shown.start + slot].copy(), features[:, clicked.start + slot].copy(),
            ))  # fmt: skip
        if serps[q] >= QUERY_SERPS and len(levels) < QUERIES:
            ids = test.item_ids[top[q]].tolist()
            parts = _with_items(layout.components, ids, shown.start, clicked.start)
            levels[query] = int(serps[q]), _deviations(features, parts, layout)
    wide = np.concatenate([total, *([c[:, None] for _, *two in items for c in two])], axis=1)
    ids = [i for i, _, _ in items]
    parts = _with_items(layout.components, ids, layout.size, layout.size + 1, step=2)
    return (int(serps.sum()), _deviations(wide, parts, layout)), levels


def _with_errors(features: Floats, effect: Floats) -> Floats:
    """Simulated counts as they would be with other parameters, (n, features).

    ``effect`` is how much the expected count changes, to first order. A count m that may be wrong
    by a factor r, log-normal with mean 1, becomes m r, and its noise, as that of a Poisson count,
    grows by sqrt(r). Adding the effect instead would make bands symmetric, and a rare event that
    was underestimated would be faulted too often.
    """
    mean = features.mean(axis=0)
    x = np.clip(effect / np.maximum(mean, 1.0), -MOST_EFFECT, MOST_EFFECT)
    ratio = np.exp(x - x.var(axis=0) / 2)
    return mean * ratio + (features - mean) * np.sqrt(ratio)


def _deviations(features: Floats, parts: Components, layout: Layout) -> Deviations:
    results = np.full(len(parts.check), np.nan)
    bins, _, _ = layout.bins
    mine = [j for j, check in enumerate(parts.check) if check == "calibration"]
    results[mine] = features[0, bins]
    return deviations(features, parts, results)


def _top_items(data: Patterns) -> tuple[Ints, list[Ints]]:
    """The place of each pair among the most shown of its query, or -1; and these pairs."""
    place = np.full(data.I, -1, dtype=np.int64)
    top = []
    for q in range(data.Q):
        span = np.arange(data.offsets[q], data.offsets[q + 1])
        best = span[np.argsort(-data.impressions[span], kind="stable")[:TOP_ITEMS]]
        best = best[data.impressions[best] > 0]
        place[best] = np.arange(len(best))
        top.append(best)
    return place, top


def _overall_items(
    data: Patterns, top: list[Ints], queries: list[Query], number: dict[Query, int]
) -> dict[int, list[int]]:
    """Of all queries, the pairs shown most: their places, by query."""
    pairs = [(q, slot) for q in (number[x] for x in queries) for slot in range(len(top[q]))]
    pairs.sort(key=lambda pair: -data.impressions[top[pair[0]][pair[1]]])
    out: dict[int, list[int]] = {}
    for q, slot in pairs[:OVERALL_ITEMS]:
        out.setdefault(q, []).append(slot)
    return out


def _with_items(
    parts: Components, ids: list[int], shown: int, clicked: int, step: int = 1
) -> Components:
    """The components with those of the items shown most."""
    n = np.arange(len(ids))
    return Components(
        parts.check + ["top-items"] * len(ids),
        parts.label + [f"item {i}" for i in ids],
        np.concatenate([parts.x, 1.0 + n]),
        np.concatenate([parts.num, clicked + step * n]),
        np.concatenate([parts.den, shown + step * n]),
    )


def _rows(
    model: str, query: Query | None, serps: int, level: Deviations, family: Family
) -> list[dict[str, Any]]:
    """One row per check."""
    rows = []
    for check in CHECKS:
        judged = level.of(check)
        p, corrected = family.p_values(level, check)
        row: dict[str, Any] = {
            "model": model,
            "check": check,
            "query": None if query is None else str(query),
            "serps": serps,
            "components": int(judged.sum()),
            "error": level.error(check),
            "p_value": p,
            "corrected": corrected,
            "faulted": corrected <= LEVEL,
            "worst": None,
            "observed": None,
            "expected": None,
            "low": None,
            "high": None,
        }
        if judged.any():
            j = int(np.where(judged, np.abs(level.z[0]), -1.0).argmax())
            row["worst"] = level.parts.label[j]
            row |= {
                name: float(getattr(level, name)[j])
                for name in ("observed", "expected", "low", "high")
            }
        rows.append(row)
    return rows


def _curves(
    model: str, query: Query | None, level: Deviations, critical: float
) -> list[dict[str, Any]]:
    """One row per component."""
    return [
        {
            "model": model,
            "check": level.parts.check[j],
            "query": None if query is None else str(query),
            "component": level.parts.label[j],
            "x": float(level.parts.x[j]),
            "observed": float(level.observed[j]),
            "expected": float(level.expected[j]),
            "low": float(level.low[j]),
            "high": float(level.high[j]),
            "z": float(level.z[0, j]),
            "faulted": bool(abs(level.z[0, j]) >= critical),
        }
        for j in range(len(level.parts.check))
        if level.judged[j] or level.weight[j] > 0
    ]
