"""The details of a verdict: simulator by simulator, the best against the others, lists and pairs.

Every sentence is made from the paired statistics of the runs (``Runs.summary``, ``Runs.pairs``):
"cannot be told apart" and "lost less" mean the simultaneous test at 5% over all pairs of policies
of one simulator and track. Nothing is said that these do not hold.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.summary import is_oracle
from logeval.evaluation.statistics.top_pairs import compare_top_pairs
from logeval.running.words import UNITS, interval, joined, number, p_value
from logeval.tracks.keys import Panel

# the algorithms that logeval was made to compare: named in every verdict that has them
MISSION = ("dcmKL-UCB", "RankedKL-UCB", "RankedExp3", "Rank1ElimKL")
SIGNIFICANCE = 0.05
UNTESTED = "Whether that is chance cannot be tested here"
SWAPS = 3  # pairs of policies that change places, named at most
Parts = dict[Panel, tuple[pd.DataFrame, pd.DataFrame]]  # summary and pairs


def details(runs: Runs, parts: Parts) -> list[str]:
    """Who lost how much on each simulator, who changes places, lists against pairs."""
    found = []
    for track in dict.fromkeys(panel.track for panel in parts):
        mine = {panel: part for panel, part in parts.items() if panel.track == track}
        for panel, (s, p) in mine.items():
            found.append(f"{_answer(runs, panel, s)} {_comparisons(s, p)}".rstrip())
        found += _swaps({panel.simulator: p for panel, (_, p) in mine.items()})
    return found + _across_tracks(runs)


def of_panel(table: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """The rows of one simulator and track."""
    return table[(table["simulator"] == panel.simulator) & (table["track"] == panel.track)]


def competing(summary: pd.DataFrame) -> pd.DataFrame:
    """The policies that do not know the answer."""
    return summary[~summary["policy"].map(is_oracle)]


def best_of(panel: Panel) -> str:
    """What regret is counted against."""
    return "the best pair" if panel.track == "rank1" else "the best list"


def _answer(runs: Runs, panel: Panel, summary: pd.DataFrame) -> str:
    """Who lost least on one simulator in one track."""
    title, part = runs.title(panel), competing(summary)
    best: Any = next(part.itertuples())
    lost = f"{number(best.regret)} {UNITS[runs.units()[panel]]} in {runs.horizon:,} searches"
    if best.low == best.low:
        lost += f" (95% interval {interval(best.low, best.high)})"
    if best.relative_regret > 0:
        lost += f", {best.relative_regret:.1%} of what {best_of(panel)} would have brought"
    if len(part) == 1:
        return f"On {title} only {best.policy} was run; it lost {lost}."
    if part["p"].isna().all():
        return f"On {title} {best.policy} lost least, {lost}. {UNTESTED}."
    others = part[~part["in_best_set"]]["policy"].tolist()
    tied = part[part["in_best_set"]]["policy"].tolist()
    if len(tied) == 1:
        return f"On {title} {best.policy} lost less than every other policy: {lost}."
    if not others and len(tied) == 2:
        return (
            f"On {title} there is no winner: {tied[1]} cannot be told apart from {best.policy}, "
            f"which lost least on average, {lost}."
        )
    if not others:
        return (
            f"On {title} there is no winner: none of the {len(part)} policies can be told apart "
            f"from {best.policy}, which lost least on average, {lost}."
        )
    return (
        f"On {title} {best.policy} lost least on average, {lost}. It cannot be told apart from "
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
    if not chosen:
        return ""
    than = [f" than {best.policy}", *[""] * (len(chosen) - 1)]
    text = "; ".join(map(_against, chosen, than)) + "."
    if best.queries > 1:
        text += f" {best.policy} was best on {best.best_on} of {best.queries} queries"
        rival: Any = next(part.iloc[1:].sort_values("best_on", ascending=False).itertuples())
        more = rival.best_on >= best.best_on
        text += f", {rival.policy} on {rival.best_on}." if more else "."
    return text


def _against(row: Any, than: str) -> str:
    text = f"{row.worse} lost {number(row.difference)} more{than}"
    if row.p == row.p:
        text += f" (95% interval {interval(row.low, row.high)}, {p_value(row.p)})"
    if row.ratio == row.ratio:
        text += f", {number(row.ratio)} times as much on a typical query"
        if row.p > SIGNIFICANCE >= row.ratio_p:
            ends = interval(row.ratio_low, row.ratio_high)
            text += f", which is clear ({ends}, {p_value(row.ratio_p)}) where the average is not"
    return text


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
            f"examined position: there {best.policy} lost least, {best.regret:.1%} of what the "
            f"best pair would have brought; {text}."
        )
    return found


def _points(row: Any) -> str:
    text = f"{row.worse} lost {100 * row.difference:.1f} percentage points more"
    if row.p == row.p:
        text += f" ({100 * row.low:.1f} to {min(100 * row.high, 100):.1f}, {p_value(row.p)})"
    return text
