"""What to do: test the policy in traffic, keep today's ranker, or find out more before deciding.

It rests on the simulators that no check faults on SERPs kept apart, run on draws of their
parameters; where there is none, or less was looked at, nothing is decided. Ahead of the ranker is a
policy whose 95% interval of the difference at the end is above 0.

The answer in words: what to do, whether the simulators can be believed, and what else limits it.

The order is that of somebody who has to decide: what to do (``decision``), the answer in two
sentences with their units (``headline``, ``against``), then what the tool's own checks say of its
simulators (``trust``), then what else limits the answer (``limits``), then the details behind it
(``details``).
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

import numpy as np

from logeval.clicks.fitting import NO_CLICK
from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.summary import is_oracle
from logeval.reports.answers.checks import item
from logeval.reports.headline import (
    UNCHECKED,
    Favourite,
    Rows,
    believed,
    details,
    ends_of,
    favourite,
    headline,
    limits_of,
    of_panel,
)
from logeval.reports.trust import doubts, longer_log, trust
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


@dataclass(frozen=True)
class Verdict:
    """An answer of a sentence or two, whether to believe it, what limits it, and the details.

    ``decision`` is what to do, where today's ranker is known. ``sound`` is false where a simulator
    is faulted by its checks, where its parameters were taken as exact, or where it rests on few
    SERPs.
    """

    answer: str
    trust: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    sound: bool = True
    decision: str = ""

    def text(self, width: int = 80) -> str:
        """For the terminal."""
        said = filter(None, [self.decision, self.answer])
        parts = [textwrap.fill(text, width, break_on_hyphens=False) for text in said]
        for title, lines in self.sections():
            parts.append(title if title.endswith("?") else f"{title}:")
            parts += [item(line, width) for line in lines]
        return "\n".join(parts)

    def sections(self) -> list[tuple[str, list[str]]]:
        """What follows the answer: titles and sentences."""
        found = [
            ("Can the simulators be believed?", self.trust),
            ("What else limits this", self.limits),
            ("Details", self.details),
        ]
        return [(title, lines) for title, lines in found if lines]


def verdict(runs: Runs) -> Verdict:
    """The verdict on the runs of one folder, at their last step."""
    summary, pairs = runs.summary(), runs.compare()
    parts = {
        panel: (of_panel(summary, panel), of_panel(pairs, panel))
        for panel in runs.panels()
        if (~of_panel(summary, panel)["policy"].map(is_oracle)).any()
    }
    if not parts:
        return Verdict("Only the Oracle was run: there is nothing to compare.")
    if any(NO_CLICK in note for note in runs.notes):
        return Verdict(
            "There is no click in the log that the simulators were fitted to. They consist of "
            "their priors, so it means nothing which policy loses least on them.",
            limits=limits_of(runs),
            sound=False,
        )
    best = favourite(runs, parts)
    answer = " ".join(headline(runs, parts))
    return Verdict(
        answer,
        trust(runs),
        [*limits_of(runs), *traffic(runs, best)],
        details(runs, parts),
        not doubts(runs),
        decision(runs, best),
    )
