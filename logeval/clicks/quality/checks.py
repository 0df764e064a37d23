"""Predictive checks: does a fitted model click as the log does, on the lists of the log?

Users of the model are simulated on the held-out lists, many times, and compared with the log in
what ``features.CHECKS`` names: over all queries and by query. The simulations carry what is not
known of the parameters: to each, the effect of a draw of (true - fitted) is added, to first order.
Gelman, Meng, Stern: Posterior predictive assessment of model fitness (Statistica Sinica, 1996).
"""

from __future__ import annotations

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
from logeval.clicks.quality.deviations import LEVEL, Deviations, Family, deviations
from logeval.clicks.quality.features import CHECKS, TOP_ITEMS, Components, Layout
from logeval.clicks.quality.simulate import (
    QueryRows,
    observed_features,
    replicates,
    sensitivity,
)
from logeval.clicks.quality.uncertainty import ParameterErrors
from logeval.clicks.quality.verdict import Verdict, verdict_of
from logeval.errors import LogevalError
from logeval.log.log import Log, load
from logeval.log.queries import Query
from logeval.progress import Progress

if TYPE_CHECKING:
    import pandas as pd

SIMULATIONS = 200
SERPS = 20_000  # more held-out SERPs than this are sampled from
QUERY_SERPS = 50  # queries with fewer are checked only together with the others
QUERIES = 100  # the most frequent ones, that are checked by themselves
OVERALL_ITEMS = 20


@dataclass(frozen=True)
class Sample:
    """The SERPs to check on, and those the models were fitted to where these are known."""

    test: Patterns
    train: Patterns | None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Checks:
    """Rows by model, check and query (schema ``CHECKS``), the curves behind them, in words."""

    table: pd.DataFrame
    curves: pd.DataFrame
    verdicts: dict[str, Verdict]
    notes: list[str] = field(default_factory=list)

    def write(self, out: Path | str, arguments: dict[str, Any]) -> None:
        """Write ``checks.parquet``, ``curves.parquet`` and their manifest to a folder."""
        import pyarrow as pa

        rows = pa.Table.from_pandas(self.table, schema=tables.TABLES["checks"])
        curves = pa.Table.from_pandas(self.curves, schema=tables.TABLES["curves"])
        with tables.staged(out) as folder:
            tables.write_parquet(rows.replace_schema_metadata(), folder / "checks.parquet")
            tables.write_parquet(curves.replace_schema_metadata(), folder / "curves.parquet")
            lines = {name: verdict.line for name, verdict in self.verdicts.items()}
            more = {"verdicts": lines, "notes": self.notes}
            tables.write_manifest(folder, tables.manifest_of("checks", arguments, [], **more))


def check_models(
    models: FittedModels | Path | str,
    log: Log | Path | str,
    *,
    simulations: int = SIMULATIONS,
    serps: int = SERPS,
    out: Path | str | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> Checks:
    """Check fitted models against the clicks of a log.

    If the models were fitted to a part of this log, the held-out part is checked; if to all of
    it, all of it, which is lenient; otherwise all SERPs of the queries they know.
    """
    fitted = models if isinstance(models, FittedModels) else read_models(models)
    log = load(log)
    sample = held_out_sample(fitted, log, serps, seed)
    checks = check_patterns(fitted.fitted.values(), sample, simulations, seed, quiet)
    if out is not None:
        arguments = {"log": str(log.path), "simulations": simulations, "serps": serps, "seed": seed}
        checks.write(out, arguments)
    return checks


def held_out_sample(models: FittedModels, log: Log, serps: int = SERPS, seed: int = 0) -> Sample:
    """The SERPs of a log to check models on."""
    plan = plan_of(models)
    same = plan is not None and models.manifest.get("inputs") == [
        {"log": tables.checksum(log.path / tables.MANIFEST)}
    ]
    notes: list[str] = []
    train: Patterns | None = None
    if plan is not None and same:
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
        notes.append(f"{serps:,} SERPs, drawn from {total:,}, are checked; --serps takes more")
    return Sample(known, train, notes)


def plan_of(models: FittedModels) -> FitPlan | None:
    """How the models were fitted; None for those from elsewhere."""
    if models.manifest.get("stage") != "fit-models":
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
    if simulations < 2 * 2 / LEVEL:
        raise LogevalError(
            f"--simulations {simulations}: fewer than {int(2 * 2 / LEVEL)} cannot fault anything"
        )
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
            features[1:] += (effect @ delta).T
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
