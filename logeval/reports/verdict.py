"""The answer in words: which policy lost least, by how much, where, and what limits the answer.

Every sentence is made from the paired statistics of the runs (``Runs.summary``, ``Runs.pairs``):
"cannot be told apart" and "lost less" mean the simultaneous test at 5% over all pairs of policies
of one simulator and track. Nothing is said that these do not hold.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from logeval.clicks.fitting import NO_CLICK
from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.summary import is_oracle
from logeval.evaluation.statistics.top_pairs import compare_top_pairs
from logeval.reports.limits import BASELINES, limits_of
from logeval.running.words import interval, joined, number, p_value
from logeval.tracks.keys import Panel

# the algorithms that logeval was made to compare: named in every verdict that has them
MISSION = ("dcmKL-UCB", "RankedKL-UCB", "RankedExp3", "Rank1ElimKL")
SIGNIFICANCE = 0.05
SWAPS = 3  # pairs of policies that change places, named at most


@dataclass(frozen=True)
class Verdict:
    """An answer of a sentence or two, what it rests on, and what limits it."""

    answer: str
    findings: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)

    def text(self, width: int = 80) -> str:
        """For the terminal."""
        parts = [textwrap.fill(self.answer, width, break_on_hyphens=False)]
        for title, lines in (("", self.findings), ("What limits this:", self.limits)):
            if lines and title:
                parts.append(title)
            parts += [
                textwrap.fill(
                    line,
                    width,
                    initial_indent="- ",
                    subsequent_indent="  ",
                    break_on_hyphens=False,
                )
                for line in lines
            ]
        return "\n".join(parts)


def verdict(runs: Runs) -> Verdict:
    """The verdict on the runs of one folder, at their last step."""
    summary, pairs = runs.summary(), runs.pairs()
    parts = {
        panel: (of_panel(summary, panel), of_panel(pairs, panel))
        for panel in runs.panels()
        if (~of_panel(summary, panel)["policy"].map(is_oracle)).any()
    }
    if not parts:
        return Verdict("Only the Oracle was run: there is nothing to compare.", [], [])
    if any(NO_CLICK in note for note in runs.notes):
        return Verdict(
            "There is no click in the log that the simulators were fitted to. They consist of "
            "their priors, so it means nothing which policy loses least on them.",
            limits=limits_of(runs),
        )
    answers, findings = [], []
    contested = any(_rivals(summary) > 1 for summary, _ in parts.values())
    for track in dict.fromkeys(panel.track for panel in parts):
        mine = {panel: part for panel, part in parts.items() if panel.track == track}
        if len(mine) > 1:
            answers.append(_across_simulators(mine))
        for panel, (s, p) in mine.items():
            answer = _answer(runs.title(panel), s, runs.horizon)
            more = _comparisons(s, p)
            if len(mine) == 1 and (_rivals(s) > 1 or not contested):
                answers.append(answer)
                findings += [more] if more else []
            else:
                findings.append(f"{answer} {more}".rstrip())
        findings += _swaps({panel.simulator: p for panel, (_, p) in mine.items()})
    findings += _across_tracks(runs)
    return Verdict(" ".join(answers), findings, limits_of(runs))


def of_panel(table: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """The rows of one simulator and track."""
    return table[(table["simulator"] == panel.simulator) & (table["track"] == panel.track)]


def competing(summary: pd.DataFrame) -> pd.DataFrame:
    """The policies that do not know the answer."""
    return summary[~summary["policy"].map(is_oracle)]


def _rivals(summary: pd.DataFrame) -> int:
    """How many policies learn."""
    return int((~summary["policy"].isin(BASELINES)).sum())


def _answer(title: str, summary: pd.DataFrame, horizon: int) -> str:
    """Who lost least on one simulator in one track."""
    part = competing(summary)
    best: Any = next(part.itertuples())
    steps = f"{horizon:,} steps"
    lost = f"{number(best.regret)} in {steps}"
    if best.low == best.low:
        lost += f" (95% interval {interval(best.low, best.high)})"
    if best.relative_regret > 0:
        lost += f", {best.relative_regret:.1%} of the optimal reward"
    if len(part) == 1:
        return f"On {title} only {best.policy} was run; it lost {lost}."
    if part["p"].isna().all():
        return f"On {title} {best.policy} lost least, {lost}; with one run nothing can be tested."
    others = part[~part["in_best_set"]]["policy"].tolist()
    tied = part[part["in_best_set"]]["policy"].tolist()
    if len(tied) == 1:
        return f"On {title} {best.policy} lost less than every other policy: {lost}."
    if not others and len(tied) == 2:
        return (
            f"On {title} there is no winner: {tied[1]} cannot be told apart from {best.policy}, "
            f"which has the smallest mean, {lost}."
        )
    if not others:
        return (
            f"On {title} there is no winner: none of the {len(part)} policies can be told apart "
            f"from {best.policy}, which has the smallest mean, {lost}."
        )
    return (
        f"On {title} {best.policy} has the smallest mean, {lost}. It cannot be told apart from "
        f"{joined(tied[1:])}; it lost less than {joined(others)}."
    )


def _comparisons(summary: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """The best against the next and against the mission's others, and on how many queries."""
    part = competing(summary)
    best: Any = next(part.itertuples())
    rows = pairs[pairs["better"] == best.policy]
    chosen, named = [], {best.policy.partition("(")[0]}
    for i, row in enumerate(rows.itertuples()):
        name = str(row.worse).partition("(")[0]  # of several variants, the best
        if i == 0 or (name in MISSION and name not in named):
            chosen.append(row)
            named.add(name)
    found = [_against(row, "the next, " if i == 0 else "") for i, row in enumerate(chosen)]
    if not found:
        return ""
    text = f"Against {best.policy}, " + "; ".join(found) + "."
    if best.queries > 1:
        text += f" {best.policy} was best on {best.best_on} of {best.queries} queries"
        rival: Any = next(part.iloc[1:].sort_values("best_on", ascending=False).itertuples())
        more = rival.best_on >= best.best_on
        text += f", {rival.policy} on {rival.best_on}." if more else "."
    return text


