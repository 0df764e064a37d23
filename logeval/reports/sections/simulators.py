"""The simulators: whether they click as the log does, and reward on those not shown so far."""

from __future__ import annotations

from typing import Any

import pandas as pd

from logeval.evaluation.results import Runs
from logeval.reports.content import Content
from logeval.reports.figures.checks import plot_verdicts
from logeval.reports.page import WIDEST, Cell, Page
from logeval.reports.sections.verdict import FIRST, add_rewards, by_trust
from logeval.reports.trust import todays_lists
from logeval.running.words import number

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
