"""The answer of ``decide`` for a person: twelve lines at most, Markdown, and the facts behind it.

Digits follow the error: a gain known to a percent has none after the point. A line is there only
where it says something.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from logeval.facts import Fact, worst_first
from logeval.reports.words import REMEDIES, sentence

if TYPE_CHECKING:
    from logeval.decision.decision import Choice, Decision

UNITS = {"clicks": "clicks", "any-click": "searches with a click", "satisfaction": "satisfaction"}
COLUMNS = ["", "vs today", "worse", "pays back", "worst query"]
MOST_ROWS = 6  # policies in the table; the others are in the page


def text(found: Decision, markdown: bool = False) -> str:
    """The answer; ``markdown`` for a chat or a ticket."""
    rows = _rows(found)
    head = ["", UNITS[found.reward], *COLUMNS[1:]]
    table = _markdown(head, rows) if markdown else table_text(head, rows)
    parts = [_bold(headline(found), markdown), "", table, *_last(found)]
    return "\n".join(parts)


def headline(found: Decision) -> str:
    """The first line: what to do, and why."""
    one = found.choice
    if found.decision == "TEST" and one is not None:
        gain, _, ends = _gain(one).partition(" ")
        return (
            f"TEST {one.policy}.  {_over(found)}: {gain} {UNITS[found.reward]} {ends}, worse than "
            f"today with probability {_chance(one.worse)}."
        )
    why = next((fact for fact in found.facts if fact.code == found.reason), None)
    reason = "" if why is None else f"{_capital(sentence(why))}."
    subject = "KEEP today's ranker." if found.decision == "KEEP" else "WAIT."
    return f"{subject}  {reason}"


def _over(found: Decision) -> str:
    if found.days is None:
        return f"Over as many searches as in the log ({found.searches:,.0f})"
    return f"Over {found.days:,.3g} day{'s' if found.days != 1 else ''} of this traffic"


def _rows(found: Decision) -> list[list[str]]:
    """Best lists, the policies, today's ranker."""
    error = max((_half(one) * found.today for one in found.choices), default=0.0)
    rows = [["  best lists", _total(found.best, error), _percent(found.best / found.today - 1.0)]]
    rows[0] += ["", "", ""]
    for one in found.choices[:MOST_ROWS]:
        mark = ">" if one.tied and found.decision != "KEEP" else " "
        rows.append(
            [
                f"{mark} {one.policy}",
                _total(one.reward, error),
                _gain(one),
                _chance(one.worse),
                _pays_back(one, found),
                _percent(one.worst_gain, _digits(_half(one))),
            ]
        )
    rows.append(["  today's ranker", _total(found.today, error), "", "", "", ""])
    return rows


def _last(found: Decision) -> list[str]:
    """What to believe, what else there is to know, and what to do next."""
    lines = [""]
    believe = [sentence(f) for f in found.facts if f.code == "simulator-used"]
    believe += [sentence(f) for f in _cautions(found)]
    if believe:
        lines.append(f"Believe it?  {'; '.join(believe)}.")
    if found.all_gain is not None:
        lines.append(f"If rarely shown results hold what they promise: {_percent(found.all_gain)}.")
    if found.decision == "WAIT" and found.reason in REMEDIES:
        lines.append(f"Next   {_capital(REMEDIES[found.reason])}.")
    for test in found.tests:
        lines.append(f"Next   {_test(test.design, test.searches, test.days)}")
    return lines if len(lines) > 1 else []


def _cautions(found: Decision) -> list[Fact]:
    return [f for f in found.facts if f.level == "caution" and f.code != found.reason]


def _test(design: str, searches: float | None, days: float | None) -> str:
    if searches is None:
        return f"{design}: no number of searches would be enough"
    time = "" if days is None else f" ({max(math.ceil(days), 1):,} days)"
    return f"{design}: {searches:,.0f} searches{time}"


def facts_table(facts: Sequence[Fact]) -> str:
    """The facts, the worst first: what, its value, what it is held against, what to do."""
    rows = [
        [sentence(f), *map(_plain, (f.value, f.threshold)), f.level, REMEDIES.get(f.code, "")]
        for f in worst_first(facts)
    ]
    return table_text(["fact", "value", "threshold", "", "what to do"], rows)


def table_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side; the first to the left, the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    cells = [
        [
            x.ljust(w) if i == 0 else x.rjust(w)
            for i, (x, w) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ]
    return "\n".join("  ".join(line).rstrip() for line in cells)


# -- numbers --------------------------------------------------------------------------------------


def _plain(x: float | None) -> str:
    return "" if x is None else f"{x:,.3g}"


def _half(one: Choice) -> float:
    half = (one.gain_high - one.gain_low) / 2.0
    return half if math.isfinite(half) else 0.0


def _digits(half: float) -> int:
    """Digits after the point of a percentage whose error is so large: two of the error."""
    if not half > 0.0:
        return 1
    return int(min(max(1 - math.floor(math.log10(100.0 * half)), 0), 3))


def _percent(share: float, digits: int | None = None) -> str:
    if digits is None:
        digits = 0 if abs(share) >= 0.1 else 1
    return f"{100.0 * share:+.{digits}f}%" if math.isfinite(share) else ""


def _gain(one: Choice) -> str:
    digits = _digits(_half(one))
    low, high = (f"{100.0 * end:.{digits}f}" for end in (one.gain_low, one.gain_high))
    return f"{_percent(one.gain, digits)} ({low} to {high})"


def _chance(p: float) -> str:
    if p < 0.01:
        return "<1%"
    return ">99%" if p > 0.99 else f"{p:.0%}"


def _total(x: float, error: float) -> str:
    step = 10.0 ** math.floor(math.log10(error / 3.0)) if error > 0.0 else 1.0
    return f"{round(x / max(step, 1.0)) * max(step, 1.0):,.0f}"


def _pays_back(one: Choice, found: Decision) -> str:
    if one.pays_back is None:
        return "never"
    if found.days is None:
        return f"after {one.pays_back / found.searches:.0%}"
    return f"day {max(math.ceil(one.pays_back), 1)}"


def _capital(sentence_: str) -> str:
    return sentence_[:1].upper() + sentence_[1:]


def _bold(line: str, markdown: bool) -> str:
    word, _, rest = line.partition(".  ")
    return f"**{word}.** {rest}" if markdown else line


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([x.strip() for x in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
