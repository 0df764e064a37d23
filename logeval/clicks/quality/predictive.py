"""Predictive checks: does a fitted model click as the log does, on the lists of the log?

Users of the model are simulated on the held-out lists, many times, and compared with the log in
what ``deviations.CHECKS`` names, counted alike: over all queries and by query. The simulations
carry what is not known of the parameters: their users are those of draws from the posterior, unless
the model was fitted to these lists.
Gelman, Meng, Stern: Posterior predictive assessment of model fitness (Statistica Sinica, 1996).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from logeval.clicks.collection import FittedModels
from logeval.clicks.drift import Change
from logeval.clicks.estimation.fold import counted_patterns, fold
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns, patterns_of
from logeval.clicks.fit import Fit
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.model import ClickModel
from logeval.clicks.quality.deviations import (
    CHECKS,
    FALSE_ALARMS,
    FAMILIES,
    TOP_ITEMS,
    Components,
    Deviations,
    Family,
    Layout,
    ModelVerdict,
    add_rows,
    deviations,
    verdict_of,
)
from logeval.clicks.quality.scores import alike, local_items
from logeval.clicks.quality.value import Slope, cross_fitted, of_list, slopes
from logeval.clicks.support.graph import harvested_beside, swap_weights
from logeval.clicks.support.selection import selected_by_clicks
from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.log.names import Names
from logeval.log.queries import Query
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.progress import Progress
from logeval.storage.results import Stored
from logeval.storage.schemas import CHECKS as CHECKS_SCHEMA
from logeval.storage.schemas import CURVES
from logeval.storage.tables import Manifest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from logeval.facts import Answer


SERPS = 20_000  # more held-out SERPs than this are sampled from


@dataclass(frozen=True)
class Sample:
    """The SERPs to check on, and whether the models were fitted to them."""

    test: Patterns
    fitted_to: bool = False
    notes: list[str] = field(default_factory=list)
    names: Names = field(default_factory=Names)  # of its items
    every: Patterns | None = None  # those it was drawn from
    fit: Fit | None = None  # how the models were fitted to these

    def slopes(self, fitted: FittedModel, seed: int) -> list[Slope]:
        """The value check, on all SERPs that the sample was drawn from."""
        data = self.test if self.every is None else self.every
        if not self.fitted_to:
            return slopes(fitted, data)
        return [] if self.fit is None else cross_fitted(again(self.fit, fitted), data, seed=seed)


def again(asked: Fit, fitted: FittedModel) -> Callable[[Patterns], FittedModel]:
    """How to fit a model again, to other SERPs: without intervals, with as many classes."""
    number = fitted.report.get("number_of_classes")
    return lambda data: asked.fit(fitted.model, data, intervals=False, classes=number)


def held_out_sample(models: FittedModels, log: Log, serps: int = SERPS, seed: int = 0) -> Sample:
    """The SERPs of a log to check models on."""
    plan = fit_of_log(models, log)
    if plan is None:
        test, held_out = patterns_of(fold(log)), None
        note = "the models were not fitted to this log: where it differs from theirs, they are off"
    else:
        fitted_to, held_out = plan.patterns()
        test = fitted_to.in_memory() if held_out is None else held_out
        note = (
            "the models were fitted to these SERPs, so the checks are lenient; fit them with "
            "holdout=0.1 to check on others"
        )
    notes = [] if held_out is not None else [note]
    known = [name for name, fitted in models.fitted.items() if not fitted.n_draws]
    if known:
        notes.append(
            f"{', '.join(known)}: there are no draws of the parameters, so they are taken as "
            "known, and their errors count as the model's"
        )
    fitted_to_these = plan is not None and held_out is None
    found = sample_of(models.queries, test, serps, seed, fitted_to_these, notes, log.names)
    return replace(found, fit=plan)


def sample_of(
    queries: list[Query],
    test: Patterns,
    serps: int,
    seed: int,
    fitted_to: bool = False,
    notes: Iterable[str] = (),
    names: Names | None = None,
) -> Sample:
    """At most ``serps`` SERPs of the queries that the models know."""
    notes = list(notes)
    known = test.only(set(queries))
    if not len(known.count):
        raise LogevalError("the log has no SERPs of the queries that the models were fitted to")
    if len(known.count) < len(test.count):
        left_out = int(test.count.sum() - known.count.sum())
        notes.append(f"{left_out:,} SERPs of queries that the models do not know are left out")
    total, every = int(known.count.sum()), known
    if total > serps:
        rng = seeds.generator(seed, "checks", "sample")
        each = np.repeat(np.arange(len(known.count)), known.count.astype(np.int64))
        chosen = rng.choice(each, serps, replace=False)
        kept = np.bincount(chosen, minlength=len(known.count)).astype(np.float64)
        known = replace(known, count=kept).take(kept > 0)
        notes.append(f"{serps:,} SERPs, drawn from {total:,}, are checked")
    if (selected := selected_by_clicks(known)) is not None:
        notes.append(selected)
    return Sample(known, fitted_to, notes, names or Names(), every)


def fit_of_log(models: FittedModels, log: Log) -> Fit | None:
    """How the models were fitted to this log; None for those from elsewhere."""
    inputs = [{"log": log.identity}]
    if models.manifest.get("stage") != Fit.NAME or models.manifest.get("inputs") != inputs:
        return None
    known = {each.name for each in fields(Fit)}  # a fit of an earlier version had others, too
    arguments = {k: v for k, v in models.manifest["arguments"].items() if k in known}
    if arguments.get("queries") is not None:  # by their ids, not names
        arguments["queries"] = [Query.of(query) for query in arguments["queries"]]
    return Fit(log, **arguments)


QUERY_SERPS = 50  # queries with fewer are checked only together with the others
QUERIES = 100  # the most frequent ones, that are checked by themselves
OVERALL_ITEMS = 20
BLOCK = 100_000  # simulated SERPs in memory at a time


@dataclass(frozen=True)
class Batch:
    """Lists of one query and of equal length, as local items of its model."""

    A: Ints  # (n, length)
    clicks: Bools  # (n, length)
    count: Floats  # (n,)
    top: Ints  # (n, length) place among the items shown most, or -1
    swaps: Floats | None = None  # (n, length, 2) see ``support.harvesting.swap_weights``

    @classmethod
    def of(
        cls, data: Patterns, rows: Ints, K: int, model: ClickModel, top: Ints, swaps: Floats
    ) -> Batch:
        """Some patterns of K results; items the model does not know are its last."""
        items = data.items[rows, :K]
        A = local_items(model.items, data.item_ids[items])
        return cls(A, data.clicks[rows, :K], data.count[rows], top[items], swaps[rows, :K])

    def serps(self) -> tuple[Ints, Ints, Ints]:
        """One row per SERP: its list, places among the items shown most, and its row here."""
        each = np.repeat(np.arange(len(self.count)), self.count.astype(np.int64))
        return self.A[each], self.top[each], each

    def add_swaps(self, clicks: Bools | Ints, rows: Ints, weight: Floats, out: Floats) -> None:
        """Add the weighted clicks of simulations (s, n, length) of some rows to (s, ranks, 2)."""
        if self.swaps is not None:
            length = self.A.shape[1]
            weights = self.swaps[rows] * weight[:, None, None]
            out[:, :length] += np.einsum("snk,nkw->skw", clicks, weights)


def observed_features(
    model: ClickModel, batches: list[Batch], layout: Layout, swaps: Floats | None = None
) -> Floats:
    """The features of the log's clicks, (features,); the model only predicts the probabilities.

    What ``swaps`` (1, ranks, 2) count is added there.
    """
    out = np.zeros((1, layout.size))
    swaps = np.zeros((1, layout.K, 2)) if swaps is None else swaps
    for b in batches:
        q = model.conditional_click_probs(b.A, b.clicks)
        row = np.zeros(len(b.count), dtype=np.int64)
        add_rows(b.clicks.astype(np.int8), q, b.top, b.count, row, layout.at, layout.R, out)
        b.add_swaps(b.clicks[None], np.arange(len(b.count)), b.count, swaps)
    return out[0]


def replicates(
    model: ClickModel,
    users: Sequence[ClickModel],
    batches: list[Batch],
    layout: Layout,
    n: int,
    rng: np.random.Generator,
    swaps: Floats | None = None,
) -> Floats:
    """The features of n simulations of all SERPs of a query, (n, features).

    New users look at every list as often as the log shows it: in equally many simulations those of
    each of ``users``. The model only predicts the probabilities. What ``swaps`` (n, ranks, 2) count
    is added there.
    """
    out = np.zeros((n, layout.size))
    swaps = np.zeros((n, layout.K, 2)) if swaps is None else swaps
    shares = np.array_split(np.arange(n), len(users))
    for b in batches:
        A, top, each = b.serps()
        at_once = max(1, BLOCK // len(A))
        for clicking, mine in zip(users, shares, strict=True):
            for start in range(0, len(mine), at_once):
                simulations = mine[start : start + at_once]
                lists = np.tile(A, (len(simulations), 1))
                clicks = clicking.sample(lists, rng.random(lists.shape))
                q = model.conditional_click_probs(lists, clicks)
                row = np.repeat(simulations, len(A))
                add_rows(clicks, q, top, np.ones(len(lists)), row, layout.at, layout.R, out)
                by_simulation = clicks.reshape(len(simulations), *A.shape)
                found = swaps[simulations[0] : simulations[-1] + 1]
                b.add_swaps(by_simulation, each, np.ones(len(each)), found)
    return out


class Checked(NamedTuple):
    """The SERPs of some queries, and how far off their clicks are."""

    serps: int
    deviations: Deviations


def against_log(
    fitted: FittedModel, sample: Sample, n: int, seed: int
) -> tuple[Checked, dict[Query, Checked]]:
    """The deviations over all queries, and of the frequent ones."""
    test, layout = sample.test, Layout(sample.test.K)
    place, top = _top_items(test)
    rows_of: dict[Query, list[tuple[int, Ints]]] = {}
    for query, K, rows in alike(test):
        rows_of.setdefault(query, []).append((K, rows))
    serps = test.serps
    queries = [test.queries[q] for q in np.argsort(-serps, kind="stable") if serps[q] > 0]
    queries = [query for query in queries if query in fitted.index]
    users = [fitted] if sample.fitted_to else fitted.some_draws(n)

    total = np.zeros((n + 1, layout.size))
    number = {query: q for q, query in enumerate(test.queries)}
    by_query: dict[Query, Checked] = {}
    shown_most = _overall_items(test, top, queries, number)
    items: list[tuple[int, Floats, Floats]] = []
    shown, clicked = layout.items
    weights, swaps = swap_weights(test), np.zeros((n + 1, layout.K, 2))
    for query in queries:
        model = fitted.of(query, unseen=True, K=layout.K)
        batches = [Batch.of(test, rows, K, model, place, weights) for K, rows in rows_of[query]]
        features = np.empty((n + 1, layout.size))
        features[0] = observed_features(model, batches, layout, swaps[:1])
        rng = seeds.generator(seed, "checks", "users", str(query))  # the same for all models
        drawn = [f.of(query, unseen=True, K=layout.K) for f in users]
        features[1:] = replicates(model, drawn, batches, layout, n, rng, swaps[1:])
        total += features
        q = number[query]
        for slot in shown_most.get(q, []):
            items.append((
                int(test.item_ids[top[q][slot]]),
                features[:, shown.start + slot].copy(), features[:, clicked.start + slot].copy(),
            ))  # fmt: skip
        if serps[q] >= QUERY_SERPS and len(by_query) < QUERIES:
            named = sample.names.names_of("item", test.item_ids[top[q]])
            at = np.arange(len(named))
            parts = layout.components.with_items(named, clicked.start + at, shown.start + at)
            by_query[query] = Checked(int(serps[q]), _deviations(features, parts, layout))
    wide = np.concatenate([total, *([c[:, None] for _, *two in items for c in two])], axis=1)
    named = sample.names.names_of("item", [i for i, _, _ in items])
    at, pairs = layout.size + 2 * np.arange(len(named)), np.arange(layout.K - 1)
    parts = layout.components.with_items(named, at + 1, at)
    upper, lower = swaps[:, :-1, 0], swaps[:, 1:, 1]
    ranks = [f"ranks {k + 1} and {k + 2}" for k in pairs]
    start = wide.shape[1]
    parts = parts.more("swaps", ranks, start + pairs, start + len(pairs) + pairs)
    wide = np.concatenate([wide, upper, upper + lower], axis=1)
    return Checked(int(serps.sum()), _deviations(wide, parts, layout)), by_query


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


FEWEST = int(FAMILIES / FALSE_ALARMS)  # simulations, below which no p-value is small enough
MOST = 1_000_000
QUICK_SIMULATIONS, QUICK_SERPS = 80, 2_000  # behind the one-line verdict of a fit


@dataclass(frozen=True)
class Checks(Stored):
    """Rows by model, check and query (schema ``CHECKS``), the curves behind them, in words.

    ``truth`` is there where one was given.
    """

    TABLES: ClassVar = {"table": "checks", "curves": "curves"}

    table: pd.DataFrame
    curves: pd.DataFrame
    verdicts: dict[str, ModelVerdict]
    notes: list[str] = field(default_factory=list)
    truth: pd.DataFrame | None = None
    examination: pd.DataFrame | None = None  # from swaps, beside that of the models
    slopes: dict[str, list[Slope]] = field(default_factory=dict)  # by model, the value check
    manifest: Manifest = field(default_factory=dict)

    def kept(self) -> dict[str, Any]:
        """What is no table."""
        rest = {key: value for key, value in self.rows().items() if key != "checks"}
        return rest | {"value": self.value_rows()}

    def value_rows(self) -> list[dict[str, Any]]:
        """The value check: a row per model and level."""
        return [
            {"model": name, "check": "value", "query": None, **one.row()}
            for name, found in self.slopes.items()
            for one in found
        ]

    def rows(self) -> dict[str, Any]:
        """Everything as lists of rows, for JSON, queries by their names."""

        def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = json.loads(frame.to_json(orient="records"))
            return found

        return {
            "checks": records(Names.of(self.manifest).shown(self.table)) + self.value_rows(),
            "facts": self.verdict().records(),
            "truth": None if self.truth is None else records(self.truth),
            "examination": None if self.examination is None else records(self.examination),
            "notes": self.notes,
        }

    def plot(self, check: str, models: Iterable[str] | None = None) -> Figure:
        """One panel per model: the log (dots) and 95% of the model's simulations (band)."""
        from logeval.reports.figures.models import plot_check

        return plot_check(self, check, models)

    def verdict(self) -> Answer:
        """Which models click like the users of the log."""
        from logeval.reports.answers.models import of_checks

        return of_checks(self)


