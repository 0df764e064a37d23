"""Sections on what the runs were made from: click models, log, what was run; and the words.

The simulators: whether they click as the log does, and reward on those not shown so far.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from logeval.clicks.collection import FittedModels
from logeval.clicks.fitted import FittedModel
from logeval.evaluation.results import Runs
from logeval.log.log import Log
from logeval.log.names import Names
from logeval.log.queries import Query
from logeval.reports.figures.models import (
    plot_attraction,
    plot_examination,
    plot_log,
    plot_termination,
    plot_verdicts,
)
from logeval.reports.page import WIDEST, Cell, Content, Page, cells
from logeval.reports.sections.verdict import FIRST, add_rewards, by_trust
from logeval.reports.trust import todays_lists
from logeval.running.words import interval, number
from logeval.storage import tables

SHOWN = 60  # rows of parameters on the page; the CSV has all


def the_models(page: Page, content: Content) -> None:
    """The simulators: quality, parameters with intervals, warnings."""
    for i, (folder, models) in enumerate(content.models.items()):
        several = len(content.models) > 1
        page.section(
            "The click models" + (f": {folder}" if several else ""),
            words=("click model", "attraction", "examination", "termination"),
            docs="models",
            background=True,
        )
        suffix = f"-{i + 1}" if several else ""
        _models(page, models, content, suffix)


def _models(page: Page, models: FittedModels, content: Content, suffix: str) -> None:
    summary = models.summary()
    notes = [note for fitted in models.fitted.values() for note in fitted.report.get("notes", [])]
    page.notes(list(dict.fromkeys(notes)))
    hidden = [c for c in ("notes", "priors", "checks", "patterns", "cpu_seconds") if c in summary]
    summary = summary.drop(columns=hidden)
    first = ["model", "method", "queries", "serps", "log_likelihood", "perplexity", "converged"]
    order = [c for c in first if c in summary] + [c for c in summary if c not in first]
    page.table(
        f"models{suffix}",
        summary[order],
        "How the models were fitted, and how well they predict held-out SERPs (log-likelihood per "
        "result: higher is better; perplexity: 1 is perfect).",
        log_likelihood=".4f",
        perplexity=".4f",
        conditional_perplexity=".4f",
    )
    for name, fitted in models.fitted.items():
        _model_figures(page, name, fitted, models.names, suffix)
    _parameters(page, models, content.names, suffix)


def _parameters(page: Page, models: FittedModels, names: dict[str, str], suffix: str) -> None:
    """The parameters that are known best."""
    table = models.table()
    table = table[~table["parameter"].isin(["positions", "items"])]
    table = table.sort_values("observations", ascending=False, kind="stable")
    for kind in ("query", "item"):
        if kind in models.names.kinds:
            ids = table[f"{kind}_id"].dropna()
            table[kind] = pd.Series(models.names.names_of(kind, ids), ids.index, dtype=object)
    rows: list[Any] = list(table.head(SHOWN).itertuples())
    page.table(
        f"parameters{suffix}",
        table.dropna(axis=1, how="all"),
        f"The {SHOWN} parameters with the most observations; the CSV has all.",
        shown={
            "model": [Cell(row.model) for row in rows],
            "parameter": [Cell(row.parameter) for row in rows],
            "query": [Cell(_query(row, names)) for row in rows],
            "of": [Cell(_of(row, models.names)) for row in rows],
            "value": cells(table["value"].head(SHOWN)),
            "95% interval": [
                Cell(interval(row.low, row.high)) if row.low == row.low else Cell("")
                for row in rows
            ],
            "observations": cells(table["observations"].head(SHOWN), ",.0f"),
        },
        rows=SHOWN,
    )


def _query(row: Any, names: dict[str, str]) -> str:
    """The query of a parameter; some belong to all of them."""
    if pd.isna(row.query_id):
        return "all"
    region = None if pd.isna(row.region_id) else int(row.region_id)
    return names[str(Query(int(row.query_id), region))]


def _of(row: Any, names: Names) -> str:
    """The item or position of a parameter, and the position of the click before."""
    item = row.item_id if pd.isna(row.item_id) else names.name_of("item", row.item_id)
    about = {"item": item, "position": row.position, "after": row.previous}
    return " ".join(f"{name} {value}" for name, value in about.items() if not pd.isna(value))


def _model_figures(page: Page, name: str, fitted: FittedModel, names: Names, suffix: str) -> None:
    if "v" in fitted.estimates:
        page.figure(
            f"termination-{name}{suffix}",
            plot_termination(fitted, names=names).figure,
            f"{name}: probability that a user who clicks at a position is satisfied and leaves, of "
            "the five most frequent queries, with 95% intervals. Where the first position is the "
            "highest, the best item belongs at the top; the last position is hollow because it "
            "cannot be identified.",
        )
    if "e" in fitted.estimates and fitted.estimates["e"].value.ndim == 2:
        page.figure(
            f"examination-{name}{suffix}",
            plot_examination(fitted, names=names).figure,
            f"{name}: probability that a position is looked at, most examined first. The steeper "
            "the fall, the more an item's place decides.",
        )
    if "w" in fitted.estimates:
        page.figure(
            f"attraction-{name}{suffix}",
            plot_attraction(fitted, names=names).figure,
            f"{name}: attraction of the items, most attractive first, with 95% intervals. Wide "
            "bands at the right are items that were seldom shown, whose values come mostly from "
            "the prior.",
        )


def the_log(page: Page, content: Content) -> None:
    """The log at a glance."""
    for i, (folder, log) in enumerate(content.logs.items()):
        if log.holds == "counts":  # its pages are not known
            continue
        several = len(content.logs) > 1
        page.section(
            "The log" + (f": {folder}" if several else ""),
            words=("SERP", "query"),
            docs="support",
            background=True,
        )
        suffix = f"-{i + 1}" if several else ""
        found = content.described[folder]
        page.facts({name.replace("_", " "): value for name, value in found.totals.items()})
        page.figure(
            f"log{suffix}",
            plot_log(found)[0].figure,
            "Left: how often the result at a rank is clicked; a steep fall means that few users "
            "look further. Right: how many SERPs the queries have, most frequent first; a straight "
            "line is a Zipf law.",
        )
        page.table(
            f"clicks-per-serp{suffix}",
            found.clicks_per_serp,
            "SERPs by number of clicked results.",
            share=".4f",
        )
        top = found.top_queries["query"].astype(str)
        page.table(
            f"top-queries{suffix}",
            found.top_queries.assign(query=top.map(content.names)),
            "The most frequent queries: SERPs, distinct items L, distinct lists and their entropy.",
            clicks_per_serp=".3f",
            list_entropy=".2f",
        )


def what_was_run(page: Page, content: Content) -> None:
    """Settings, data and versions."""
    page.section("What was run", words=("run, replica", "horizon"), docs="cite", background=True)
    page.notes(content.notes)
    for runs in content.runs:
        if len(content.runs) > 1:
            page.heading(str(runs.folder))
        rows = runs.table()
        page.facts(
            {
                "policies": sorted(set(rows["policy"])),
                "simulators": sorted(set(rows["simulator"])),
                "queries": rows["query"].nunique(),
                "runs per query": int(rows["run"].max()) + 1,
                "searches of a query": int(rows["t"].max()),
                "seed": str(runs.seed),
            }
        )
        if runs.folder:
            text = (runs.folder / tables.MANIFEST).read_text(encoding="utf-8")
            page.code(f"Manifest of the runs in {runs.folder}", text[:20_000])
    for log in content.logs.values():
        page.facts(_source(log))
    if content.recipe:
        page.code("Recipe, to run it again", content.recipe.read_text(encoding="utf-8"))


def the_glossary(page: Page, content: Content) -> None:
    """The words of the page."""
    page.section("Glossary", folded=True)
    page.glossary()


def _input(known: dict[str, Any]) -> str:
    """A file, or a data frame."""
    size = f"{known['bytes']:,} bytes" if "bytes" in known else f"{known['rows']:,} rows"
    return f"{known['name']} ({size})"


def _source(log: Log) -> dict[str, Any]:
    counts, inputs = log.counts, log.manifest["inputs"]
    files = {
        "log": [_input(i) for i in inputs],
        "SHA-256 of the log": [i["sha256"] for i in inputs],
    }
    if log.holds == "counts":
        kept = f"{counts['impressions']:,} impressions, {counts['clicks']:,} clicks, counted before"
        return files | {"kept": kept, "set aside": f"{counts.get('rejected', 0):,} rejected rows"}
    return files | {
        "kept": f"{counts['queries']:,} SERPs, {counts['clicks_matched']:,} clicked results",
        "set aside": f"{counts.get('clicks_orphan', 0):,} orphan clicks, "
        f"{counts.get('rejected', 0):,} rejected lines, "
        f"{counts['test_queries']:,} test SERPs (never fitted)",
    }


OPEN = 3  # simulators whose checks are said in words; with more they are folded


def the_simulators(page: Page, content: Content) -> None:
    """Checks against the log, clicks on today's lists, and the simulators not shown above."""
    for i, runs in enumerate(content.runs):
        others, lists = by_trust(runs)[FIRST:], todays_lists(runs)
        if not runs.simulators and not others:
            continue
        page.section(
            "The simulators" + content.where(i), words=("simulator", "click model"), docs="checking"
        )
        suffix = content.suffix(i)
        page.lines(content.chosen(i))
        _checks(page, runs, suffix)
        if not lists.empty:
            _todays_lists(page, runs, lists, content.names, suffix)
        if others:
            on = runs.title(others[0]) if len(others) == 1 else f"the others ({len(others)})"
            with page.folded(f"Reward over time on {on}"):
                add_rewards(page, runs, others, f"reward-others{suffix}")