def _against(row: Any, which: str) -> str:
    text = f"{which}{row.worse}{',' if which else ''} lost {number(row.difference)} more"
    if row.p == row.p:
        text += f" ({interval(row.low, row.high)}, {p_value(row.p)})"
    if row.ratio == row.ratio:
        text += f", {number(row.ratio)} times as much on a typical query"
        if row.p > SIGNIFICANCE >= row.ratio_p:
            ends = interval(row.ratio_low, row.ratio_high)
            text += f", which is clear ({ends}, {p_value(row.ratio_p)}) where the mean is not"
    return text


def _across_simulators(parts: dict[Panel, tuple[pd.DataFrame, pd.DataFrame]]) -> str:
    """Whether the simulators of one track agree on the best policy."""
    names = [panel.simulator for panel in parts]
    every = joined(names)
    tables = [competing(summary) for summary, _ in parts.values()]
    common = set.intersection(*(set(table["policy"]) for table in tables))
    if not common:
        return f"{every} have no policy in common, so they cannot agree or contradict each other."
    if all(len(table) == 1 for table in tables):
        return f"Only {joined(sorted(common))} was run on {every}."
    sets = [set(table[table["in_best_set"]]["policy"]) for table in tables]
    first = [str(table["policy"].iloc[0]) for table in tables]
    if any(table["p"].isna().all() for table in tables):
        same = len(set(first)) == 1
        return (
            f"{first[0]} lost least on {every}; nothing can be tested."
            if same
            else f"The smallest regret depends on the simulator ({_by(names, first)}); nothing "
            "can be tested."
        )
    shared = [p for p in tables[0]["policy"] if all(p in one for one in sets)]
    if not shared:
        best = _by(names, [joined(sorted(one)) for one in sets])
        return f"The answer depends on the simulator: the best policy is {best}."
    if all(len(one) == 1 for one in sets):
        return f"{shared[0]} lost less than every other policy on {every}."
    if len(set(first)) == 1 and len(shared) == 1:
        tied = [
            f"on {name} it cannot be told apart from {joined(sorted(one - {first[0]}))}"
            for name, one in zip(names, sets, strict=True)
            if len(one) > 1
        ]
        return f"{first[0]} lost least on {every}; {'; '.join(tied)}."
    both = "both" if len(names) == 2 else "all of them"
    any_of = f"any of {joined(shared)}" if len(shared) > 1 else shared[0]
    text = f"{every} do not contradict each other: on {both} {any_of} may be best"
    if len(set(first)) > 1:
        return f"{text}; the smallest mean is that of {_by(names, first)}, within the intervals."
    return f"{text}; {first[0]} has the smallest mean on each."


def _by(simulators: list[str], best: list[str]) -> str:
    return joined([f"{b} on {s}" for s, b in zip(simulators, best, strict=True)])


def _swaps(pairs: dict[str, pd.DataFrame]) -> list[str]:
    """Pairs of policies of which each is clearly better than the other on some simulator."""
    clear: dict[tuple[str, str], tuple[str, Any]] = {}
    for simulator, table in pairs.items():
        row: Any
        for row in table.itertuples():
            if row.p <= SIGNIFICANCE:
                clear.setdefault((str(row.better), str(row.worse)), (simulator, row))
    found = []
    for (a, b), (here, row) in clear.items():
        if (b, a) in clear and a < b:
            there, other = clear[b, a]
            found.append(
                f"{a} and {b} change places: {b} lost {number(row.difference)} more on {here} "
                f"({p_value(row.p)}), {a} lost {number(other.difference)} more on {there} "
                f"({p_value(other.p)})."
            )
    more = len(found) - SWAPS
    pairs_change = "pair changes" if more == 1 else "pairs change"
    return found[:SWAPS] + ([f"{more} more {pairs_change} places likewise."] if more > 0 else [])


def _across_tracks(runs: Runs) -> list[str]:
    """Lists against pairs, where a simulator has both: by the pair at the best position."""
    rows = runs.table()
    last = rows[rows["t"] == runs.horizon]
    found = []
    for simulator, part in last.groupby("simulator"):
        compared = compare_top_pairs(part)
        if compared is None:
            continue
        summary, pairs = compared
        best: Any = next(competing(summary).itertuples())
        home = dict(zip(part["policy"], part["track"], strict=True))
        rivals = pairs[pairs["better"] == best.policy]
        rivals = rivals[[home[w] != home[best.policy] for w in rivals["worse"]]]
        if rivals.empty:
            continue
        named = [r for r in rivals.itertuples() if str(r.worse).partition("(")[0] in MISSION]
        chosen = named or list(rivals.itertuples())[:1]
        text = "; ".join(_points(row) for row in chosen)
        found.append(
            f"On {simulator}, lists and single pairs compare by what they show at the most "
            f"examined position: there {best.policy} lost least, {best.regret:.1%} of the "
            f"optimum; {text}."
        )
    return found


def _points(row: Any) -> str:
    text = f"{row.worse} lost {100 * row.difference:.1f} points more"
    if row.p == row.p:
        text += f" ({100 * row.low:.1f} to {min(100 * row.high, 100):.1f}, {p_value(row.p)})"
    return text
