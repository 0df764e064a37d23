"""What ``replay`` found: what rankers would have earned, who earned most, which estimator to use.

The numbers of a ranker are those of the estimator to believe (``replay/believed.py``). Where it
depends on the users which one that is, all of them are named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from logeval.facts import Answer, Fact
from logeval.replay.believed import Judged, judged, refutations
from logeval.replay.estimate import Estimates
from logeval.replay.policy import PolicyReplay, curve
from logeval.replay.targets import is_learned
from logeval.replay.validate import Validation
from logeval.running.words import number

NEARLY = 0.95  # of the searches of the log: an answer about as many is about the log
SAME = 1e-9  # clicks per search
DOUBTFUL = 2  # from this strength on an estimator's assumption has to be checked


def of_estimates(estimates: Estimates) -> Answer:
    """What each ranker would have earned, the best first."""
    every = judged(estimates)
    known = sorted((one for one in every if one.believed), key=lambda one: -one.row["value"])
    lost = [unanswered(one, estimates) for one in every if not one.believed]
    if not known:
        return Answer(lost, estimates.facts)
    facts = [fact for one in known for fact in limits(one, estimates.manifest)]
    others = [value(one) for one in known[1:]]
    best = [value(known[0])]
    if (covered := float(known[0].row["covered"])) < NEARLY:
        best.append(Fact("covers", known[0].name, "caution", covered))
    return Answer(best, [*others, *lost, *facts, *estimates.facts])


def unanswered(one: Judged, estimates: Estimates) -> Fact:
    """Why nothing is said of a target."""
    there = [e for e, row in one.overall.items() if row["value"] == row["value"]]
    if refuted := [e for e in there if e in one.refuted]:
        by = str(refutations(estimates)[refuted[0]]["by"])
        return Fact("ranker-refuted", one.name, "stop", more={"estimators": refuted, "by": by})
    most = max(_support(row) for row in one.overall.values())
    return Fact("ranker-unknown", one.name, "stop", value=most)


def value(one: Judged) -> Fact:
    """What a target would have earned, against the log's ranker."""
    row = one.row
    if one.rivals:
        names = [str(one.believed), *one.rivals]
        says = [f"{e} says {number(one.overall[e]['value'])}" for e in names]
        return Fact("ranker-depends", one.name, "caution", more={"says": says})
    earned, difference = float(row["value"]), float(row["difference"])
    more: dict[str, Any] = {"unit": one.unit}
    if abs(difference) < SAME:
        return Fact("ranker-same", one.name, value=earned, more=more)
    low, high = float(row["difference_low"]), float(row["difference_high"])
    if low != low:
        more |= {"difference": difference}
        return Fact("ranker-no-interval", one.name, value=earned, more=more)
    more |= {"difference": abs(difference)}
    if low > 0.0:
        return Fact("ranker-more", one.name, value=earned, low=low, high=high, more=more)
    if high < 0.0:
        return Fact("ranker-less", one.name, value=earned, low=-high, high=-low, more=more)
    return Fact("ranker-unclear", one.name, value=earned, low=low, high=high, more=more)


def limits(one: Judged, manifest: Any) -> Iterator[Fact]:
    """What the value of a target rests on."""
    row, believed = one.row, str(one.believed)
    estimator = one.estimators[believed]
    yield Fact("assumes", one.name, more={"estimator": believed, "assumption": estimator.assumes})
    serps = manifest.get("log_serps")
    if serps and row["truth"] != row["truth"] and row["serps"] < NEARLY * serps:
        yield Fact("part-of-the-log", one.name, "caution", row["serps"] / serps)
    if estimator.strength >= DOUBTFUL and not _checked(one):
        yield Fact("no-check", one.name, "caution")
    for name, _ in one.differing:
        says = float(one.overall[name]["value"])
        yield Fact("contradicted", one.name, value=says, more={"estimator": name})
    if is_learned(one.name):
        yield Fact("chosen-on-these-clicks", one.name, "caution")
    if one.lacking:
        every = float(len(one.queries[believed]))
        yield Fact("not-covered", one.name, "caution", float(len(one.lacking)), threshold=every)
    if 0.0 < row["support"] < 0.995 and estimator.model is None:
        yield Fact("never-shown", one.name, "caution", 1.0 - float(row["support"]))
    if row["clipped"] > 0:
        yield Fact("clipped", one.name, "caution", float(row["clipped"]))
    if one.rests_on_few(believed):
        yield Fact("few-effective", one.name, "caution", float(row["effective_serps"]))
    if row["truth"] == row["truth"]:
        half = math.hypot(row["high"] - row["value"], row["truth_high"] - row["truth"])
        inside = abs(row["value"] - row["truth"]) <= half
        yield Fact("own-clicks", one.name, "fine" if inside else "caution", float(row["truth"]),
                   row["truth_low"], row["truth_high"], more={"unit": one.unit})  # fmt: skip


def _checked(one: Judged) -> bool:
    """Whether an estimator that assumes less than the believed one says something, too."""
    believed = one.estimators[str(one.believed)]
    return any(
        one.estimators[e].assumes_less(believed) and row["value"] == row["value"]
        for e, row in one.overall.items()
        if not one.rests_on_few(e)
    )


