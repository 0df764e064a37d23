"""The first screen: the answer, reward per search over time, three numbers for each policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from logeval.evaluation.results import Runs
from logeval.reports.figures.regret import drawn_policies, reward_figure
from logeval.reports.headline import ends_of, of_panel
from logeval.reports.page import Cell, Content, Page
from logeval.reports.trust import faults
from logeval.reports.verdict import verdict
from logeval.running.names import parse_call
from logeval.running.words import UNITS, interval, number, searches
from logeval.tracks.keys import Panel

FIRST = 2  # simulators in the first screen
MOST = 3  # of them side by side further down; the others are folded
NEVER = 1e18  # by which break-even is sorted where there is none


def the_verdict(page: Page, content: Content) -> None:
    """The answer, and what it rests on."""
    for i, runs in enumerate(content.runs):
        page.section(
            "Verdict" + content.where(i),
            words=("today's ranker", "break-even", "best list", "cannot be told apart"),
            docs="tutorial",
        )
        page.verdict(verdict(runs))
        add_rewards(page, runs, by_trust(runs)[:FIRST], f"reward{content.suffix(i)}")


def by_trust(runs: Runs) -> list[Panel]:
    """The panels in the order in which they are shown.

    Those in which most policies compete; of these one fit of every model before a second fit of
    one; of these the simulators that the checks fault least.
    """
    summary = runs.summary()
    many = {panel: len(of_panel(summary, panel)) for panel in runs.panels()}
    wrong = {name: faults(about) for name, about in runs.simulators.items()}
    found = sorted(many, key=lambda p: math.inf if (n := wrong.get(p.simulator)) is None else n)
    fits: dict[tuple[str, str], list[Panel]] = {}
    for panel in found:
        fits.setdefault((parse_call(panel.simulator)[0], panel.track), []).append(panel)
    place = {panel: i for mine in fits.values() for i, panel in enumerate(mine)}
    return sorted(found, key=lambda panel: (-many[panel], place[panel]))


def first(panels: int) -> int | None:
    """How many of them are shown at once; all of a few."""
    return None if panels <= MOST else MOST


def add_rewards(page: Page, runs: Runs, panels: Sequence[Panel], name: str) -> None:
    """The figure of some simulators, and a table for each."""
    page.figure(name, reward_figure(runs, panels), _how_to_read(runs, panels))
    table = runs.against_ranker()
    for k, panel in enumerate(panels if len(table) else ()):
        part = of_panel(table, panel).drop(columns=["simulator", "track"])
        order = list(of_panel(runs.summary(), panel)["policy"])
        part = part.sort_values("policy", key=lambda p: p.map(order.index))
        shown = three_numbers(part, runs.horizon)
        caption = f"{runs.title(panel)}, in {_levels(part)}"
        page.table(f"{name}-{k + 1}", part, caption, shown=shown, more=False)


def _how_to_read(runs: Runs, panels: Sequence[Panel]) -> str:
    text = "Bands: 95% intervals"
    if any(runs.reward_over_time(panel).ranker > 0 for panel in panels):
        text += " of the difference to today's ranker, query by query"
    drawn = sum(len(drawn_policies(runs, panel)) for panel in panels)
    if drawn < sum(len(of_panel(runs.summary(), panel)) for panel in panels):
        text += "; only the policies that lose least are drawn"
    return f"{text}."


def _levels(part: pd.DataFrame) -> str:
    """The unit, and what today's ranker and the best list earn."""
    row: Any = next(part.itertuples())
    levels = {"today's ranker earns": row.ranker, "the best list": row.best}
    known = [f"{name} {number(x)}" for name, x in levels.items() if x == x]
    return f"{UNITS[row.unit]}{': ' if known else ''}{', '.join(known)} per search."


def three_numbers(part: pd.DataFrame, horizon: int) -> dict[str, list[Cell]]:
    """Reward at the end, break-even and cost until then, of rows of ``Runs.against_ranker``."""
    rows: list[Any] = list(part.itertuples())
    found = {"policy": [Cell(row.policy) for row in rows]}
    if all(row.break_even != row.break_even for row in rows):
        rewards = [_with_interval(row.reward, row.low, row.high) for row in rows]
        return found | {"reward at the end": rewards}
    return found | {
        "reward at the end": [Cell(number(row.reward), row.reward) for row in rows],
        "over today's": [
            _with_interval(row.ahead, row.ahead_low, row.ahead_high, "+") for row in rows
        ],
        "break-even, searches": [break_even(row, horizon) for row in rows],
        "cost until then": [_with_interval(row.cost, row.cost_low, row.cost_high) for row in rows],
    }


def _with_interval(x: float, low: float, high: float, sign: str = "") -> Cell:
    """A number with its interval in small print; nothing where it was not measured."""
    if x != x:
        return Cell("")
    known = low == low and (low, high) != (0.0, 0.0)
    return Cell(number(x, sign), x, f"({interval(low, high)})" if known else "")


def break_even(row: Any, horizon: int) -> Cell:
    """After how many searches the policy has earned more than the ranker, with its interval."""
    low, high = ends_of(row)
    if low != low:
        return Cell("")
    if math.isinf(low):
        return Cell(f"never within {horizon:,}", NEVER)
    ends = dict.fromkeys([searches(low), searches(high, "never")])
    return Cell("from the first search" if high == 0 else " to ".join(ends), low)
