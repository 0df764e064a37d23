"""What replayed policies earned, in words, beside the log's own ranker.

Which estimator predicts the parts of a log that were left out, in words.
"""

from __future__ import annotations

import shlex
from typing import Any

from logeval.replay.estimators import parse_estimators
from logeval.replay.policy import PolicyReplay, curve
from logeval.replay.validate import Validation
from logeval.reports.answers.checks import Answer, searches
from logeval.reports.words import sentence
from logeval.running.words import interval, joined, number

NAMED = 5  # queries, in a sentence
LEAST = 10  # steps, below which nothing is said of what a policy earns
SHORT = 100  # steps, after which a policy has hardly begun to learn


def verdict(found: PolicyReplay) -> Answer:
    """Who earned most over the steps that all got to, and how far the log can follow."""
    queries = found.covered()
    rows = found.table[found.table["query"].isin(queries)] if queries else found.table
    steps = found.common(rows)
    earned = {
        str(policy): curve(mine, steps) for policy, mine in rows.groupby("policy", sort=False)
    }
    order = sorted(earned, key=lambda policy: -earned[policy][0])
    K = int(found.manifest.get("arguments", {}).get("positions") or 1)
    logged = _logged(found, queries)
    best, *others = order
    if steps < LEAST:
        who = "these policies" if others else best
        n, every = len(queries), found.table["query"].nunique()
        where = (
            f"for {steps} searches on {n} of {every} queries, and not even once on the others"
            if 0 < n < every
            else f"for {steps} searches"
            if n
            else f"not even once, in every shuffle, on any of {every} queries"
        )
        return Answer(
            f"The log cannot follow {who}: it shows the lists that are asked for {where}. That is "
            "too little to say what would be earned.",
            limits=_limits(found, queries, rows, steps, earned),
            next=_next(found, steps),
        )
    over = f"over its first {steps:,} searches of each query"
    text = f"On the logged searches {best} earned {_said(*earned[best])} {searches(K)} {over}"
    if others:
        rivals = [p for p in others if not _above(earned[best], earned[p])]
        next_ = others[0]
        text += f", {next_} {_said(*earned[next_])}"
        text += (
            f". It cannot be told apart from {joined(rivals)}: their intervals overlap."
            if rivals
            else ", and no other policy's interval reaches up to its own."
        )
    else:
        text += "."
    text += _beside(best, earned[best], logged)
    because = [
        "nothing is assumed about users: a logged search answers a policy when it shows the list "
        "that the policy wants",
        *(f"{policy}: {_said(*earned[policy])}" for policy in others[1:]),
    ]
    limits = _limits(found, queries, rows, steps, earned)
    return Answer(text, because=because, limits=limits, next=_next(found, steps))


def _said(value: float, half: float) -> str:
    if half != half:
        return number(value)
    return f"{number(value)} ({interval(value - half, value + half)})"


def _above(first: tuple[float, float], second: tuple[float, float]) -> bool:
    return bool(first[0] - first[1] > second[0] + second[1])  # not beside a nan


def _logged(found: PolicyReplay, queries: list[str]) -> float:
    known = [found.logged[query] for query in queries if query in (found.logged or {})]
    return sum(known) / len(known) if known else float("nan")


def _beside(best: str, earned: tuple[float, float], logged: float) -> str:
    """The same of the log's ranker."""
    if logged != logged:
        return ""
    value, half = earned
    if abs(logged - value) < 1e-9:
        return f" The log's own ranker earned {number(logged)}, the same."
    if half != half:
        which = "more" if logged > value else "less"
        return f" The log's own ranker earned {number(logged)}, {which}, though that may be chance."
    if abs(logged - value) <= half:
        return f" The log's own ranker earned {number(logged)}, which cannot be told from it."
    which = "more than" if logged > value else "less than"
    return f" The log's own ranker earned {number(logged)}, {which} {best}."


def _limits(
    found: PolicyReplay, queries: list[str], rows: Any, steps: int, earned: Any
) -> list[str]:
    lines = [sentence(fact) for fact in found.facts]
    every = list(dict.fromkeys(found.table["query"]))
    if (lost := [q for q in every if q not in queries]) and queries:
        more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
        lines.append(
            f"not covered are {len(lost)} of {len(every)} queries, where the log does not show the "
            f"first lists of some policy: {', '.join(lost[:NAMED])}{more}"
        )
    last = rows.drop_duplicates(["policy", "query", "run"], keep="last")
    accepted = last["steps"].sum() / last["passed"].sum()
    if steps >= LEAST and last["exhausted"].any():
        lines.append(
            f"the log follows them no further than {steps:,} searches on some query "
            f"({last['steps'].median():,.0f} in the median), as {accepted:.1%} of the searches "
            "that pass show what is wanted; what a policy learns later is not seen"
        )
    if steps >= LEAST and any(half != half for _, half in earned.values()):
        shuffles = rows["run"].nunique()
        lines.append(
            "with one shuffle of the log there is no interval"
            if shuffles == 1
            else "where the shuffles pass all of the log it is not known how far logs differ, so "
            "there is no interval"
        )
    return lines


