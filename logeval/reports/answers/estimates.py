"""Which estimator of a replay to believe, target by target.

Believed is DR with the click model that predicts held-out sessions best, where it was asked for
(``DR(auto)``). Else, or where it covers much less than others, it is the estimator that assumes
least of users, among those that cover (nearly) as much as any and rest on enough searches; of
several, the one with the narrowest interval.

Where two estimators differ by more than chance, and one is right wherever the other is, the other
one is refuted, for all targets. If neither assumes less, the answer depends on which users these
are; estimators that the best click model contradicts are out of it.

What replay estimated, in words: what the ranker would have earned, and what is not covered.

The numbers are those of the estimator to believe (``judged``). Where it depends on the users which
one that is, all of them are said.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from logeval.replay.estimate import FEW, Estimates
from logeval.replay.estimators import OF_CELLS, Estimator, parse_estimators
from logeval.replay.targets import is_learned
from logeval.reports.answers.checks import Answer, searches
from logeval.reports.words import sentence
from logeval.running.words import interval, joined, number

if TYPE_CHECKING:
    pass


RCTR = 4  # the strength of what does not look at the target
AS_MUCH = 0.8  # of the largest coverage counts as much


@dataclass(frozen=True)
class Judged:
    """One target: its rows over all queries, by estimator, and by query."""

    name: str
    overall: dict[str, dict[str, Any]]
    queries: dict[str, list[dict[str, Any]]]
    contradictions: list[dict[str, Any]]
    # of all targets: what an estimator that assumes less differs from, with where and which
    refuted: Mapping[str, dict[str, Any]]
    predicting: Mapping[str, float]  # log-likelihoods by click model, the best first
    unit: str = "search"  # that values are of, or placement

    @property
    def clicks(self) -> str:
        """The unit of values, in words."""
        return "clicks per placement" if self.unit == "placement" else searches(self.K)

    @cached_property
    def estimators(self) -> dict[str, Estimator]:
        """The estimators by name."""
        return dict(zip(self.overall, parse_estimators(self.overall), strict=True))

    @property
    def best(self) -> str | None:
        """The click model that predicts held-out sessions best, where several were tried."""
        return next(iter(self.predicting), None)

    @cached_property
    def believed(self) -> str | None:
        """The estimator to believe; None where none says anything."""
        there = [e for e, row in self.overall.items() if row["value"] == row["value"]]
        there = [e for e in there if self.holds(e) and e not in self.refuted]
        enough = [e for e in there if self._is_of_best(e) or not self.rests_on_few(e)] or there
        if not enough:
            return None
        most = max(self.overall[e]["covered"] for e in enough)
        wide = [e for e in enough if self.overall[e]["covered"] >= AS_MUCH * most]
        return min(
            wide,
            key=lambda e: (
                not self._is_of_best(e), self.estimators[e].strength, width_of(self.overall[e])
            ),
        )  # fmt: skip

    def holds(self, name: str) -> bool:
        """Whether it looks at the target, and can be right of users of the best click model."""
        e = self.estimators[name]
        if e.strength >= RCTR:
            return False
        of_all = self.best is None or self.best.upper() in OF_CELLS or e.model == self.best
        return of_all or e.LEVEL in ("list", "prefix")

    def _is_of_best(self, name: str) -> bool:
        e = self.estimators[name]
        return e.NAME == "DR" and e.model == self.best

    def rests_on_few(self, name: str) -> bool:
        """Whether too few searches carry its weights."""
        return bool(self.overall[name]["effective_serps"] < FEW)

    @property
    def row(self) -> dict[str, Any]:
        """The row of the estimator to believe."""
        assert self.believed is not None
        return self.overall[self.believed]

    @property
    def K(self) -> int:
        """Positions."""
        return int(next(iter(self.overall.values()))["positions"])

    @cached_property
    def differing(self) -> list[tuple[str, dict[str, Any]]]:
        """The estimators that differ from the believed one by more than chance, with how much."""
        found = []
        for pair in self.contradictions:
            both = (pair["first"], pair["second"])
            if self.believed in both:
                found.append((both[both[0] == self.believed], pair))
        return found

    @property
    def rivals(self) -> list[str]:
        """Those among them that assume no more: it depends on the users which is right."""
        assert self.believed is not None
        most = self.estimators[self.believed].strength
        return [
            e for e, _ in self.differing
            if self.estimators[e].strength <= most and self.holds(e) and e not in self.refuted
        ]  # fmt: skip

    @property
    def lacking(self) -> list[dict[str, Any]]:
        """The queries that the believed estimator does not cover, the most frequent first."""
        rows = self.queries[self.believed or next(iter(self.queries))]
        return sorted((r for r in rows if not r["covered"]), key=lambda r: -r["serps"])


def judged(estimates: Estimates) -> list[Judged]:
    """The targets, each with what is known of it."""
    found, refuted = [], refutations(estimates)
    unit = "placement" if estimates.manifest.get("holds") == "placements" else "search"
    for name, rows in estimates.table.groupby("target", sort=False):
        records = [{str(k): v for k, v in r.items()} for r in rows.to_dict(orient="records")]
        whole = {r["estimator"]: r for r in records if not isinstance(r["query"], str)}
        parts = {
            e: [r for r in records if isinstance(r["query"], str) and r["estimator"] == e]
            for e in whole
        }
        pairs = [c for c in estimates.contradictions or [] if c["target"] == name]
        best = estimates.predicting or {}
        found.append(Judged(str(name), whole, parts, pairs, refuted, best, unit))
    return found


def refutations(estimates: Estimates) -> dict[str, dict[str, Any]]:
    """The estimators that one which assumes less differs from, on any target."""
    found: dict[str, dict[str, Any]] = {}
    for pair in estimates.contradictions or []:
        both = (pair["first"], pair["second"])
        for e, other in (both, both[::-1]):
            first, second = parse_estimators([e, other])
            if second.assumes_less(first):
                found.setdefault(e, {"by": other, "target": pair["target"]})
    return found


def width_of(row: dict[str, Any]) -> float:
    """How wide the interval of the difference to the log is; infinite where there is none."""
    width = row["difference_high"] - row["difference_low"]
    return math.inf if width != width else float(width)


NEARLY = 0.95  # of the searches of the log: an answer about as many is about the log
NAMED = 3  # queries, in a sentence
MOST_SESSIONS = 1000  # times as many as there are, that are worth to be named
SAME = 1e-9  # clicks per search
DOUBTFUL = 2  # from this strength on the answer says what it assumes


def verdict(estimates: Estimates) -> Answer:
    """Which ranker would have earned what, by which estimator, and what is not covered."""
    every = judged(estimates)
    known = sorted((j for j in every if j.believed), key=lambda j: -j.row["value"])
    if not known:
        return Answer(
            "The log does not say what these rankers would have earned: too little of what they "
            "show was ever shown, or what covers it is refuted.",
            limits=[*_unanswered(every), *map(sentence, estimates.facts)],
            next=_fewer(every[0]),
        )
    best, *others = known
    most = f"Of {len(known)} rankers {best.name} has the largest value. " if others else ""
    folder = estimates.manifest.get("log_folder", "LOG")
    why = [(one.name, line) for one in known for line in _why(one)]
    limits = [line for one in known for line in _limits(one)]
    return Answer(
        f"{most}{_part(best, estimates.manifest)}{_sentence(best)}",
        others=[_short(other) for other in others],
        because=_merged(why, several=bool(others)),
        limits=[*_unanswered(every), *limits, *map(sentence, estimates.facts)],
        next=_next(best, folder),
    )


def _part(one: Judged, manifest: Mapping[str, Any]) -> str:
    """Of how much of the log the sentence is, where that is not all of it."""
    queries, serps = manifest.get("log_queries"), manifest.get("log_serps")
    row = one.row
    if not queries or not serps or row["truth"] == row["truth"]:  # a log has its own searches
        return ""
    n, share = sum(bool(r["covered"]) for r in one.queries[str(one.believed)]), row["serps"] / serps
    if share > NEARLY:
        return ""
    of = f"{share:.0%}" if share >= 0.01 else f"{share:.2%}"
    return f"On {n:,} of the {queries:,} queries of the log ({of} of its searches) only: "


def _who(one: Judged) -> str:
    if is_learned(one.name):
        return f"{one.name}, which was chosen on these clicks and so is valued too high,"
    return one.name


def _sentence(one: Judged) -> str:
    row, what = one.row, one.clicks
    if one.rivals:
        says = joined([f"{e} says {number(one.overall[e]['value'])}" for e in _asked(one)])
        signs = {math.copysign(1.0, one.overall[e]["difference"]) for e in _asked(one)}
        more = "more" if signs == {1.0} else "less"
        same = (
            f"All say that it is {more} than the log's ranker earned ({number(row['logged'])})."
            if len(signs) == 1
            else f"The log's ranker earned {number(row['logged'])}."
        )
        return f"What {_who(one)} would have earned depends on the users: {says} {what}. {same}"
    if abs(row["difference"]) < SAME:
        return (
            f"{one.name} would have earned what the log's ranker earned: {number(row['value'])} "
            f"{what}."
        )
    said = f"{_who(one)} would have earned {number(row['value'])} {what}, {_difference(row)}"
    estimator = one.estimators[str(one.believed)]
    if estimator.strength < DOUBTFUL:
        return f"{said}, by {one.believed}."
    return f"{said}, if {estimator.assumes}.{_with_less(one)}"


def _with_less(one: Judged) -> str:
    """What an estimator says that assumes less than the believed one, and covers less."""
    believed = one.estimators[str(one.believed)]
    there = [
        e
        for e, row in one.overall.items()
        if one.estimators[e].assumes_less(believed)
        and row["value"] == row["value"]
        and not one.rests_on_few(e)
    ]
    if not there:
        return " No estimator that assumes less has enough support to check it."
    most = max(there, key=lambda e: one.overall[e]["covered"])
    row = one.overall[most]
    return (
        f" {most}, which assumes less, covers {row['covered']:.0%} of its searches; there it is "
        f"{_difference(row)}."
    )


def _asked(one: Judged) -> list[str]:
    return [str(one.believed), *one.rivals]


def _difference(row: dict[str, Any]) -> str:
    d = row["difference"]
    text = f"{number(abs(d))} {'more' if d > 0 else 'less'} than the log's ranker"
    if row["difference_low"] != row["difference_low"]:
        return text + " (no interval)"
    low, high = row["difference_low"], row["difference_high"]
    ends = interval(low, high) if d > 0 else interval(-high, -low)
    if low <= 0.0 <= high:
        return f"{text} (95% interval {ends}), which may be chance"
    return f"{text} (95% interval {ends})"


def _short(one: Judged) -> str:
    row = one.row
    if one.rivals:
        says = joined([f"{number(one.overall[e]['value'])} by {e}" for e in _asked(one)], "or")
        return f"{_who(one)} {says}"
    if abs(row["difference"]) < SAME:
        return f"{one.name} {number(row['value'])}"
    return f"{_who(one)} {number(row['value'])}, {_difference(row)}, by {one.believed}"


def _merged(lines: list[tuple[str, str]], several: bool) -> list[str]:
    """A line for each sentence, with the targets that it is said of."""
    names: dict[str, list[str]] = {}
    for name, line in lines:
        names.setdefault(line, []).append(name)
    return [f"{joined(of)}: {line}" if several else line for line, of in names.items()]


def _why(one: Judged) -> list[str]:
    believed = str(one.believed)
    if abs(one.row["difference"]) < SAME:
        return []
    rivals = one.rivals
    if rivals:
        parts = [f"{e} assumes that {one.estimators[e].assumes}" for e in _asked(one)]
        return [f"{'; '.join(parts)}; they differ by more than chance."]
    assumed = one.estimators[believed].assumes
    text = (
        f"{believed} assumes least of the estimators that cover as much: "
        f"{'' if assumed.startswith('nothing') else 'that '}{assumed}."
    )
    if one.best is not None and one.estimators[believed].model == one.best:
        text = (
            f"{believed} assumes that {assumed}, the click model that predicts sessions held out "
            f"best{_scores(one)}."
        )
    wrong = [e for e, _ in one.differing]
    agreeing = [
        e
        for e, row in one.overall.items()
        if e not in (believed, *wrong)
        and one.estimators[e].assumes_less(one.estimators[believed])
        and row["covered"] >= AS_MUCH * one.row["covered"]
        and not one.rests_on_few(e)
    ]
    if agreeing:
        agree = "agree" if len(agreeing) > 1 else "agrees"
        less = "assume" if len(agreeing) > 1 else "assumes"
        text += f" {joined(agreeing)}, which {less} less, {agree} with it within chance."
    lines = [text]
    for e, pair in one.differing:
        sign = 1.0 if pair["first"] == e else -1.0
        more = "more" if sign * pair["difference"] > 0 else "less"
        size = abs(pair["difference"])
        lines.append(
            f"{e} says {number(size)} {more}, which chance does not explain: here it does "
            f"not hold that {one.estimators[e].assumes}."
        )
    return lines


def _scores(one: Judged) -> str:
    """The log-likelihoods of the click models, where there were several."""
    said = [f"{name.upper()} {x:.4f}" for name, x in one.predicting.items()]
    return f" (log-likelihood per result: {', '.join(said)})" if len(said) > 1 else ""


def _unanswered(every: list[Judged]) -> list[str]:
    lines = []
    for one in every:
        there = [e for e, row in one.overall.items() if row["value"] == row["value"]]
        if one.believed is not None:
            continue
        why = (
            "Of no query the log has shown enough of it: the largest support is "
            f"{max(_support(row) for row in one.overall.values()):.0%}"
        )
        if refuted := [e for e in there if e in one.refuted]:
            by = one.refuted[refuted[0]]
            why = (
                f"{joined(refuted)} cannot be believed here: of {by['target']} {by['by']}, which "
                "assumes less, says something else, by more than chance"
            )
        lines.append(f"{one.name}: nothing can be said. {why}")
    return lines


def _support(row: dict[str, Any]) -> float:
    return 0.0 if row["support"] != row["support"] else float(row["support"])


def _limits(one: Judged) -> list[str]:
    row, believed, lines = one.row, str(one.believed), []
    if one.lacking:
        n = len(one.queries[believed])
        named = [
            f"{r['query']} ({_support(r):.0%}, up to K = {int(r['supported_positions'])})"
            for r in one.lacking[:NAMED]
        ]
        more = f" and {len(one.lacking) - NAMED:,} more" if len(one.lacking) > NAMED else ""
        lines.append(
            f"{one.name}: not covered are {len(one.lacking):,} of {n:,} queries "
            f"({1.0 - row['covered']:.0%} of its searches), as the log has shown too little of "
            f"what it shows: {', '.join(named)}{more}"
        )
    behind = [
        f"{e} ({other['covered']:.0%} of its searches)"
        for e, other in one.overall.items()
        if one.estimators[e].strength < RCTR and other["covered"] < AS_MUCH * row["covered"]
    ]
    if behind:
        lines.append(f"{one.name}: covered less by {joined(behind)}")
    if 0.0 < row["support"] < 0.995 and one.estimators[believed].model is None:
        lines.append(
            f"{one.name}: {1.0 - row['support']:.1%} of what it shows in these queries was never "
            "shown and counts as no clicks, so its value is rather too low"
        )
    if row["clipped"] > 0:
        lines.append(
            f"{one.name}: {row['clipped']:.1%} of the weights of {believed} are clipped, which "
            "lowers its value"
        )
    if one.rests_on_few(believed):
        lines.append(
            f"{one.name}: its value rests on few searches ({row['effective_serps']:.0f} effective "
            "ones), so the interval may be too narrow"
        )
    truth = row["truth"]
    if truth == truth:
        half = math.hypot(row["high"] - row["value"], row["truth_high"] - truth)
        holds = abs(row["value"] - truth) <= half
        how = "agrees within chance with" if holds else "differs by more than chance from"
        if half == half:
            lines.append(
                f"{one.name}: its own clicks were {number(truth)} per {one.unit} "
                f"({interval(row['truth_low'], row['truth_high'])}), which {how} {believed} "
                f"({interval(row['low'], row['high'])})"
            )
    return lines


def _next(one: Judged, folder: str) -> list[str]:
    if one.rivals:
        names = " ".join(f"-e {shlex.quote(e)}" for e in _asked(one))
        return [
            "see which of them predicts this log: `logeval replay validate "
            f"{shlex.quote(folder)} --positions {one.K} {names}`"
        ]
    if one.row["covered"] < AS_MUCH:
        return _fewer(one)
    if is_learned(one.name):
        return [
            "make the ranker from one part of the log and estimate it on another: with the early "
            "days ingested by themselves, give its lists as a table to the later ones"
        ]
    return _more_sessions(one.row)


def _more_sessions(row: dict[str, Any]) -> list[str]:
    """How many more sessions would show a difference of this size, where these do not."""
    half, d = width_of(row) / 2, abs(row["difference"])
    if not SAME < d <= half < math.inf:
        return []
    times = (half / d) ** 2
    if times > MOST_SESSIONS:
        return []
    return [
        f"a difference of this size would show with about {number(math.ceil(10 * times) / 10)} "
        "times as many sessions"
    ]


def _fewer(one: Judged) -> list[str]:
    """The largest number of positions at which most of the searches are covered."""
    rows = one.queries[one.believed or max(one.overall, key=lambda e: _support(one.overall[e]))]
    total = sum(r["serps"] for r in rows)
    for K in range(one.K - 1, 0, -1):
        reached = [r["serps"] for r in rows if int(r["supported_positions"] or 0) >= K]
        if sum(reached) >= AS_MUCH * total:
            return [
                f"positions={K} covers {sum(reached) / total:.0%} of the searches of {one.name}"
            ]
    return [
        "other rankings than the log's are not in it: let the ranker explore, as a small share "
        "of searches with the order changed at random"
    ]
