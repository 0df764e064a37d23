"""What replayed policies earned, in words, beside the log's own ranker."""

from __future__ import annotations

from typing import Any

from logeval.replay.replays import PolicyReplay, curve
from logeval.reports.answers.answer import Answer, searches
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
    K = int(found.manifest.get("arguments", {}).get("positions", 1))
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
    lines = []
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
    return [*lines, *found.notes]


def _next(found: PolicyReplay, steps: int) -> list[str]:
    asked = found.manifest.get("arguments", {})
    K, items = asked.get("positions", 1), asked.get("items")
    if steps >= SHORT:
        return []
    fewer = [f"positions={K - 1}"] if K > 1 else []
    fewer += [f"items={max(K, 4)}"] if items is None or items > max(K, 4) else []
    if not fewer:
        return ["a log whose ranker explores more would follow them further"]
    return [f"the log follows policies further with {' or '.join(fewer)}"]
