"""The details of a verdict: simulator by simulator, the best against the others, lists and pairs.

Every sentence is made from the paired statistics of the runs (``Runs.summary``, ``Runs.compare``):
"cannot be told apart" and "lost less" mean the simultaneous test at 5% over all pairs of policies
of one simulator and track. Nothing is said that these do not hold.

What limits the answer: curves that still rise, elimination that has not begun, few queries.

Policies against today's ranker, in words: when they pass it, and what a search brings then.

The answer itself: which policy loses least, with units, and how sure that is.

What "loses least" and "cannot be told apart" mean is said in ``reports.details``. What is lost is a
share of what the best list would have brought: 69 of 1,000 satisfied searches.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.summary import ORACLE, compare_top_pairs, is_oracle
from logeval.policies.registry import POLICIES
from logeval.reports.trust import unfaulted
from logeval.running.names import parse_call
from logeval.running.words import UNITS, interval, joined, number, out_of, p_value, searches
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
    rows = runs.to_pandas()
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


FLAT = 0.5  # a curve is flat when the last half of the steps costs less than this of the average
NAMED = 4  # policies, the flattest first
MOSTLY = 0.5  # of the runs
BASELINES = (ORACLE, "Random", "Logged")  # they do not learn


def limits_of(runs: Runs) -> list[str]:
    """One sentence for each thing that limits the conclusions, whatever the simulators it is of."""
    names = {runs.title(panel) for panel in runs.panels()} | {p.simulator for p in runs.panels()}
    found = [
        *merged(runs.cautions(), names),
        *not_flat(runs),
        *nothing_eliminated(runs),
        *free_samples(runs),
    ]
    return [*found, *merged(runs.notes, names)]


def merged(sentences: Sequence[str], names: Collection[str]) -> list[str]:
    """Sentences about simulators, ``DCM: ...``, that say the same, as one: ``DCM and PBM: ...``."""
    about: dict[str, list[str]] = {}
    for sentence in sentences:
        name, colon, rest = sentence.partition(": ")
        known = colon and name in names
        about.setdefault(rest if known else sentence, []).extend([name] if known else [])
    return [
        f"{joined(list(dict.fromkeys(who)))}: {what}" if who else what
        for what, who in about.items()
    ]


def free_samples(runs: Runs) -> list[str]:
    """Policies that begin with an observation of every item that nobody paid for."""
    free = begin_free(dict.fromkeys(runs.to_pandas()["policy"]))
    if not free or runs.problems()["ranker"].isna().all():
        return []
    begin, they = ("begins", "it") if len(free) == 1 else ("begin", "they")
    return [
        f"{joined(free)} {begin} with one free observation of every item, as in the papers, so "
        f"{they} would break even later in traffic, by up to as many searches as there are items; "
        "without init=sample they are paid for"
    ]


def begin_free(policies: Iterable[str]) -> list[str]:
    """Those of the policies that do."""
    return [policy for policy in policies if parse_call(policy)[1].get("init") == "sample"]


def late_slope(curve: pd.DataFrame) -> float:
    """Regret per step in the last half of the steps, over that of all steps.

    1 for a straight line, 0.59 for a square root, and log 4 / log n for a logarithm (0.16 at
    n = 5,000). nan without regret, or without a checkpoint near the middle.
    """
    t, regret = curve["t"].to_numpy(dtype=float), curve["regret"].to_numpy()
    n = t[-1]
    half = int(np.abs(t - n / 2).argmin())
    if not 0.25 * n <= t[half] <= 0.75 * n or regret[-1] <= 1e-9:
        return math.nan
    return float((regret[-1] - regret[half]) / (n - t[half]) / (regret[-1] / n))


def flattens(curves: Mapping[str, pd.DataFrame]) -> bool:
    """Whether the curve of some policy flattens."""
    return any(late_slope(curve) < FLAT for name, curve in curves.items() if not is_oracle(name))


def not_flat(runs: Runs) -> list[str]:
    """The policies that have not learned to the end at the horizon, the flattest first."""
    slopes: dict[str, list[float]] = {}
    for panel in runs.panels():
        for policy, curve in runs.curves(panel.simulator, track=panel.track).items():
            if policy.partition("(")[0] not in BASELINES and (s := late_slope(curve)) >= FLAT:
                slopes.setdefault(policy, []).append(s)
    if not slopes:
        return []
    rising = sorted(slopes.items(), key=lambda x: min(x[1]))
    policies = [f"{p} {' to '.join(dict.fromkeys(_percents(s)))}" for p, s in rising]
    more = [f"{len(policies) - NAMED} more"] if len(policies) > NAMED else []
    return [
        f"curves still rise at {runs.horizon:,} searches; with more the order may change. Regret "
        "per search in the second half, compared with the average: "
        f"{joined([*policies[:NAMED], *more])}"
    ]


def _percents(slopes: Sequence[float]) -> list[str]:
    return [f"{min(slopes):.0%}", f"{max(slopes):.0%}"]


def nothing_eliminated(runs: Runs) -> list[str]:
    """Policies that work by elimination and mostly have eliminated nothing, and why."""
    rows = runs.to_pandas()
    rows = rows[(rows["t"] == runs.horizon) & rows["rows_left"].notna()]
    sizes = runs.hardness()
    found: dict[tuple[str, str], list[tuple[str, int, int]]] = {}  # by policy and reason
    for (simulator, policy), part in rows.groupby(["simulator", "policy"]):
        mine = sizes[sizes["simulator"] == simulator]
        part = part.merge(mine[["query", "draw", "items", "positions"]], on=["query", "draw"])
        all_left = (part["rows_left"] == part["items"]) & (
            part["columns_left"] == part["positions"]
        )
        if len(part) and all_left.mean() >= MOSTLY:
            why = _why(str(policy), part, runs)
            about = (str(simulator), int(all_left.sum()), len(part))
            found.setdefault((str(policy), why), []).append(about)
    several = len(runs.panels()) > 1
    return [
        f"{policy} eliminated nothing{_on(about) if several else ''}{_often(about)}{why}"
        for (policy, why), about in found.items()
    ]


def _on(about: list[tuple[str, int, int]]) -> str:
    return f" on {joined([simulator for simulator, _, _ in about])}"


def _often(about: list[tuple[str, int, int]]) -> str:
    """In 49 of 50 runs; nothing if in all."""
    if all(left == runs for _, left, runs in about):
        return ""
    return f" in {joined([f'{left} of {runs}' for _, left, runs in about])} runs"


def _why(policy: str, part: pd.DataFrame, runs: Runs) -> str:
    """How many steps its first stage takes, if the policy says that."""
    budget = getattr(POLICIES.get(parse_call(policy)[0]), "first_stage", None)
    if budget is None:
        return f" in {runs.horizon:,} searches"
    n = runs.horizon
    queries = part.drop_duplicates("query")
    needed = [budget(*sizes, n) for sizes in queries[["items", "positions"]].to_numpy().tolist()]
    ended = sum(steps <= n for steps in needed)
    low, high = min(needed), max(needed)
    steps = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    text = f": its first stage, during which it cannot eliminate anything, takes {steps} searches"
    if len(needed) > 1:
        text += f" and ends within {n:,} on {ended} of {len(needed)} queries"
    else:
        text += f", and there were {n:,}"
    if ended:
        text += "; where its bounds are still too wide, the next stage takes four times as many"
    return text + "; so far its regret is that of exploring, and says nothing about later"


PASSES, OF_A_QUERY = "passes today's ranker ", " searches of a query"
AHEAD = "is ahead of today's ranker from the first search"
CLAUSES = 3  # simulators that have a clause of their own in a sentence
UNCHECKED: dict[str, Any] = {"checks": None}
Rows = dict[Panel, Any]  # of ``Runs.against_ranker``, by simulator


class Favourite(NamedTuple):
    """The policy to decide about, if there is one, and its rows where today's ranker is known."""

    policy: str | None
    rows: Rows