def _checks(page: Page, runs: Runs, suffix: str) -> None:
    """What the checks against the log found when the models were fitted."""
    order = dict.fromkeys(panel.simulator for panel in by_trust(runs))
    known = {name: about["checks"] for name, about in runs.simulators.items() if about["checks"]}
    known = {name: known[name] for name in order if name in known}
    errors = {
        name: {check: (error, check in its["faulted"]) for check, error in its["errors"].items()}
        for name, its in known.items()
        if its.get("errors")
    }
    if errors:
        page.figure(
            f"checks{suffix}",
            plot_verdicts(errors).figure,
            "Clicks simulated on the logged lists beside the clicks of the log: the error of each "
            "check over all queries, coloured where it is more than chance and the uncertainty of "
            "the parameters allow. logeval check-models looks closer.",
        )
    lines = [checks["line"] for checks in known.values()]
    if len(lines) <= OPEN:
        page.lines(lines)
    else:
        with page.folded(f"The checks of {len(lines)} simulators in words"):
            page.lines(lines)


def _todays_lists(
    page: Page, runs: Runs, lists: pd.DataFrame, names: dict[str, str], suffix: str
) -> None:
    """Clicks on today's lists in the log and in the simulators, the queries furthest off first."""
    simulators = list(dict.fromkeys(panel.simulator for panel in by_trust(runs)))
    simulators = [name for name in simulators if name in set(lists["simulator"])]
    off = lists.assign(off=lists["z"].abs()).groupby("query")["off"].max()
    queries = list(off.sort_values(ascending=False, kind="stable").index)
    log = {row.query: row for row in list[Any](lists.drop_duplicates("query").itertuples())}
    found = lists.set_index(["simulator", "query"])
    shown: dict[str, list[Cell]] = {
        "query": [Cell(names[query]) for query in queries],
        "SERPs": [Cell(f"{log[q].serps:,.0f}", log[q].serps) for q in queries],
        "log": [
            Cell(f"{number(log[q].log)} ± {number(log[q].log_error)}", log[q].log) for q in queries
        ],
    }
    for simulator in simulators[: WIDEST - len(shown)]:
        rows: list[Any] = [
            found.loc[(simulator, q)] if (simulator, q) in found.index else None for q in queries
        ]
        shown[simulator] = [Cell("") if row is None else _simulated(row) for row in rows]
    wrong = int(lists["faulted"].sum())
    page.table(
        f"todays-lists{suffix}",
        lists.assign(query=lists["query"].map(names)),
        "Clicks per search on today's lists, which the log knows best: in the log (± standard "
        "error) and in the simulators, the queries that are furthest off first. "
        + (
            f"Marked (▲ too many, ▼ too few) is what differs by more than chance: {wrong} of "
            f"{len(lists)}."
            if wrong
            else "No difference is more than chance."
        ),
        shown=shown,
        serps=",.0f",
    )


def _simulated(row: Any) -> Cell:
    mark = ("▲" if row["z"] > 0 else "▼") if row["faulted"] else ""
    return Cell(f"{number(row['simulated'])} {mark}".strip(), row["simulated"], "", bool(mark))
