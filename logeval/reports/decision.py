"""What to do: test the policy in traffic, keep today's ranker, or find out more before deciding.

It rests on the simulators that no check faults on SERPs kept apart, run on draws of their
parameters; where there is none, or less was looked at, nothing is decided. Ahead of the ranker is a
policy whose 95% interval of the difference at the end is above 0.
"""

from __future__ import annotations

import numpy as np

from logeval.evaluation.results import Runs
from logeval.reports.against import UNCHECKED, Favourite, Rows, believed, ends_of
from logeval.reports.trust import doubts, longer_log
from logeval.running.words import joined, searches

PLAN = "logeval plan says how many searches a test takes."
NAMED = 4  # simulators; of more their number is said


def decision(runs: Runs, best: Favourite) -> str:
    """A sentence; nothing where today's ranker is not known."""
    policy, every = best
    if not every:
        return ""
    rows = believed(runs, every)
    if not rows:
        return f"Do not decide yet: {_nothing_to_go_by(runs, every)}."
    if policy is None:
        return "Do not decide yet: which policy is best depends on the simulator."
    names = {panel.simulator for panel in rows}
    if exact := [name for name in names if not runs.simulators[name]["draws"]]:
        return (
            f"Do not decide yet: the parameters of {joined(sorted(exact))} were taken as exact; "
            "--draws 8 includes what the log leaves open."
        )
    where = f"{names_of(rows)}{', which no check faults' if len(rows) < len(every) else ''}"
    if any(row.ahead_low != row.ahead_low for row in rows.values()):
        return (
            f"Do not decide yet: whether {policy} beats today's ranker cannot be tested; run more "
            "queries, or more runs of this one."
        )
    if all(row.ahead_high < 0 for row in rows.values()):
        return (
            f"Keep today's ranker: {policy}, which loses least, still earns less than it after "
            f"{runs.horizon:,} searches of a query on {where}."
        )
    unsure = {panel: row for panel, row in rows.items() if row.ahead_low <= 0}
    if unsure:
        return (
            f"Do not decide yet: {policy} does not end clearly ahead of today's ranker on "
            f"{names_of(unsure)}; {_what_may_show(runs)}, or more queries, may show it."
        )
    unpaid = {panel: row for panel, row in rows.items() if np.isinf(row.break_even)}
    if unpaid:
        return (
            f"Do not decide yet: {policy} ends ahead of today's ranker on {where}, but within "
            f"{runs.horizon:,} searches of a query it has not earned back what learning cost on "
            f"{names_of(unpaid)}; {_what_may_show(runs)} shows whether it does."
        )
    if not doubts(runs, names):
        return f"Test {policy} in traffic: it ends ahead of today's ranker on {where}. {PLAN}"
    rest = "it rests" if len(rows) == 1 else "they rest"
    return (
        f"A small test in traffic at most: {policy} ends ahead of today's ranker on {where}, but "
        f"{rest} on too little to be sure. {PLAN}"
    )


def _what_may_show(runs: Runs) -> str:
    return "a longer log" if longer_log(runs) else "a longer --horizon"


def _nothing_to_go_by(runs: Runs, rows: Rows) -> str:
    """Why none of the simulators decides."""
    names = list(dict.fromkeys(panel.simulator for panel in rows))
    known = {name: runs.simulators.get(name, UNCHECKED)["checks"] for name in names}
    unchecked = [name for name in names if known[name] is None]
    if unchecked:
        return f"nobody has checked {joined(unchecked)}; logeval check-models does it"
    if empty := [name for name in names if not known[name]["judged"]]:
        return f"the log has too few clicks to check {joined(empty)}"
    if not all(one["held_out"] for one in known.values()):
        return "the checks used SERPs that the models were fitted to; fit with --holdout 0.1"
    return f"users of {joined(names)} do not click quite like yours"


def names_of(rows: Rows) -> str:
    """``DCM and PBM``; of many, their number."""
    names = [panel.simulator for panel in rows]
    return joined(names) if len(names) <= NAMED else f"all {len(names)} simulators"


def traffic(runs: Runs, best: Favourite) -> list[str]:
    """The queries that were searched less often, in the log, than it takes to break even."""
    policy, rows = best
    known = runs.problems().dropna(subset=["serps"]).drop_duplicates("query")
    finite = [low for low, _ in map(ends_of, rows.values()) if np.isfinite(low)]
    if policy is None or known.empty or not finite:
        return []
    few = int((known["serps"] < max(finite)).sum())
    if not few:
        return []
    return [
        f"{few} of {len(known)} queries were searched less often in the log than it takes "
        f"{policy} to break even at the earliest ({searches(max(finite))} searches): with as much "
        "traffic again it would not pay there"
    ]
