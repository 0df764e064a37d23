"""The answer itself: which policy loses least, with units, and how sure that is.

What "loses least" and "cannot be told apart" mean is said in ``reports.details``. What is lost is a
share of what the best list would have brought: 69 of 1,000 satisfied searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from logeval.evaluation.results import Runs
from logeval.reports.against import Favourite, against_ranker, rows_of
from logeval.reports.details import UNTESTED, Parts, best_of, competing
from logeval.reports.limits import BASELINES
from logeval.reports.trust import unfaulted
from logeval.running.words import UNITS, joined, out_of
from logeval.tracks.keys import Panel

MOST = 4  # simulators whose names are said


def headline(runs: Runs, parts: Parts) -> list[str]:
    """The sentences of the answer, track by track; a track in which nobody competes adds none."""
    contested = any(len(_learning(summary)) > 1 for summary, _ in parts.values())
    found = []
    for track in dict.fromkeys(panel.track for panel in parts):
        mine = {panel: summary for panel, (summary, _) in parts.items() if panel.track == track}
        if contested and all(len(_learning(summary)) < 2 for summary in mine.values()):
            continue
        found.append(_who(runs, mine))
        found += against_ranker(runs, {panel: _learning(one) for panel, one in mine.items()})
    return found


def favourite(runs: Runs, parts: Parts) -> Favourite:
    """The policy that learns and loses least, or may, on all simulators; of lists, where there are.

    And its rows against today's ranker, where that is known. Simulators that no check faults choose
    it, where there are such.
    """
    tracks = {panel.track for panel in parts}
    track = "ranking" if "ranking" in tracks else min(tracks)
    mine = {panel: _learning(s) for panel, (s, _) in parts.items() if panel.track == track}
    mine = {panel: table for panel, table in mine.items() if len(table)}
    if not mine:
        return Favourite(None, {})
    sound = unfaulted(runs)
    policy = standing({p: one for p, one in mine.items() if p.simulator in sound} or mine).best
    firsts = {panel: str(table["policy"].iloc[0]) for panel, table in mine.items()}
    return Favourite(policy, rows_of(runs, dict.fromkeys(mine, policy) if policy else firsts))


def _learning(summary: pd.DataFrame) -> pd.DataFrame:
    """The policies that learn."""
    return summary[~summary["policy"].str.partition("(")[0].isin(BASELINES)]


# -- who loses least ------------------------------------------------------------------------------


class Standing(NamedTuple):
    """Who loses least on the simulators of a track, and who cannot be told apart from these."""

    first: list[str]  # by simulator
    sets: list[set[str]]
    tested: bool
    shared: list[str]  # of the best set of every simulator

    @property
    def best(self) -> str | None:
        """The policy that loses least, or may, on all of them."""
        if len(set(self.first)) == 1:
            return self.first[0]
        return self.shared[0] if self.tested and self.shared else None


def standing(tables: Mapping[Panel, pd.DataFrame]) -> Standing:
    """Of the tables of those that compete."""
    first = [str(table["policy"].iloc[0]) for table in tables.values()]
    sets = [set(table[table["in_best_set"]]["policy"]) for table in tables.values()]
    order = list(next(iter(tables.values()))["policy"])
    shared = [p for p in order if all(p in one for one in sets)]
    tested = not any(table["p"].isna().all() for table in tables.values())
    return Standing(first, sets, tested, shared)


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
    first, sets, tested, shared = found = standing(tables)
    if not tested:
        if len(set(first)) > 1:
            return (
                f"Which policy loses least depends on the simulator ({_by(tables, first)}). "
                f"{UNTESTED}."
            )
        return f"{first[0]} loses least on {where}. {UNTESTED}. {_losses(runs, tables, first[0])}."
    best = found.best
    if not shared or best is None:
        these = _by(tables, [joined(sorted(one)) for one in sets])
        return f"The answer depends on the simulator: the best policy is {these}."
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
    return joined(names) if len(names) <= MOST else f"all {len(names)} simulators"


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