def against_ranker(runs: Runs, tables: Mapping[Panel, pd.DataFrame]) -> list[str]:
    """When the best policy passes today's ranker, what that costs, and what it brings.

    Of many simulators, those that no check faults have clauses of their own.
    """
    best = {p: str(table["policy"].iloc[0]) for p, table in tables.items() if len(table)}
    rows = rows_of(runs, best)
    if not rows:
        return []
    if len(rows) <= CLAUSES:
        return _clauses(runs, rows, several=len(tables) > 1)
    fine = believed(runs, rows)
    if not 0 < len(fine) <= CLAUSES:
        return [f"{_in_short(rows, runs.horizon)}{_unsure(rows)}.", *_looks(rows)]
    passes, *more = _clauses(runs, fine, several=True)
    passes = passes.replace("The best", "the best", 1)
    return [
        f"{_in_short(rows, runs.horizon)}.",
        f"Where no check faults the simulator, {passes}",
        *more,
    ]


def rows_of(runs: Runs, policies: Mapping[Panel, str]) -> Rows:
    """The rows of these policies whose ranker is known."""
    table = runs.against_ranker()
    found = {}
    for panel, policy in policies.items() if len(table) else ():
        mine = of_panel(table, panel)
        row: Any = next(mine[mine["policy"] == policy].itertuples(), None)
        if row is not None and row.break_even == row.break_even:
            found[panel] = row
    return found


