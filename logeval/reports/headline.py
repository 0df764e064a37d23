"""The answer itself: which policy loses least, and whether it beats today's ranker, with units.

What "loses least" and "cannot be told apart" mean is said in ``reports.details``. A loss is a share
of what the best list would have brought: 69 of 1,000 satisfied searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from logeval.evaluation.results import Runs
from logeval.reports.details import UNTESTED, Parts, best_of, competing
from logeval.reports.limits import BASELINES
from logeval.running.words import UNITS, joined, number, out_of, searches
from logeval.tracks.keys import Panel

PASSES, OF_A_QUERY = "passes today's ranker ", " searches of a query"
CLAUSES = 3  # simulators that have a clause of their own in a sentence


def headline(runs: Runs, parts: Parts) -> list[str]:
    """The sentences of the answer, track by track; a track in which nobody competes adds none."""
    contested = any(_rivals(summary) > 1 for summary, _ in parts.values())
    found = []
    for track in dict.fromkeys(panel.track for panel in parts):
        mine = {panel: summary for panel, (summary, _) in parts.items() if panel.track == track}
        if contested and all(_rivals(summary) < 2 for summary in mine.values()):
            continue
        found.append(_who(runs, mine))
        found += _against_ranker(runs, mine)
    return found


def _rivals(summary: pd.DataFrame) -> int:
    """How many policies learn."""
    names = summary["policy"].str.partition("(")[0]
    return int((~names.isin(BASELINES)).sum())


# -- who loses least ------------------------------------------------------------------------------


def _who(runs: Runs, parts: Mapping[Panel, pd.DataFrame]) -> str:
    """The policy that loses least, and how sure that is."""
    tables = {panel: competing(summary) for panel, summary in parts.items()}
    where = _where(runs, list(tables))
    common = set.intersection(*(set(table["policy"]) for table in tables.values()))
    if not common:
        return f"{where} have no policy in common, so they cannot agree or contradict each other."
    if all(len(table) == 1 for table in tables.values()):
        (policy,) = common
        return f"Only {policy} was run on {where}. {_losses(runs, tables, policy)}."
    first = [str(table["policy"].iloc[0]) for table in tables.values()]
    if any(table["p"].isna().all() for table in tables.values()):
        if len(set(first)) > 1:
            return (
                f"Which policy loses least depends on the simulator ({_by(tables, first)}). "
                f"{UNTESTED}."
            )
        return f"{first[0]} loses least on {where}. {UNTESTED}. {_losses(runs, tables, first[0])}."
    sets = [set(table[table["in_best_set"]]["policy"]) for table in tables.values()]
    order = list(next(iter(tables.values()))["policy"])
    shared = [p for p in order if all(p in one for one in sets)]
    if not shared:
        best = _by(tables, [joined(sorted(one)) for one in sets])
        return f"The answer depends on the simulator: the best policy is {best}."
    best = first[0] if len(set(first)) == 1 else shared[0]
    losses = f"{_losses(runs, tables, best, _next(tables, best))}."
    if all(len(one) == 1 for one in sets):
        return f"{best} loses least on {where}. {losses}"
    if len(set(first)) == 1 and (len(tables) == 1 or len(shared) == 1):
        tied: dict[str, list[str]] = {}
        for panel, one in zip(tables, sets, strict=True):
            if len(one) > 1:
                tied.setdefault(joined(sorted(one - {best})), []).append(panel.simulator)
        but = [
            f"{f'on {joined(on)} ' if len(tables) > 1 else ''}it cannot be told apart from {them}"
            for them, on in tied.items()
        ]
        return f"{best} loses least on average on {where}, but {'; '.join(but)}. {losses}"
    may = f"any of {joined(shared)} may be best" if len(shared) > 1 else f"{best} may be best"
    losses = losses.replace(" it loses ", f" {best} loses ", 1)
    if len(set(first)) == 1:
        return f"There is no winner on {where}: {may}. {losses}"
    return f"There is no winner: {may}; on average {_by(tables, first, ' loses least')}. {losses}"


def _by(panels: Mapping[Panel, Any], best: list[str], does: str = "") -> str:
    """``A on DCM and B on PBM``."""
    pairs = zip(panels, best, strict=True)
    return joined([f"{b}{does} on {panel.simulator}" for panel, b in pairs])


def _where(runs: Runs, panels: list[Panel]) -> str:
    """``DCM and PBM``; of many, their number."""
    names = [panel.simulator for panel in panels]
    return joined(names) if len(names) <= CLAUSES + 1 else f"all {len(names)} simulators"


def _next(tables: Mapping[Panel, pd.DataFrame], best: str) -> str | None:
    """The policy behind the best, if it is the same on all simulators."""
    behind = {next(iter(t["policy"][t["policy"] != best]), None) for t in tables.values()}
    return behind.pop() if len(behind) == 1 else None


def _losses(
    runs: Runs, tables: Mapping[Panel, pd.DataFrame], policy: str, rival: str | None = None
) -> str:
    """In 10,000 searches of a query it loses 50 of 1,000 satisfied searches ...; B loses 141."""
    units = runs.units()
    by_unit: dict[str, list[tuple[float, float]]] = {}
    for panel, table in tables.items():
        row = table.set_index("policy")["relative_regret"]
        pair = (float(row[policy]), float(row[rival]) if rival else np.nan)
        by_unit.setdefault(UNITS[units[panel]], []).append(pair)
    lost = [f"{out_of([a for a, _ in pairs])} {unit}" for unit, pairs in by_unit.items()]
    text = (
        f"In {runs.horizon:,} searches of a query it loses {joined(lost)} that "
        f"{best_of(next(iter(tables)))} would have brought"
    )
    if rival is not None:
        behind = [out_of([b for _, b in pairs]) for pairs in by_unit.values()]
        text += f"; {rival}, the next, loses {joined(behind)}"
    return text


# -- against today's ranker -----------------------------------------------------------------------


def _against_ranker(runs: Runs, parts: Mapping[Panel, pd.DataFrame]) -> list[str]:
    """When the best policy passes today's ranker, what that costs, and what it brings."""
    table = runs.against_ranker()
    clauses: list[tuple[Panel, Any]] = []
    for panel, summary in parts.items():
        learning = competing(summary)
        learning = learning[~learning["policy"].str.partition("(")[0].isin(BASELINES)]
        if learning.empty or table.empty:
            continue
        best = learning["policy"].iloc[0]
        mine = table[(table["simulator"] == panel.simulator) & (table["track"] == panel.track)]
        row: Any = next(mine[mine["policy"] == best].itertuples(), None)
        if row is not None and row.break_even == row.break_even:
            clauses.append((panel, row))
    if not clauses:
        return []
    policies = {row.policy for _, row in clauses}
    who = policies.pop() if len(policies) == 1 else "The best policy of each simulator"
    if len(clauses) > CLAUSES:
        return [_in_short(runs, who, [row for _, row in clauses])]
    on = {panel: f" on {panel.simulator}" if len(parts) > 1 else "" for panel, _ in clauses}
    texts = [f"{break_even_text(row, runs.horizon)}{on[p]}" for p, row in clauses]
    passes = joined([texts[0], *map(_again, texts, texts[1:])])
    brings = joined(
        [
            f"{number(row.reward)} {UNITS[row.unit]}{on[p]} (today's {number(row.ranker)}, the "
            f"best list {number(row.best)})"
            for p, row in clauses
        ]
    )
    return [f"{who} {passes}.", f"At the end a search brings {brings}."]


