"""What to do: the first screen of a page about a decision, and what is behind it."""

from __future__ import annotations

from typing import Any

from logeval.decision.decision import Decision, Simulator
from logeval.reports.answer import (
    FACTS,
    all_results,
    believe,
    facts_rows,
    headline,
    next_steps,
    short_names,
    table,
)
from logeval.reports.figures.decision import earnings_figure
from logeval.reports.page import Cell, Content, Page
from logeval.reports.words import WHY
from logeval.running.words import interval, number

FIRST_QUERIES = 12
TABLE = {
    "vs today": "gain over today's ranker, 95% interval",
    "worse": "probability of earning less than today's ranker",
    "pays back": "from when on it stays ahead",
    "worst query": "the query that gains least",
}


def the_decision(page: Page, content: Content) -> None:
    """The answer, the figure, the table, and whether to believe it."""
    found = content.decision
    if found is None:
        return
    word, why = headline(found)
    notes = [*believe(found), *all_results(found)]
    steps = next_steps(found)
    page.answer(found.decision, word, why, notes, steps)
    if not found.choices:
        return
    page.figure("earnings", earnings_figure(found))
    head, rows = table(found)
    shown = {
        title or "policy": [Cell(row[i], marked=mark == ">" and i == 0) for mark, row in rows]
        for i, title in enumerate(head)
    }
    page.table("choices", found.table(), shown=shown, titles=TABLE)


def behind_it(page: Page, content: Content) -> None:
    """Facts, simulators with their checks, and queries."""
    found = content.decision
    if found is None:
        return
    if found.simulators:
        _simulators(page, found)
    _queries(page, found)
    with page.section("Every fact behind this", folded=True):
        rows = facts_rows(found.facts)
        page.grid("facts", {head: [Cell(row[i]) for row in rows] for i, head in enumerate(FACTS)})


def _simulators(page: Page, found: Decision) -> None:
    """A row per click model: what its predictions are worth, and what else is known of it."""
    with page.section("Who plays the users"):
        page.text(
            "Click models fitted to the log play its users. Value: what a predicted difference "
            "between two lists is worth, 1 if it comes true in full; fit: log-likelihood of a "
            "result that was held out, higher is better."
        )
        names, rows = short_names(found), list(found.simulators)
        page.grid(
            "simulators",
            {
                "click model": [Cell(names[one.name], marked=one.used) for one in rows],
                "value": [_slope(one) for one in rows],
                "fit": [_number(one.log_likelihood, ".4f") for one in rows],
                "checks passed": [_passed(one) for one in rows],
                "clicks on today's lists": [_number(one.today, ".3f") for one in rows],
                "in the log": [_number(one.today_log, ".3f") for one in rows],
                "": [Cell(WHY[one.why]) for one in rows],
            },
        )


def _slope(one: Simulator) -> Cell:
    if one.slope is None or one.slope_low is None or one.slope_high is None:
        return Cell("cannot be told")
    return Cell(number(one.slope), one.slope, f"({interval(one.slope_low, one.slope_high)})")


def _number(x: float | None, spec: str) -> Cell:
    return Cell("") if x is None else Cell(format(x, spec), x)


def _passed(one: Simulator) -> Cell:
    told = {name: passed for name, passed in one.checks.items() if passed is not None}
    failed = [name for name, passed in told.items() if not passed]
    return Cell(f"{len(told) - len(failed)} of {len(told)}", None, ", ".join(failed))


def _queries(page: Page, found: Decision) -> None:
    """The most frequent queries, and what the choice gains there."""
    rows = found.by_query.sort_values("searches", ascending=False, kind="stable")
    if rows.empty:
        return
    first: list[Any] = list(rows.head(FIRST_QUERIES).itertuples())
    with page.section("Query by query"):
        more = len(rows) - len(first)
        page.text(
            f"What {short_names(found).get(first[0].policy, first[0].policy)} gains over today's "
            "ranker" + (f" on the most frequent queries; the table to save has {more} more." if more
            else ".")
        )  # fmt: skip
        page.table(
            "gains",
            rows,
            shown={
                "query": [Cell(row.query).short() for row in first],
                "searches": [Cell(f"{row.searches:,.0f}", row.searches) for row in first],
                "known results": [Cell(f"{row.results:,}", row.results) for row in first],
                "per search today": [_number(row.today, ".2f") for row in first],
                "best list": [_number(row.best, ".2f") for row in first],
                "gain": [
                    Cell(f"{row.gain:+.0%}", row.gain, f"({row.low:.0%} to {row.high:.0%})")
                    for row in first
                ],
            },
        )