def believed(runs: Runs, rows: Rows) -> Rows:
    """Those of simulators that no check faults."""
    sound = unfaulted(runs)
    return {p: row for p, row in rows.items() if p.simulator in sound}


def _whom(rows: Rows) -> str:
    policies = {row.policy for row in rows.values()}
    return policies.pop() if len(policies) == 1 else "The best policy of each simulator"


def _clauses(runs: Runs, rows: Rows, several: bool) -> list[str]:
    """A clause for each simulator."""
    on = {panel: f" on {panel.simulator}" if several else "" for panel in rows}
    texts = [break_even_text(row, runs.horizon, on[p]) for p, row in rows.items()]
    passes = joined([texts[0], *map(_again, texts, texts[1:])])
    brings = joined(
        [
            f"{number(row.reward)} {UNITS[row.unit]}{on[p]} (today's {number(row.ranker)}, the "
            f"best list {number(row.best)})"
            for p, row in rows.items()
        ]
    )
    return [f"{_whom(rows)} {passes}.", *_looks(rows), f"At the end a search brings {brings}."]


def _looks(rows: Rows) -> list[str]:
    """Why traffic would break even later than these rows say."""
    free = begin_free(row.policy for row in rows.values() if np.isfinite(row.break_even))
    said = "This does not count a first look at every item, which is free here."
    return [said] if free else []


def _again(before: str, text: str) -> str:
    """A clause without the words that the one before it has just said."""
    said, on, rest = text.partition(" on ")
    if on and before.startswith(f"{said}{on}"):
        return f"on {rest}"
    if before.startswith(PASSES) and text.startswith(PASSES):
        return text.removeprefix(PASSES).replace(OF_A_QUERY, "", 1)
    return text


def ends_of(row: Any) -> tuple[float, float]:
    """The ends of the break-even's 95% interval; itself where it has none.

    In between it is not named: that of the mean gain comes too early (docs/evidence.md).
    """
    known = row.break_even_low == row.break_even_low
    return (row.break_even_low, row.break_even_high) if known else (row.break_even,) * 2


def break_even_text(row: Any, horizon: int, on: str = "") -> str:
    """When the total reward passes today's ranker's, and the cost, in words."""
    low, high = ends_of(row)
    about = ["95% interval"] if low < high else []
    if np.isinf(low):
        text = f"does not pass today's ranker within {horizon:,} searches of a query"
    elif high == 0:
        text = AHEAD
    else:
        text = f"{PASSES}after {_span(low, high, horizon)}{OF_A_QUERY}"
    if row.cost > 0 and high > 0:
        about.append(f"up to {number(row.cost)} {UNITS[row.unit]} behind before")
    return f"{text}{on} ({'; '.join(about)})" if about else f"{text}{on}"


