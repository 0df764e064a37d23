"""The answer of ``decide`` for a person: twelve lines at most, Markdown, and the facts behind it.

Digits follow the error: a gain known to a percent has none after the point. A line is there only
where it says something. The page (``sections/decision.py``) has the same parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from logeval.facts import Fact, worst_first
from logeval.reports.words import LEVELS, REMEDIES, capital, sentence
from logeval.running.names import parse_call

if TYPE_CHECKING:
    from logeval.decision.decision import Choice, Decision, TestSize

UNITS = {"clicks": "clicks", "any-click": "searches with a click", "satisfaction": "satisfaction"}
NAMED = ("not-used", "thin-queries", "learns-nothing", "left-out")  # though they are no cautions
MOST_ROWS = 4  # of policies in the table, with that of the others, which are in the page
WHOLE = 0.95  # of the log's searches: an answer about as many is about the log


def text(found: Decision, markdown: bool = False) -> str:
    """The answer; ``markdown`` for a chat or a ticket."""
    word, why = headline(found)
    head, rows = table(found)
    shown = [[f"{mark} {row[0]}", *row[1:]] for mark, row in rows]
    first = f"**{word}.** {why}" if markdown else f"{word}.  {why}"
    mind = believe(found)
    rest = [f"Believe it?  {'; '.join(mind)}."] if mind else []
    rest += [f"{line}." for line in all_results(found)]
    rest += [f"Next   {line}." for line in next_steps(found)]
    made = _markdown(head, shown) if markdown else table_text([f"  {head[0]}", *head[1:]], shown)
    above = [first, "", *([made, ""] if found.choices else [])]
    return "\n".join([*above, ("\n\n" if markdown else "\n").join(rest)])


def headline(found: Decision) -> tuple[str, str]:
    """What to do, and why."""
    one = found.choice
    if found.decision == "TEST" and one is not None:
        gain, _, ends = _gain(one).partition(" ")
        return f"TEST {short_names(found)[one.policy]}", (
            f"{_over(found)}: {gain} {UNITS[found.reward]} {ends}, worse than today with "
            f"probability {_chance(one.worse)}."
        )
    why = next((fact for fact in found.facts if fact.code == found.reason), None)
    subject = "KEEP today's ranker" if found.decision == "KEEP" else "WAIT"
    return subject, "" if why is None else f"{capital(_said(found, why))}."


def _over(found: Decision) -> str:
    if found.days is None:
        return f"Over as many searches as in the log ({found.searches:,.0f})"
    return f"Over {found.days:,.3g} day{'s' if found.days != 1 else ''} of this traffic"


def table(found: Decision) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Titles, and rows with their marks: best lists, the policies, today's ranker."""
    error = max((_half(one) * found.today for one in found.choices), default=0.0)
    best = _percent(found.best / found.today - 1.0) if found.today else ""
    rows = [(" ", ["best lists", _total(found.best, error), best, "", "", ""])]
    names = short_names(found)
    shown, rest = found.choices, []
    if len(shown) > MOST_ROWS:  # the choice among them
        first = sorted(shown, key=lambda one: one.policy != found.policy)[: MOST_ROWS - 1]
        shown, rest = ([o for o in shown if (o in first) is there] for there in (True, False))
    for one in shown:
        cells = [names[one.policy], _total(one.reward, error), _gain(one), _chance(one.worse)]
        cells += [_pays_back(one, found), _worst(one)]
        rows.append((">" if one.tied else " ", cells))
    if rest:
        least = _total(rest[-1].reward, error)
        rows.append((" ", [f"{len(rest)} more", f"from {least}", "", "", "", ""]))
    rows.append((" ", ["today's ranker", _total(found.today, error), "", "", "", ""]))
    return ["", UNITS[found.reward], "vs today", "worse", "pays back", "worst query"], rows


def believe(found: Decision) -> list[str]:
    """What the answer rests on, and what to have in mind."""
    said = [f for f in found.facts if f.code in ("simulator-used", "simulator-fails")]
    said += [f for f in found.facts if f.code == "traffic-covered" and (f.value or 0.0) < WHOLE]
    said += [f for f in found.facts if f.level == "caution" and f.code != found.reason]
    said += [f for f in found.facts if f.code in NAMED and f not in said]
    return [_said(found, fact) for fact in said]


