"""Cascades whose users change: Li, de Rijke (IJCAI 2019) and Wang et al. (AAAI 2021), their order.

Both papers print curves. What can be read in public without the papers are abstracts and
introductions: no settings, and no numbers. So the users are ours (``B_LB`` with nine changes), and
what is compared is the order that the papers state in words. Items are far apart, or as close as
in the tables of cascading-bandits, since that decides who wins.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from logeval.papers.shared.experiment import Cell, Claim, Experiment, Part, below
from logeval.papers.shared.figures import curves
from logeval.papers.shared.measures import last_half, over
from logeval.running.words import with_error

if TYPE_CHECKING:
    from logeval.papers.shared.outcome import Outcome

HORIZON, RUNS, CHANGES = 100_000, 40, 9
ATTRACTIONS = {"far": (0.5, 0.4), "near": (0.2, 0.15)}  # p of the good items, and their gap
STILL = ("CascadeUCB1", "CascadeKL-UCB")  # they forget nothing
PASSIVE = ("CascadeSWUCB", "CascadeDUCB")  # window and discount at their defaults
ACTIVE = ("GLRT-CascadeUCB", "GLRT-CascadeKL-UCB")
LI, WANG = "Li, de Rijke", "Wang et al."
UNSETTLED = (
    "Not found in public: the numbers of items, positions, steps and changes of both papers, their "
    "attractions and their curves. L = 10, K = 3, 100,000 steps, nine changes and the attractions "
    "are ours; windows, discounts and tests have their defaults."
)


def users(name: str, changes: int) -> str:
    """The problem of a setting."""
    p, gap = ATTRACTIONS[name]
    more = f",changes={changes}" if changes else ""
    return f"B_LB(L=10,K=3,p={p:g},gap={gap:g},gamma=1{more})"


def _below(ours: str, others: tuple[str, ...], text: str) -> Claim:
    cases = {f"{ours} over {b}": over(Cell(ours), Cell(b)) for b in others}
    reason = "the users are ours; see what a new start is worth"
    return below(text, cases, place=f"{WANG}, abstract", reason=reason)


CLAIMS = (
    Claim(
        "who forgets nothing goes on losing (share of the last half: 0.5 where regret is linear, "
        "0.29 where it is a root)",
        {policy: last_half(Cell(policy)) for policy in STILL},
        low=0.35,
        place=f"{LI}, section 1",
    ),
    *(_below(tested, PASSIVE, f"{tested} is below window and discount") for tested in ACTIVE),
    *(
        _below(tested, (still,), f"{tested} is below {still}")
        for tested, still in zip(ACTIVE, STILL, strict=True)
    ),
)


def _facts(outcome: Outcome) -> list[str]:
    """What was not settled, what is only recalled, and what a new start costs."""
    ratios = [
        f"{a} over {b} {with_error(*over(Cell(a), Cell(b))(outcome)[:2])}"
        for a in PASSIVE
        for b in STILL
    ]
    _, constant = outcome.experiment.parts
    period = 1.0 / (CHANGES + 1)
    starts = [
        f"{policy} loses {outcome.regret(Cell(policy)).mean() * period:,.0f} clicks a period, and "
        f"{outcome.regret(Cell(policy, part=constant.name), period).mean():,.0f} in its first, "
        "when it knows nothing"
        for policy in STILL
    ]
    return [
        UNSETTLED,
        f"Recalled of the figures of {LI}, and so not judged: window and discount are below who "
        f"forgets nothing. Here: {', '.join(ratios)}.",
        f"What a new start is worth: {'; '.join(starts)}. Starting again pays where the second "
        "is less.",
    ]


_setting = partial(Experiment, paper="users that change", horizon=HORIZON, runs=RUNS, seconds=20)
EXPERIMENTS = tuple(
    _setting(
        f"changing-{name}",
        f"setting {name}",
        f"order of cascading bandits on users who change {CHANGES} times, items {how}",
        (
            Part(f"changing-{name}", (users(name, CHANGES),), (*STILL, *PASSIVE, *ACTIVE)),
            Part(f"constant-{name}", (users(name, 0),), STILL),
        ),
        CLAIMS,
        facts=_facts,
        figure=curves((f"changing-{name}",)),
    )
    for name, how in (("far", "far apart"), ("near", "close"))
)
