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
from logeval.reports.details import Parts, competing
from logeval.reports.limits import BASELINES
from logeval.running.words import joined, number, out_of, searches
from logeval.tracks.keys import Panel

UNITS = {
    "satisfaction": "satisfied searches",
    "clicks": "clicks",
    "any-click": "searches with a click",
}
CLAUSES = 3  # simulators that have a clause of their own in a sentence


def headline(runs: Runs, parts: Parts) -> list[str]:
    """The sentences of the answer, track by track; a track in which nobody competes adds none."""
    contested = any(_rivals(summary) > 1 for summary, _ in parts.values())
    found = []
    for track in dict.fromkeys(panel.track for panel in parts):
        mine = {panel: summary for panel, (summary, _) in parts.items() if panel.track == track}
        if contested and len(mine) == 1 and _rivals(next(iter(mine.values()))) < 2:
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
                f"Which policy loses least depends on the simulator ({_by(tables, first)}); "
                "nothing can be tested."
            )
        return (
            f"{first[0]} loses least on {where}; nothing can be tested. "
            f"{_losses(runs, tables, first[0])}."
        )
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
        tied = [
            f"{f'on {panel.simulator} ' if len(tables) > 1 else ''}it cannot be told apart from "
            f"{joined(sorted(one - {best}))}"
            for panel, one in zip(tables, sets, strict=True)
            if len(one) > 1
        ]
        return f"{best} has the smallest loss on {where}, but {'; '.join(tied)}. {losses}"
    may = f"any of {joined(shared)} may be best" if len(shared) > 1 else f"{best} may be best"
    if len(set(first)) == 1:
        return f"There is no winner on {where}: {may}. {losses}"
    return f"There is no winner: {may}; the smallest loss is that of {_by(tables, first)}. {losses}"


def _by(panels: Mapping[Panel, Any], best: list[str]) -> str:
    return joined([f"{b} on {panel.simulator}" for panel, b in zip(panels, best, strict=True)])


def _where(runs: Runs, panels: list[Panel]) -> str:
    """``DCM and PBM``; of many, their number."""
    names = [runs.title(panel) for panel in panels]
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
    best = "the best pair" if next(iter(tables)).track == "rank1" else "the best list"
    text = (
        f"In {runs.horizon:,} searches of a query it loses {joined(lost)} that {best} would have "
        "brought"
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
    several = len(parts) > 1
    policies = {row.policy for _, row in clauses}
    who = policies.pop() if len(policies) == 1 else "the best policy of each simulator"
    if len(clauses) > CLAUSES:
        return [_in_short(runs, who, [row for _, row in clauses])]
    texts = []
    for panel, row in clauses:
        where = f"on {panel.simulator} " if several else ""
        texts.append(f"{where}{_clause(row, runs.horizon)}")
    return [f"Against today's ranker {who}: {'; '.join(texts)}."]


def _clause(row: Any, horizon: int) -> str:
    unit = UNITS[row.unit]
    text = break_even_text(row, horizon)
    if row.cost > 0 and row.break_even > 0:
        text += f", after being behind by up to {number(row.cost)} {unit}"
    return (
        f"{text}; at the end a search brings {number(row.reward)} {unit}, today's "
        f"{number(row.ranker)}, the best list {number(row.best)}"
    )


def break_even_text(row: Any, horizon: int) -> str:
    """When the total reward passes the ranker's, with its interval, in words."""
    low, high = row.break_even_low, row.break_even_high
    never = f"never within {horizon:,}"
    if row.break_even == 0:
        late = "" if high == 0 or high != high else f" (95% interval up to {searches(high, never)})"
        return f"ahead from the first search on{late}"
    if np.isinf(row.break_even):
        soon = "" if low != low or np.isinf(low) else f" (at the earliest after {searches(low)})"
        return f"not ahead within {horizon:,} searches of a query{soon}"
    text = f"ahead after {searches(row.break_even)} searches of a query"
    return (
        text if low != low else f"{text} (95% interval {searches(low)} to {searches(high, never)})"
    )


def _in_short(runs: Runs, who: str, rows: list[Any]) -> str:
    """Many simulators in one sentence."""
    ahead = [row for row in rows if np.isfinite(row.break_even)]
    text = f"Against today's ranker {who} is ahead in the end on {len(ahead)} of {len(rows)}"
    text += " simulators"
    if ahead:
        steps = [row.break_even for row in ahead]
        text += f", after {searches(min(steps))} to {searches(max(steps))} searches of a query"
    unsure = [row for row in ahead if not np.isfinite(row.break_even_high)]
    if unsure:
        text += f"; on {len(unsure)} of these the 95% interval does not exclude that it never is"
    return f"{text}."
