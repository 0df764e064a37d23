"""A plan in words: what the treatment earns, how long each test takes, what a bandit would do."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from logeval.planning.effects import AB
from logeval.planning.experiment import RARE
from logeval.planning.power import INTERLEAVINGS, TeamDraft
from logeval.reports.answers.checks import Answer
from logeval.running.words import UNITS, interval, joined, number, rounded

if TYPE_CHECKING:
    from logeval.planning.experiment import ExperimentPlan

CHOSEN = (
    "{} is chosen by the clicks that it is judged by, and comes out too good: plan for more "
    "searches; rehearsals=8 would say by how much"
)
FEW = 100  # searches of a test, below which the normal distribution is a rough guess
DISAGREE = "{} is in favour of {}: clicks within one list are not what {} counts"


def verdict(found: ExperimentPlan) -> Answer:
    """The answer in two sentences, why, and what limits it."""
    facts = found.facts
    ab, unit = found.row(AB), UNITS[facts["metric"]]
    one, other = facts["control"], facts["treatment"]
    a, b = facts["control_value"], facts["treatment_value"]
    known = ab["low"] != ab["low"] or ab["low"] * ab["high"] > 0
    more = "more" if ab["effect"] >= 0 else "fewer"
    if ab["effect"] == 0.0:
        first = f"Users like {facts['users']}'s have as many {unit} with {other} as with {one}"
    elif known:
        size = f" ({abs(ab['effect']) / a:.0%})" if a > 0 else ""
        first = (
            f"Users like {facts['users']}'s would have {number(abs(ab['effect']))} {unit} per "
            f"search {more}{size} with {other} than with {one}"
        )
    else:
        first = (
            f"The log does not say whether {other} has more {unit} than {one} for users like "
            f"{facts['users']}'s"
        )
    if ab["low"] == ab["low"]:
        first += f", {interval(ab['low'], ab['high'])} more by what the log leaves open"
    return Answer(
        f"{first}. {_searches(found)}.",
        because=[
            f"{one} has {number(a)} {unit} per search, {other} {number(b)}",
            *_rehearsals(found),
            *_bandit(found),
        ],
        others=_metrics(found),
        limits=_limits(found),
        next=_next(found),
    )


def _searches(found: ExperimentPlan) -> str:
    """The second sentence."""
    facts, times = found.facts, {}
    for design in (AB, *(way.name for way in INTERLEAVINGS)):
        n = found.row(design)["searches"]
        none = "no number of" if design == AB else "none"
        times[design] = none if n != n else f"{n:,.0f}"
    ab, *others = times.items()
    often = "as often as in the log" if facts["traffic"] == "logged" else "equally often"
    these = "this query" if facts["queries"] == 1 else f"these {facts['queries']:,} queries"
    spread = "Of" if facts["queries"] == 1 else f"With each searched {often}, of"
    return (
        f"{spread} {these} an {ab[0]} takes {ab[1]} searches"
        + "".join(f", {name} {n}" for name, n in others)
        + f", to find the difference with {facts['power']:.0%} power"
    )


def _rehearsals(found: ExperimentPlan) -> list[str]:
    """What was taken off."""
    facts, ab = found.facts, found.row(AB)
    if not facts["rehearsals"]:
        return []
    off, unit = ab["flattered"], UNITS[facts["metric"]]
    changed = f"{number(abs(off))} {unit} too {'many' if off >= 0 else 'few'}; that is corrected"
    return [
        f"{joined(facts['chosen'])} is chosen by the clicks that it is judged by: in "
        f"{facts['rehearsals']} rehearsals on simulated logs the plan said {changed}, and the "
        "interval is that of their errors"
    ]


def _bandit(found: ExperimentPlan) -> list[str]:
    bandit, facts = found.bandit, found.facts
    if bandit is None:
        return []
    unit, n = UNITS[facts["metric"]], bandit["searches"]
    test = found.row(AB)["effect"] * n / 2.0
    lowest = (
        f"; at its lowest, after {bandit['lowest_at']:,} searches, it is "
        f"{rounded(-bandit['lowest'])} behind"
        if bandit["lowest"] < 0
        else "; it is never behind"
    )
    ahead = "more" if bandit["earned"] >= 0 else "fewer"
    gains = "more" if test >= 0 else "fewer"
    return [
        f"{bandit['policy']} in {n:,} searches has {rounded(abs(bandit['earned']))} {unit} {ahead} "
        f"than {facts['control']} (standard error {rounded(bandit['stderr'])}){lowest}; the A/B "
        f"test, half of which shows {facts['treatment']}, {rounded(abs(test))} {gains}"
    ]


def _metrics(found: ExperimentPlan) -> list[str]:
    rows = found.table[found.table["design"] == AB]
    told = []
    for row in rows[rows["metric"] != found.facts["metric"]].itertuples():
        n = "no number of" if row.searches != row.searches else f"{row.searches:,.0f}"
        told.append(
            f"{UNITS[row.metric]}: {number(row.effect, '+')} per search; an A/B test of them takes "
            f"{n} searches"
        )
    return told


def _limits(found: ExperimentPlan) -> list[str]:
    facts, said = found.facts, []
    ab = found.row(AB)
    for way in INTERLEAVINGS:
        row = found.row(way.name)
        if row["effect"] * ab["effect"] < 0:
            winner = facts["treatment"] if row["effect"] > 0 else facts["control"]
            said.append(DISAGREE.format(way.name, winner, UNITS[facts["metric"]]))
    if facts["chosen"] and facts["draws"] and not facts["rehearsals"]:
        said.append(CHOSEN.format(joined(facts["chosen"])))
    if facts.get("rare") and facts["rare"] >= 0.05:
        said.append(
            f"{facts['rare']:.0%} of the results of {facts['treatment']} were shown in fewer than "
            f"{RARE} SERPs of the log: what they would earn is mostly the model's guess"
        )
    if facts.get("faults"):
        said.append(
            f"these users are not quite those of the log: {'; '.join(facts['faults'][:2])} "
            "(logeval check-models says more)"
        )
    if facts["left_out"]:
        said.append(
            f"{facts['left_out']} queries ({facts['left_out_traffic']:.0%} of the searches) are "
            "left out: one of the rankers has no list for them"
        )
    if facts["covered"] < 0.995:
        said.append(
            f"{1 - facts['covered']:.0%} of the logged lists cannot be simulated (too short, or "
            "with items that the model dropped)"
        )
    if not facts["draws"]:
        said.append("the users' parameters are taken as known: the models have no draws")
    if math.isfinite(ab["searches"]) and found.table["searches"].min() < FEW:
        said.append(f"numbers below {FEW} searches are rough")
    if facts["metric"] == "satisfaction":
        said.append("satisfaction must be measured in the test, for instance by dwell time")
    return said


def _next(found: ExperimentPlan) -> list[str]:
    facts, told = found.facts, _which(found)
    folder = facts.get("log_folder")
    if folder and str(facts["treatment"]).startswith("best"):
        model = facts["treatment"].partition(":")[2] or facts["users"].partition("(")[0]
        target = f"best:{model.lower()}"
        told.append(
            "ask the log itself, without simulated users: logeval replay estimate "
            f"{shlex.quote(str(folder))} --target {target} --positions {min(facts['positions'], 3)}"
        )
    return told


def _which(found: ExperimentPlan) -> list[str]:
    """Which test to run."""
    ab, draft = found.row(AB), found.row(TeamDraft.name)
    if not ab["low"] * ab["high"] > 0:  # nor without draws
        return []
    if draft["effect"] * ab["effect"] < 0 or not draft["searches"] < ab["searches"]:
        return (
            []
            if ab["searches"] != ab["searches"]
            else ["run the A/B test: interleaving is no shortcut"]
        )
    times = ab["searches"] / draft["searches"] if ab["searches"] == ab["searches"] else math.nan
    fewer = "" if times != times else f" ({times:.1f} times fewer searches)"
    return [
        f"to learn which ranker is better, interleave by team draft{fewer}; to measure by how "
        "much, run the A/B test"
    ]