def _next(found: PolicyReplay, steps: int) -> list[str]:
    asked = found.manifest.get("arguments", {})
    K, items = asked.get("positions") or 1, asked.get("items")
    if steps >= SHORT:
        return []
    fewer = [f"positions={K - 1}"] if K > 1 else []
    fewer += [f"items={max(K, 4)}"] if items is None or items > max(K, 4) else []
    if not fewer:
        return ["a log whose ranker explores more would follow them further"]
    return [f"the log follows policies further with {' or '.join(fewer)}"]


SAME = 0.1  # of the noise: predictions that differ by less do not tell estimators apart
FEW_PARTS = 5
ENOUGH = 0.8  # support below this is said


def validation_verdict(found: Validation) -> Answer:
    """The estimator to use at each K, or why these parts cannot say."""
    same = [c for c in found.choices if c["spread"] < SAME * c["floor"]]
    clear = [c for c in found.choices if c["beats_logger"] and c not in same]
    open_ = [c for c in found.choices if c not in same and c not in clear]
    parts = []
    for name in dict.fromkeys(c["best"] for c in clear):
        parts.append(f"Use {name} at {_at([c for c in clear if c['best'] == name])}.")
    if open_:
        start = "These" if not clear else f"At {_at(open_)} these"
        parts.append(
            f"{start} parts cannot choose an estimator: none predicts them better than the log's "
            "own clicks per search (RCTR, which ignores the ranking) by more than chance."
        )
    if same:
        start = "These" if len(same) == len(found.choices) else f"At {_at(same)} these"
        far, noise = max(c["spread"] for c in same), min(c["floor"] for c in same)
        parts.append(
            f"{start} parts cannot choose an estimator: they show the same rankings as the rest "
            f"of the log, so all of them predict the same{_within(far, noise)}."
        )
    because = [_line(c) for c in found.choices if c not in same]
    limits, next_ = _validation_limits(found), _next_of_validation(found, clear)
    return Answer(" ".join(parts), because=because, limits=limits, next=next_)


def _at(choices: list[dict[str, Any]]) -> str:
    return f"K = {joined([str(c['positions']) for c in choices])}"


def _within(far: float, noise: float) -> str:
    if far < 1e-6:
        return ""
    return f" within {far:.2g} clicks per search, where chance alone makes {noise:.2g}"


def _line(c: dict[str, Any]) -> str:
    text = (
        f"K = {c['positions']}: {c['best']} has the smallest error, {number(c['rmse'])} clicks per "
        f"search; chance alone makes {number(c['floor'])}"
    )
    if c["best"] != "RCTR":
        text += f", and RCTR errs by {number(c['logger_rmse'])}"
    if c["ties"]:
        text += f". Not told from it on these parts: {', '.join(c['ties'])}"
    if c["worse"]:
        text += f". Worse than RCTR by more than chance: {', '.join(c['worse'])}"
    return text


def _validation_limits(found: Validation) -> list[str]:
    rows = found.table[found.table["clip"].isna()]
    lines = [sentence(fact) for fact in found.facts]
    n = int(rows["parts"].iloc[0])
    if n < FEW_PARTS:
        lines.append(f"{n} parts are few: little can be told apart with them")
    low = rows[rows["support"] < ENOUGH]
    for name, mine in low.groupby("estimator", sort=False):
        at = joined([str(k) for k in mine["positions"]])
        rest = "what it has not shown counts as no clicks"
        estimator = parse_estimators([str(name)])[0]
        if estimator.DIRECT and (model := estimator.model) is not None:
            rest = f"for what it has not shown its {model.upper()} answers"
        lines.append(
            f"{name}: at K = {at} the rest of the log has shown {mine['support'].min():.0%} of a "
            f"part (at the smallest), and {rest}"
        )
    return lines


def _next_of_validation(found: Validation, clear: list[dict[str, Any]]) -> list[str]:
    folder = shlex.quote(str(found.manifest.get("log_folder", "LOG")))
    if clear:
        last = clear[-1]
        return [
            f"`logeval replay estimate {folder} --target TARGET -e {shlex.quote(last['best'])} "
            f"--positions {last['positions']}`"
        ]
    by_day = found.manifest.get("arguments", {}).get("parts") is None
    if not by_day:
        return [
            "parts of the sessions differ by chance only; leave out days (without parts), on which "
            "the ranker may have been another one"
        ]
    return ["a log whose ranker changed between days, or explores, can tell estimators apart"]