def quick_records(
    models: dict[str, FittedModel],
    data: FoldedClicks,
    held_out: Patterns | None,
    names: Names,
    seed: int = 0,
    quiet: bool = False,
    change: Change | None = None,
    asked: Fit | None = None,
) -> dict[str, dict[str, Any]]:
    """The quick verdict on each model while it is fitted, and its slopes: what its report gets.

    Nothing for data that stay on disk. Models are fitted again, as ``asked``, if nothing is held
    out.
    """
    test = data if held_out is None else held_out
    if not isinstance(test, Patterns):
        return {}
    sample = sample_of(data.queries, test, QUICK_SERPS, seed, held_out is None, names=names)
    sample = replace(sample, fit=asked)
    checks = check_patterns(models.values(), sample, QUICK_SIMULATIONS, seed, quiet)
    verdicts = {name: v.with_change(change) for name, v in checks.verdicts.items()}
    return {
        name: {
            "checks": v.record(held_out is not None),
            "value": [one.row() for one in checks.slopes[name]],
        }
        for name, v in verdicts.items()
    }


def check_patterns(
    models: Iterable[FittedModel],
    sample: Sample,
    simulations: int = 200,
    seed: int = 0,
    quiet: bool = False,
) -> Checks:
    """The checks of some models on given SERPs."""
    models = list(models)
    if simulations < FEWEST:
        raise LogevalError(f"simulations={simulations}: fewer than {FEWEST} cannot fault anything")
    if simulations > MOST:
        raise LogevalError(f"simulations={simulations}: is too many; at most {MOST:,}")
    rows: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    verdicts, found_slopes = {}, {}
    with Progress("check", total=len(models), unit="models", quiet=quiet) as progress:
        for fitted in models:
            overall, by_query = against_log(fitted, sample, simulations, seed)
            together = Family.of([overall.deviations], simulations + 1)
            apart = Family.of([found.deviations for found in by_query.values()], simulations + 1)
            mine = _rows(fitted.model, None, overall, together)
            curves += _curves(fitted.model, None, overall, together)
            for query, found in by_query.items():
                mine += _rows(fitted.model, query, found, apart)
                curves += _curves(fitted.model, query, found, apart)
            verdict = verdict_of(fitted.model, mine, overall.deviations)
            found_slopes[fitted.model] = sample.slopes(fitted, seed)
            verdicts[fitted.model] = verdict.with_value(of_list(found_slopes[fitted.model]))
            rows += mine
            progress.advance(1)
    table, pictured = pd.DataFrame(rows), pd.DataFrame(curves)
    return Checks(table, pictured, verdicts, sample.notes, slopes=found_slopes)


