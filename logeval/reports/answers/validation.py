"""Which estimator predicts the parts of a log that were left out, in words."""

from __future__ import annotations

import shlex
from typing import Any

from logeval.replay.estimators.registry import parse_estimators
from logeval.replay.validation import Validation
from logeval.reports.answers.answer import Answer
from logeval.running.words import joined, number

SAME = 0.1  # of the noise: predictions that differ by less do not tell estimators apart
FEW_PARTS = 5
ENOUGH = 0.8  # support below this is said
JUDGED, LEAST = 10, 0.95  # lists in random order, and the share of intervals that must hold


def verdict(found: Validation) -> Answer:
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
    because += [_random_line(row) for row in found.randomised or [] if row["lists"] >= JUDGED]
    limits, next_ = _limits(found), _next(found, clear)
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


def _random_line(row: dict[str, Any]) -> str:
    """How an estimator did on lists in random order; whether its intervals can be relied on."""
    n, within = row["lists"], row["within"]
    text = (
        f"K = {row['positions']}, lists in random order: {row['estimator']}'s 95% intervals hold "
        f"in {within:.0%} of {n:,}"
    )
    if within < LEAST - 2 * (LEAST * (1 - LEAST) / n) ** 0.5:
        text += ", too few: its assumptions fail on this log"
    if row["pairs"]:
        text += f"; {row['order']:.0%} of {row['pairs']:,} pairs of rankers are in the right order"
    return text


def _limits(found: Validation) -> list[str]:
    rows, lines = found.table[found.table["clip"].isna()], list[str]()
    if "selected" in found.manifest:
        lines.append(found.manifest["selected"])
    lost = found.manifest.get("left_out", {})
    if lost.get("queries"):
        lines.append(
            f"{lost['queries']:,} of {lost['of']:,} queries ({lost['serps']:,} searches) are in "
            "one part only and are left out"
        )
    n = int(rows["parts"].iloc[0])
    if n < FEW_PARTS:
        lines.append(f"{n} parts are few: little can be told apart with them")
    low = rows[rows["support"] < ENOUGH]
    for name, mine in low.groupby("estimator", sort=False):
        at = joined([str(k) for k in mine["positions"]])
        rest = "what it has not shown counts as no clicks"
        if (model := parse_estimators([str(name)])[0].model) is not None:
            rest = f"for what it has not shown its {model.upper()} answers"
        lines.append(
            f"{name}: at K = {at} the rest of the log has shown {mine['support'].min():.0%} of a "
            f"part (at the smallest), and {rest}"
        )
    unjudged = [row["estimator"] for row in found.randomised or [] if row["lists"] < JUDGED]
    if unjudged:
        lines.append(
            f"{joined(unjudged)}: intervals and the order of rankers were not judged, as the "
            "ranked lists have shown too little of those in random order; take fewer positions"
        )
    return lines


def _next(found: Validation, clear: list[dict[str, Any]]) -> list[str]:
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