def all_results(found: Decision) -> list[str]:
    """What results that the log hardly shows would add."""
    one, more = found.choice, found.all_gain
    if one is None or more is None or more <= one.gain + _half(one):
        return []
    return [f"If rarely shown results hold what they promise: {_percent(more)}"]


def next_steps(found: Decision) -> list[str]:
    """What to do now."""
    steps = []
    if found.decision == "WAIT" and found.reason in REMEDIES:
        steps.append(REMEDIES[found.reason])
    if found.decision != "KEEP" and found.tests:
        steps.append(" or ".join(map(_test, found.tests)))
    return steps


def _said(found: Decision, fact: Fact) -> str:
    """The sentence, with names as the table has them."""
    names = short_names(found)
    return sentence(fact if fact.about not in names else fact.renamed(names[fact.about]))


def short_names(found: Decision) -> dict[str, str]:
    """Policies and simulators without their options, where that is enough to know them apart."""
    kinds = [[one.policy for one in found.choices], [one.name for one in found.simulators]]
    return {name: short for kind in kinds for name, short in _short(kind).items()}


def _short(names: Iterable[str]) -> dict[str, str]:
    short = {name: parse_call(name)[0] for name in names}
    alone = list(short.values())
    return {name: of if alone.count(of) == 1 else name for name, of in short.items()}


FACTS = ["fact", "value", "threshold", "", "what to do"]


def facts_rows(facts: Sequence[Fact]) -> list[list[str]]:
    """A row per fact."""
    rows = []
    for fact in worst_first(facts):
        remedy = "" if fact.level == "fine" else REMEDIES.get(fact.code, "")
        numbers = map(_plain, (fact.value, fact.threshold))
        rows.append([sentence(fact), *numbers, LEVELS[fact.level], remedy])
    return rows


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
    """Digits after the point of a percentage whose error is so large: two of it up to 4.9."""
    if not half > 0.0:
        return 1
    return int(min(max(1 - math.floor(math.log10(200.0 * half)), 0), 3))


def _percent(share: float, digits: int | None = None) -> str:
    if digits is None:
        digits = 0 if abs(share) >= 0.1 else 1
    return f"{100.0 * share:+.{digits}f}%" if math.isfinite(share) else ""


def _gain(one: Choice) -> str:
    digits = _digits(_half(one))
    low, high = (f"{100.0 * end:.{digits}f}" for end in (one.gain_low, one.gain_high))
    return f"{_percent(one.gain, digits)} ({low} to {high})"


def _worst(one: Choice) -> str:
    return _percent(one.worst_gain, _digits((one.worst_high - one.worst_low) / 2.0))


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
        share = one.pays_back / found.searches
        return "at once" if share < 0.005 else f"after {share:.0%}"
    return f"day {max(math.ceil(one.pays_back), 1)}"


def _test(test: TestSize) -> str:
    if test.searches is None:
        return f"{test.design}: no number of searches is enough"
    return f"{test.design} of {_two_digits(test.searches)} searches{_days(test)}"


def _two_digits(searches: float) -> str:
    """Rounded up."""
    size = 10.0 ** max(math.floor(math.log10(searches)) - 1, 0)
    return f"{math.ceil(searches / size) * size:,.0f}"


def _days(test: TestSize) -> str:
    if test.days is None:
        return ""
    days = max(math.ceil(test.days), 1)
    return f" ({days:,} day{'s' if days > 1 else ''})"


TESTS = ["test", "compared", "effect", "searches", "days"]


def rows_of_tests(found: Decision) -> list[list[str]]:
    """A row per design of a test of the choice against today's ranker."""
    rows = []
    for test in found.tests:
        searches = "never enough" if test.searches is None else _two_digits(test.searches)
        days = "" if test.days is None else f"{max(math.ceil(test.days), 1):,}"
        rows.append([test.design, test.metric, f"{test.effect:+.2g}", searches, days])
    return rows


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([x.strip() for x in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