def _rows(model: str, query: Query | None, found: Checked, family: Family) -> list[dict[str, Any]]:
    """One row per check."""
    rows, off = [], found.deviations
    for check in CHECKS:
        judged = off.of(check)
        p, corrected = family.p_values(off, check)
        row: dict[str, Any] = {
            "model": model,
            "check": check,
            "query": None if query is None else str(query),
            "serps": found.serps,
            "components": int(judged.sum()),
            "error": off.error(check),
            "p_value": p,
            "corrected": corrected,
            "faulted": corrected <= FALSE_ALARMS,
            **dict.fromkeys(("worst", "observed", "expected", "low", "high")),
        }
        if judged.any():
            j = int(np.where(judged, np.abs(off.z[0]), -1.0).argmax())
            row |= {"worst": off.parts.label[j], **off.numbers(j)}
        rows.append(row)
    return rows


def _curves(
    model: str, query: Query | None, found: Checked, family: Family
) -> list[dict[str, Any]]:
    """One row per component."""
    off, critical = found.deviations, family.critical
    return [
        {
            "model": model,
            "check": off.parts.check[j],
            "query": None if query is None else str(query),
            "component": off.parts.label[j],
            "x": float(off.parts.x[j]),
            **off.numbers(j),
            "z": float(off.z[0, j]),
            "faulted": bool(abs(off.z[0, j]) >= critical),
        }
        for j in range(len(off.parts.check))
        if off.judged[j] or off.weight[j] > 0
    ]


OF_COUNTS = (
    "counts do not say which results were on one page, so nothing else can be checked; ingest the "
    "pages themselves for that"
)


def counted_checks(models: FittedModels, log: Log) -> Checks:
    """The examination of the models beside that from swaps, and no other check."""
    data = counted_patterns(log)
    known = None if data is None else data.only(set(models.queries))
    if known is None or not known.P:
        raise LogevalError(
            f"{log.title}: has no impressions of the queries that the models were fitted to"
        )
    by_position = [m for m in models.fitted.values() if m.kind.examined_by == "position"]
    if not by_position:
        raise LogevalError(
            f"{log.title}: is a table of counts, on which examination alone can be checked, and "
            f"{', '.join(models.fitted)} has none by position; fit a PBM"
        )
    none, no_curves = (schema.empty_table().to_pandas() for schema in (CHECKS_SCHEMA, CURVES))
    return Checks(
        none, no_curves, {}, [OF_COUNTS], examination=harvested_beside(by_position, known)
    )