def _again(before: str, text: str) -> str:
    """A clause without the words that the one before it has just said."""
    if not (before.startswith(PASSES) and text.startswith(PASSES)):
        return text
    return text.removeprefix(PASSES).replace(OF_A_QUERY, "", 1)


def break_even_text(row: Any, horizon: int) -> str:
    """When the total reward passes today's ranker's, with its interval and the cost, in words."""
    low, high = row.break_even_low, row.break_even_high
    beyond = f"beyond {horizon:,}"
    about = []
    if row.break_even == 0:
        text = "is ahead of today's ranker from the first search"
        if high == high and high > 0:
            about.append(f"95% interval 0 to {searches(high, beyond)}")
    elif np.isinf(row.break_even):
        text = f"does not pass today's ranker within {horizon:,} searches of a query"
        if np.isfinite(low):
            about.append(f"at the earliest after {searches(low)}")
    else:
        text = f"{PASSES}after {searches(row.break_even)}{OF_A_QUERY}"
        if low == low:
            about.append(f"95% interval {searches(low)} to {searches(high, beyond)}")
    if row.cost > 0 and row.break_even > 0:
        about.append(f"up to {number(row.cost)} {UNITS[row.unit]} behind before")
    return f"{text} ({'; '.join(about)})" if about else text


def _in_short(runs: Runs, who: str, rows: list[Any]) -> str:
    """Many simulators in one sentence."""
    ahead = [row for row in rows if np.isfinite(row.break_even)]
    text = f"{who} passes today's ranker on {len(ahead)} of {len(rows)} simulators"
    if ahead:
        steps = [row.break_even for row in ahead]
        ends = " to ".join(dict.fromkeys(searches(n) for n in (min(steps), max(steps))))
        text += f", after {ends}{OF_A_QUERY}" if max(steps) > 0 else ", from the first search"
    unsure = [row for row in ahead if not np.isfinite(row.break_even_high)]
    if unsure:
        text += f"; on {len(unsure)} of these the 95% interval does not exclude that it never does"
    return f"{text}."