def _span(low: float, high: float, horizon: int) -> str:
    """``380 to beyond 2,000``."""
    return " to ".join(dict.fromkeys([searches(low), searches(high, f"beyond {horizon:,}")]))


def _in_short(rows: Rows, horizon: int) -> str:
    """Many simulators in one sentence."""
    ahead = [row for row in rows.values() if np.isfinite(row.break_even)]
    text = f"{_whom(rows)} passes today's ranker on {len(ahead)} of {len(rows)} simulators"
    later = [ends for ends in map(ends_of, ahead) if ends[1] > 0]
    if later:
        at_once = len(ahead) - len(later)
        span = _span(min(low for low, _ in later), max(high for _, high in later), horizon)
        first = f", on {at_once} from the first search, on the others" if at_once else ","
        text += f"{first} after {span}{OF_A_QUERY}"
    elif ahead:
        text += ", from the first search"
    return text


def _unsure(rows: Rows) -> str:
    """On how many of the simulators that it passes the ranker on it may as well not."""
    ahead = [row for row in rows.values() if np.isfinite(row.break_even)]
    many = sum(not np.isfinite(row.break_even_high) for row in ahead)
    said = f"; on {many} of these the 95% interval does not exclude that it never does"
    return said if many else ""


MOST = 4  # simulators whose names are said


def headline(runs: Runs, parts: Parts) -> list[str]:
    """The sentences of the answer, track by track; a track in which nobody competes adds none."""
    contested = any(len(_learning(summary)) > 1 for summary, _ in parts.values())
    found = []
    for track in dict.fromkeys(panel.track for panel in parts):
        mine = {panel: summary for panel, (summary, _) in parts.items() if panel.track == track}
        if contested and all(len(_learning(summary)) < 2 for summary in mine.values()):
            continue
        found.append(_who(runs, mine))
        found += against_ranker(runs, {panel: _learning(one) for panel, one in mine.items()})
    return found


def favourite(runs: Runs, parts: Parts) -> Favourite:
    """The policy that learns and loses least, or may, on all simulators; of lists, where there are.

    And its rows against today's ranker, where that is known. Simulators that no check faults choose
    it, where there are such.
    """
    tracks = {panel.track for panel in parts}
    track = "ranking" if "ranking" in tracks else min(tracks)
    mine = {panel: _learning(s) for panel, (s, _) in parts.items() if panel.track == track}
    mine = {panel: table for panel, table in mine.items() if len(table)}
    if not mine:
        return Favourite(None, {})
    sound = unfaulted(runs)
    policy = standing({p: one for p, one in mine.items() if p.simulator in sound} or mine).best
    firsts = {panel: str(table["policy"].iloc[0]) for panel, table in mine.items()}
    return Favourite(policy, rows_of(runs, dict.fromkeys(mine, policy) if policy else firsts))


def _learning(summary: pd.DataFrame) -> pd.DataFrame:
    """The policies that learn."""
    return summary[~summary["policy"].str.partition("(")[0].isin(BASELINES)]


# -- who loses least ------------------------------------------------------------------------------


class Standing(NamedTuple):
    """Who loses least on the simulators of a track, and who cannot be told apart from these."""

    first: list[str]  # by simulator
    sets: list[set[str]]
    tested: bool
    shared: list[str]  # of the best set of every simulator

    @property
    def best(self) -> str | None:
        """The policy that loses least, or may, on all of them."""
        if len(set(self.first)) == 1:
            return self.first[0]
        return self.shared[0] if self.tested and self.shared else None


def standing(tables: Mapping[Panel, pd.DataFrame]) -> Standing:
    """Of the tables of those that compete."""
    first = [str(table["policy"].iloc[0]) for table in tables.values()]
    sets = [set(table[table["in_best_set"]]["policy"]) for table in tables.values()]
    order = list(next(iter(tables.values()))["policy"])
    shared = [p for p in order if all(p in one for one in sets)]
    tested = not any(table["p"].isna().all() for table in tables.values())
    return Standing(first, sets, tested, shared)


