"""An answer in words: a sentence or two with units, why, what limits it, and what to do next.

What a log supports, as an answer.

Which click models can be believed as simulators, by their checks, in words.
"""

from __future__ import annotations

import html
import shlex
import textwrap
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from logeval.clicks.models.registry import MODELS, kinds
from logeval.clicks.quality.deviations import ModelVerdict
from logeval.clicks.quality.predictive import Checks
from logeval.clicks.support.graph import METHODS
from logeval.clicks.support.support import Support
from logeval.running.words import joined, number


@dataclass(frozen=True)
class Answer:
    """What a result says; every other part than the answer may be empty."""

    answer: str
    _: KW_ONLY
    others: list[str] = field(default_factory=list)
    because: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    next: list[str] = field(default_factory=list)

    def sections(self) -> list[tuple[str, list[str]]]:
        """What follows the answer: titles and sentences."""
        found = [
            ("The others", self.others),
            ("Why", self.because),
            ("What limits this", self.limits),
            ("Next", self.next),
        ]
        return [(title, lines) for title, lines in found if lines]

    def text(self, width: int = 80) -> str:
        """For the terminal."""
        parts = [textwrap.fill(self.answer, width, break_on_hyphens=False)]
        for title, lines in self.sections():
            parts += [f"{title}:", *(item(line, width) for line in lines)]
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{html.escape(self.answer)}</b></p>"]
        for title, lines in self.sections():
            items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
            parts.append(f"<p>{html.escape(title)}</p><ul>{items}</ul>")
        return "".join(parts)


def item(line: str, width: int) -> str:
    """A line of a list."""
    return textwrap.fill(
        line, width, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
    )


def searches(K: int) -> str:
    """What is counted, at K positions."""
    where = "the first position" if K == 1 else f"the first {K} positions"
    return f"clicks per search in {where}"


def support_verdict(found: Support) -> Answer:
    """The first sentence, and the others."""
    first, *others = (f"{sentence}." for sentence in found.sentences)
    return Answer(first, because=others)


MANY = 10_000  # SERPs, from which on faults that matter are seen


def verdict(checks: Checks) -> Answer:
    """Who clicks like the users of the log, who does not, and what would not have shown."""
    if not checks.verdicts:
        return _of_swaps(checks)
    ranked = sorted(checks.verdicts.values(), key=lambda v: (len(v.faulted), _error(checks, v)))
    fine = [v for v in ranked if not v.faulted]
    nearest = ranked[0]
    of = len(nearest.right) + len(nearest.faulted)
    serps = f"{nearest.serps:,} searches"
    if fine:
        names = [v.model for v in fine]
        clicks = "clicks" if len(fine) == 1 else "click"
        text = (
            f"As far as {serps} show, {joined(names)} {clicks} like the users of the log: none of "
            f"{of} checks over all queries faults {'it' if len(fine) == 1 else 'them'}."
        )
        if len(fine) < len(ranked):
            bad = [f"{v.model} (faulted in {len(v.faulted)})" for v in ranked if v.faulted]
            text += f" {joined(bad)} {'does' if len(bad) == 1 else 'do'} not."
    elif len(ranked) == 1:
        text = (
            f"{nearest.model} does not click like the users of the log: it is faulted in "
            f"{len(nearest.faulted)} of {of} checks on {serps}. What policies lose on it need not "
            "be what they lose in traffic."
        )
    else:
        text = (
            f"No model clicks like the users of the log. {nearest.model} comes nearest, faulted in "
            f"{len(nearest.faulted)} of {of} checks on {serps}; what policies lose on them need "
            "not be what they lose in traffic."
        )
    because = [v.line for v in ranked]
    return Answer(text, because=because, limits=_limits(checks, ranked), next=_next(checks, fine))


def _of_swaps(checks: Checks) -> Answer:
    """What a table of counts says: is the examination of the models that from swaps?"""
    table = checks.examination
    assert table is not None
    rows = table[(table["method"] == METHODS[0]) & table["low"].notna() & (table["rank"] > 1)]
    models = [name for name in table.columns if name in kinds() or "(" in name]
    if not len(rows):
        text = (
            "Nothing can be checked: too few items were clicked at several ranks for examination "
            "from swaps."
        )
        return Answer(text, limits=checks.notes)
    because = []
    inside = {}
    for name in models:
        off = np.abs(np.log(np.maximum(rows[name], 1e-12) / rows["examination"]))
        held = (rows["low"] <= rows[name]) & (rows[name] <= rows["high"])
        inside[name] = f"{int(held.sum())} of {len(rows)} ranks ({name})"
        worst = rows.loc[off.idxmax()]
        because.append(
            f"{name}: furthest off at rank {worst['rank']}, examined {worst[name]:.3f} times as "
            f"often as the first; {worst['examination']:.3f} from swaps, 95% interval "
            f"{worst['low']:.3f} to {worst['high']:.3f}"
        )
    text = (
        "The fitted examination lies within the 95% intervals of that from swaps at "
        f"{joined(list(inside.values()))}. Both take it to depend on the rank alone."
    )
    for rank, each in table[table["low"].notna()].groupby("rank"):
        if each["low"].max() > each["high"].min():
            values = [
                f"{e:.2f} ({m})" for m, e in zip(each["method"], each["examination"], strict=True)
            ]
            because.append(
                f"it does not: items that moved between other ranks say otherwise, at rank {rank} "
                f"{joined(values)}; queries differ in it, or more than the rank matters"
            )
            break
    return Answer(text, because=because, limits=checks.notes)


def _error(checks: Checks, v: ModelVerdict) -> float:
    rows = checks.table[(checks.table["model"] == v.model) & checks.table["query"].isna()]
    return float(rows[rows["components"] > 0]["error"].mean())


def _limits(checks: Checks, ranked: list[ModelVerdict]) -> list[str]:
    lines = []
    curves = checks.curves
    mine = curves[curves["query"].isna() & (curves["check"] == "ctr-by-rank")]
    if len(mine) and ranked[0].serps < MANY and not ranked[0].faulted:
        seen = float(((mine["high"] - mine["low"]) / 2).median())
        lines.append(
            f"{ranked[0].serps:,} searches show large faults only: a CTR at a rank that is off by "
            f"less than about {number(seen)} does not show"
        )
    for v in ranked:
        if not v.faulted and v.faulted_queries:
            lines.append(
                f"{v.model}: faulted by itself in {v.faulted_queries} of {v.queries} queries; "
                "leave these out, or read their regret with care"
            )
    return [*lines, *checks.notes]


def _next(checks: Checks, fine: list[ModelVerdict]) -> list[str]:
    folder = shlex.quote(str(checks.manifest.get("log_folder", "LOG")))
    if fine:
        return []
    if len(checks.verdicts) < len(MODELS):
        return [
            f"`logeval compare-models {folder} -m all` says which model predicts this log best; "
            "trust what holds on several simulators more than what holds on one"
        ]
    return ["trust what holds on several simulators more than what holds on one"]
