"""Whether simulators, replay and estimates agree on the best policy, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logeval.replay.agreement import CrossCheck
from logeval.reports.answers.answer import Answer
from logeval.running.words import joined, number

if TYPE_CHECKING:
    import pandas as pd


def verdict(found: CrossCheck) -> Answer:
    """Who is best by which method, and whether that is more than chance."""
    first, clear = {}, {}
    for method, rows in found.table.groupby("method", sort=False):
        rows = rows.sort_values("value", ascending=False)
        first[str(method)] = str(rows["policy"].iloc[0])
        # not beside a nan
        clear[str(method)] = bool((rows["low"].iloc[0] > rows["high"].iloc[1:]).all())
    sure = list(dict.fromkeys(first[m] for m in first if clear[m]))
    steps = f"Over the first {found.steps:,} searches of each query"
    trust: list[str] = []
    if len(sure) > 1:
        text = (
            f"{steps} the methods disagree: {joined(sure)} are each clearly best by some of them."
        )
        trust = ["trust the log (replay) before a simulator"]
    elif len(set(first.values())) == 1 and sure:
        text = f"{steps} all methods agree that {sure[0]} earns most."
    elif sure:
        text = (
            f"{steps} {sure[0]} earns most where the intervals say who does; no method contradicts "
            "that by more than chance."
        )
    elif len(set(first.values())) == 1:
        text = (
            f"{steps} all methods have {next(iter(first.values()))} first, but by none of them is "
            "the difference more than chance."
        )
    else:
        text = f"{steps} no method tells the policies apart, so they neither agree nor disagree."
    lines = [
        f"{method}: {policy} earns most" + ("" if clear[method] else ", which may be chance")
        for method, policy in first.items()
    ]
    limits = [*levels(found.table), *found.notes]
    return Answer(text, because=lines, limits=limits, next=trust)


def levels(table: pd.DataFrame) -> list[str]:
    """Simulators whose clicks are not those of the replay, whoever they say is best."""
    replayed = table[table["method"] == "replay"].set_index("policy")
    lines = []
    for method, rows in table.groupby("method", sort=False):
        if not str(method).startswith("simulated"):
            continue
        mine = rows.set_index("policy").loc[replayed.index]
        apart = (mine["high"] < replayed["low"]) | (mine["low"] > replayed["high"])
        if apart.any():
            off = (mine["value"] - replayed["value"])[apart]
            ends = " to ".join(dict.fromkeys(number(x, "+") for x in (off.min(), off.max())))
            lines.append(
                f"{method}: the clicks of {int(apart.sum())} of {len(apart)} policies lie outside "
                f"what the replay allows, by {ends} clicks per search"
            )
    return lines