def _support(row: dict[str, Any]) -> float:
    return 0.0 if row["support"] != row["support"] else float(row["support"])


TARGETS = ["target", "clicks [95%]", "own clicks [95%]", "to the log [95%]", "P(worse)", "covers",
           "by"]  # fmt: skip


def targets(estimates: Estimates) -> list[list[object]]:
    """A row per target, by the estimator to believe; own clicks are those of one that is a log."""
    rows: list[list[object]] = []
    for one in sorted(judged(estimates), key=lambda j: -j.row["value"] if j.believed else math.inf):
        if one.believed is None:
            rows.append([one.name, "", "", "", "", "0%", ""])
            continue
        row = one.row
        difference = ""
        if abs(row["difference"]) >= SAME:
            difference = _with_ends(row, "difference", "+")
        worse = "" if row["worse"] != row["worse"] or not difference else f"{row['worse']:.0%}"
        name = " or ".join([one.believed, *one.rivals])
        own = "" if row["truth"] != row["truth"] else _with_ends(row, "truth")
        covers = f"{row['covered']:.0%}"
        rows.append([one.name, _with_ends(row, ""), own, difference, worse, covers, name])
    return rows


def _with_ends(row: dict[str, Any], name: str, sign: str = "") -> str:
    low, high = (row[f"{name}_{end}".removeprefix("_")] for end in ("low", "high"))
    text = f"{row[name or 'value']:{sign}.4f}"
    return text if low != low else f"{text} [{low:.4f}, {high:.4f}]"


# -- replayed policies ----------------------------------------------------------------------------

LEAST = 10  # steps, below which nothing is said of what a policy earns


def of_replays(found: PolicyReplay) -> Answer:
    """Who earned most over the steps that all got to, and how far the log can follow."""
    queries = found.covered()
    every = list(dict.fromkeys(found.table["query"]))
    rows = found.table[found.table["query"].isin(queries)] if queries else found.table
    steps = found.common(rows)
    earned = {str(p): curve(mine, steps) for p, mine in rows.groupby("policy", sort=False)}
    best = max(earned, key=lambda policy: earned[policy][0])
    if steps < LEAST:
        return Answer([Fact("cannot-follow", level="stop", value=float(steps))])
    value, half = earned[best]
    low, high = (None, None) if half != half else (value - half, value + half)
    first = Fact("replayed", best, "fine", value, low, high, more={"steps": steps})
    tied = [p for p, (x, h) in earned.items() if p != best and not value - half > x + h]
    conclusion = [first, *([Fact("replayed-tied", best, more={"others": tied})] if tied else [])]
    facts = list(found.facts)
    logged = [found.logged[query] for query in queries if query in (found.logged or {})]
    if logged:
        facts.append(Fact("replayed-logger", value=sum(logged) / len(logged)))
    last = rows.drop_duplicates(["policy", "query", "run"], keep="last")
    if last["exhausted"].any():
        share = float(last["steps"].sum() / last["passed"].sum())
        facts.append(Fact("followed-to", level="caution", value=share, threshold=float(steps)))
    if half != half:
        facts.append(Fact("no-interval", level="caution"))
    if len(queries) < len(every):
        lost = float(len(every) - len(queries))
        facts.append(Fact("queries-lost", level="caution", value=lost, threshold=float(len(every))))
    return Answer(conclusion, facts)


# -- validation -----------------------------------------------------------------------------------

ALIKE = 0.1  # of the noise: predictions that differ by less do not tell estimators apart
FEW_PARTS = 5
ENOUGH = 0.8  # support below this is said


def of_validation(found: Validation) -> Answer:
    """The estimator to use at each K, or why these parts cannot say."""
    same = [c for c in found.choices if c["spread"] < ALIKE * c["floor"]]
    clear = [c for c in found.choices if c["beats_logger"] and c not in same]
    open_ = [c for c in found.choices if c not in same and c not in clear]
    best = dict.fromkeys(c["best"] for c in clear)
    first = [Fact("use-estimator", name, more=_at([c for c in clear if c["best"] == name]))
             for name in best]  # fmt: skip
    if open_:
        first.append(Fact("cannot-choose", level="caution", more=_at(open_)))
    if same:
        first.append(Fact("same-rankings", level="caution", more=_at(same)))
    facts = [*found.facts] + [
        Fact("errs", c["best"], value=c["rmse"], threshold=c["floor"], more=_at([c]))
        for c in found.choices
    ]
    rows = found.table[found.table["clip"].isna()]
    if (n := int(rows["parts"].iloc[0])) < FEW_PARTS:
        facts.append(Fact("few-parts", level="caution", value=float(n)))
    if names := rows.loc[rows["support"] < ENOUGH, "estimator"].drop_duplicates().tolist():
        least = float(rows["support"].min())
        facts.append(Fact("little-support", ", ".join(names), "caution", least))
    return Answer(first, facts)


def _at(choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"at": [str(c["positions"]) for c in choices]}
