"""What fits and checks found: which model predicts best, and which clicks like the log's users."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logeval.clicks.collection import FittedModels
from logeval.clicks.models.registry import kinds
from logeval.clicks.quality.deviations import ModelVerdict
from logeval.clicks.quality.predictive import Checks
from logeval.clicks.quality.value import of_list, slopes_of
from logeval.clicks.support.graph import METHODS
from logeval.facts import Answer, Fact

MANY = 10_000  # SERPs, from which on faults that matter are seen


def of_fits(models: FittedModels) -> Answer:
    """Which model predicts held-out results best, and what the checks say of each."""
    reports = {name: one.report for name, one in models.fitted.items()}
    likely = {n: r["log_likelihood"] for n, r in reports.items() if "log_likelihood" in r}
    queries = float(len(models.queries))
    first = Fact("fitted", value=queries, more={"models": list(reports)})
    if len(likely) > 1:
        best = max(likely, key=lambda name: likely[name])
        first = Fact("predicts-best", best, value=likely[best])
    facts = [fact for name, report in reports.items() for fact in _of_fit(name, report)]
    empty = max(report.get("expected_empty", 0.0) for report in reports.values())
    return Answer([Fact("clicked-only", level="stop", value=empty), first] if empty else [first],
                  facts)  # fmt: skip


def remarks(models: FittedModels) -> list[str]:
    """What was chosen, who the users are, and what fits say of themselves."""
    found = [*models.manifest.get("chosen", [])]
    for one in models.fitted.values():
        found += [one.report[key] for key in ("who", "changes") if key in one.report]
        found += one.report["notes"]
    return list(dict.fromkeys(found))


def _of_fit(name: str, report: dict) -> Iterator[Fact]:  # type: ignore[type-arg]
    checks = report.get("checks")
    if checks and checks["judged"]:
        yield _checked(name, checks["faulted"], checks["judged"], checks["serps"])
    known = report.get("identified")
    if known:
        lost, share = known["not_carried"], known["prior_parameters"] / max(known["parameters"], 1)
        yield Fact("model-carried", name, "caution" if lost else "fine", float(known["carried"]),
                   threshold=float(known["queries"]), more={"share": share})  # fmt: skip


def _checked(name: str, faulted: list[str], judged: int, serps: int) -> Fact:
    passed, every, more = float(judged - len(faulted)), float(judged), {"serps": serps}
    if not faulted:
        return Fact("model-passes", name, value=passed, threshold=every, more=more)
    return Fact("model-fails", name, "caution", passed, threshold=every,
                more={**more, "failed": faulted})  # fmt: skip


FITS = ["model", "queries", "log-\nlikelihood", "perplexity", "value of lists", "checks", "carried"]


def fits(models: FittedModels) -> list[list[object]]:
    """A row per model, as people read it."""
    rows: list[list[object]] = []
    for name, one in models.fitted.items():
        report, checks = one.report, one.report.get("checks") or {}
        slope = of_list(slopes_of(report))
        value = "" if slope is None or slope.slope != slope.slope \
            else f"{slope.slope:.2f} [{slope.low:.2f}, {slope.high:.2f}]"  # fmt: skip
        judged = checks.get("judged")
        passed = f"{judged - len(checks['faulted'])} of {judged}" if judged else ""
        known = report.get("identified")
        carried = f"{known['carried']:,}" if known else ""
        quality = [report.get(key) for key in ("log_likelihood", "perplexity")]
        rows.append([name, len(one.queries), *quality, value, passed, carried])
    return rows


def of_checks(checks: Checks) -> Answer:
    """Who clicks like the users of the log, who does not, and what would not have shown."""
    if not checks.verdicts:
        return _of_swaps(checks)
    ranked = sorted(checks.verdicts.values(), key=lambda v: (len(v.faulted), _error(checks, v)))
    first = [_checked(v.model, v.faulted, len(v.right) + len(v.faulted), v.serps) for v in ranked]
    facts = []
    for v in ranked:
        if v.unjudged:
            facts.append(Fact("model-unjudged", v.model, more={"checks": v.unjudged}))
        if v.faulted_queries:
            facts.append(Fact("queries-fail", v.model, "caution", float(v.faulted_queries),
                              threshold=float(v.queries)))  # fmt: skip
    curves, serps = checks.curves, ranked[0].serps
    mine = curves[curves["query"].isna() & (curves["check"] == "ctr-by-rank")]
    if len(mine) and serps < MANY and not ranked[0].faulted:
        seen = float(((mine["high"] - mine["low"]) / 2).median())
        facts.append(Fact("sees-large-faults", level="caution", value=seen, threshold=float(serps)))
    return Answer(first[:1], [*first[1:], *facts], checks.notes)


def _error(checks: Checks, v: ModelVerdict) -> float:
    rows = checks.table[(checks.table["model"] == v.model) & checks.table["query"].isna()]
    return float(rows[rows["components"] > 0]["error"].mean())


def _of_swaps(checks: Checks) -> Answer:
    """What a table of counts says: is the examination of the models that from swaps?"""
    table = checks.examination
    assert table is not None
    rows = table[(table["method"] == METHODS[0]) & table["low"].notna() & (table["rank"] > 1)]
    if not len(rows):
        return Answer([Fact("swaps-unknown", level="caution")], notes=checks.notes)
    names = [name for name in table.columns if name in kinds() or "(" in name]
    first = []
    for name in names:
        held = int(np.sum((rows["low"] <= rows[name]) & (rows[name] <= rows["high"])))
        first.append(Fact("swaps-agree", name, "fine" if held == len(rows) else "caution",
                          float(held), threshold=float(len(rows))))  # fmt: skip
    return Answer(first, notes=checks.notes)