def _who(runs: Runs, parts: Mapping[Panel, pd.DataFrame]) -> str:
    """The policy that loses least, and how sure that is."""
    tables = {panel: competing(summary) for panel, summary in parts.items()}
    where = _where(runs, list(tables))
    common = set.intersection(*(set(table["policy"]) for table in tables.values()))
    if not common:
        return f"{where} have no policy in common, so they cannot agree or contradict each other."
    if all(len(table) == 1 for table in tables.values()):
        (policy,) = common
        return f"Only {policy} was run on {where}. {_losses(runs, tables, policy)}."
    first, sets, tested, shared = found = standing(tables)
    if not tested:
        if len(set(first)) > 1:
            return (
                f"Which policy loses least depends on the simulator ({_by(tables, first)}). "
                f"{UNTESTED}."
            )
        return f"{first[0]} loses least on {where}. {UNTESTED}. {_losses(runs, tables, first[0])}."
    best = found.best
    if not shared or best is None:
        these = _by(tables, [joined(sorted(one)) for one in sets])
        return f"The answer depends on the simulator: the best policy is {these}."
    losses = f"{_losses(runs, tables, best, _next(tables, best))}."
    if all(len(one) == 1 for one in sets):
        return f"{best} loses least on {where}. {losses}"
    if len(set(first)) == 1 and (len(tables) == 1 or len(shared) == 1):
        tied: dict[str, list[str]] = {}
        for panel, one in zip(tables, sets, strict=True):
            if len(one) > 1:
                tied.setdefault(joined(sorted(one - {best})), []).append(panel.simulator)
        but = [
            f"{f'on {joined(on)} ' if len(tables) > 1 else ''}it cannot be told apart from {them}"
            for them, on in tied.items()
        ]
        return f"{best} loses least on average on {where}, but {'; '.join(but)}. {losses}"
    may = f"any of {joined(shared)} may be best" if len(shared) > 1 else f"{best} may be best"
    losses = losses.replace(" it loses ", f" {best} loses ", 1)
    if len(set(first)) == 1:
        return f"There is no winner on {where}: {may}. {losses}"
    return f"There is no winner: {may}; on average {_by(tables, first, ' loses least')}. {losses}"


def _by(panels: Mapping[Panel, Any], best: list[str], does: str = "") -> str:
    """``A on DCM and B on PBM``."""
    pairs = zip(panels, best, strict=True)
    return joined([f"{b}{does} on {panel.simulator}" for panel, b in pairs])


def _where(runs: Runs, panels: list[Panel]) -> str:
    """``DCM and PBM``; of many, their number."""
    names = [panel.simulator for panel in panels]
    return joined(names) if len(names) <= MOST else f"all {len(names)} simulators"


def _next(tables: Mapping[Panel, pd.DataFrame], best: str) -> str | None:
    """The policy behind the best, if it is the same on all simulators."""
    behind = {next(iter(t["policy"][t["policy"] != best]), None) for t in tables.values()}
    return behind.pop() if len(behind) == 1 else None


def _losses(
    runs: Runs, tables: Mapping[Panel, pd.DataFrame], policy: str, rival: str | None = None
) -> str:
    """In 10,000 searches of a query it loses 50 of 1,000 satisfied searches ...; B loses 141."""
    units = runs.units()
    by_unit: dict[str, list[tuple[float, float]]] = {}
    for panel, table in tables.items():
        row = table.set_index("policy")["relative_regret"]
        pair = (float(row[policy]), float(row[rival]) if rival else np.nan)
        by_unit.setdefault(UNITS[units[panel]], []).append(pair)
    lost = [f"{out_of([a for a, _ in pairs])} {unit}" for unit, pairs in by_unit.items()]
    text = (
        f"In {runs.horizon:,} searches of a query it loses {joined(lost)} that "
        f"{best_of(next(iter(tables)))} would have brought"
    )
    if rival is not None:
        behind = [out_of([b for _, b in pairs]) for pairs in by_unit.values()]
        text += f"; {rival}, the next, loses {joined(behind)}"
    return text
