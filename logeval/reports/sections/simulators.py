"""What the runs were made from: click models, log, and what was run."""

from __future__ import annotations

from typing import Any

from logeval.log.log import Log
from logeval.reports.figures.models import (
    plot_fitted,
    plot_log,
)
from logeval.reports.page import WIDEST, Cell, Content, Page

FIT = ("model", "method", "queries", "serps", "log_likelihood", "perplexity", "converged")
FIGURES = {  # by field: its name, and how to read it
    "v": ("termination", "probability that a click at a position ends the search"),
    "e": ("examination", "probability that a position is looked at"),
    "w": ("attraction", "attraction of the items, most attractive first"),
}
TOP = 10  # queries of the log


def the_models(page: Page, content: Content) -> None:
    """The click models: checks, quality, parameters with intervals."""
    errors = content.check_errors
    if not errors and not content.models:
        return
    with page.section("The click models", folded=content.decision is not None):
        if errors:
            checks = list(dict.fromkeys(check for mine in errors.values() for check in mine))
            columns = {"check": [Cell(check) for check in checks]}
            for name, mine in list(errors.items())[: WIDEST - 1]:
                columns[name] = [_error(*mine.get(check, (None, False))) for check in checks]
            page.grid(
                "checks", columns,
                "Clicks simulated on the logged lists beside those of the log: how far off each "
                "check is over all queries, marked where that is more than chance.",
            )  # fmt: skip
        for i, models in enumerate(content.models.values()):
            _models(page, models, "" if len(content.models) == 1 else f"-{i + 1}")


def _error(error: float | None, faulted: bool) -> Cell:
    return Cell("") if error is None else Cell(f"{error:.3f}", error, marked=faulted)


def _models(page: Page, models: Any, suffix: str) -> None:
    summary = models.summary()
    page.table(
        f"models{suffix}", summary[[c for c in FIT if c in summary]],
        "How they predict held-out SERPs (log-likelihood per result: higher is better; "
        "perplexity: 1 is perfect).",
        log_likelihood=".4f", perplexity=".4f",
    )  # fmt: skip
    page.lines(list(dict.fromkeys(n for f in models.fitted.values() for n in f.report["notes"])))
    with page.folded("Their parameters"):
        for name, fitted in models.fitted.items():
            for field, (what, caption) in FIGURES.items():
                shape = fitted.estimates[field].value.ndim if field in fitted.estimates else 0
                if shape and not (field == "e" and shape != 2):
                    ax = plot_fitted(fitted, what, names=models.names)
                    page.figure(
                        f"{field}-{name}{suffix}", ax.figure,
                        f"{name}: {caption}, with 95% intervals.",
                    )  # fmt: skip


def the_log(page: Page, content: Content) -> None:
    """The log at a glance."""
    log = content.log
    if log is None or log.holds != "serps":  # its pages are not known
        return
    found = log.describe()
    with page.section("The log", folded=True):
        page.facts({name.replace("_", " "): value for name, value in found.totals.items()})
        page.figure(
            "log", plot_log(found)[0].figure,
            "Left: how often the result at a rank is clicked. Right: how many SERPs the queries "
            "have, most frequent first.",
        )  # fmt: skip
        top = found.top_queries
        names = found.names.titles(top["query"].astype(str), width=None)
        page.table(
            "top-queries", top.assign(query=top["query"].astype(str).map(names)),
            "The most frequent queries: SERPs, distinct items L, distinct lists and their entropy.",
            rows=TOP, clicks_per_serp=".3f", list_entropy=".2f",
        )  # fmt: skip


def what_was_run(page: Page, content: Content) -> None:
    """Settings, data and versions."""
    with page.section("What was run", folded=True):
        page.lines(content.notes)
        for runs in content.runs:
            rows = runs.to_pandas()
            page.facts(
                {
                    **({"folder": str(runs.folder)} if runs.folder else {}),
                    "policies": sorted(set(rows["policy"])),
                    "simulators": sorted(set(rows["simulator"])),
                    "queries": rows["query"].nunique(),
                    "runs per query": int(rows["run"].max()) + 1,
                    "searches of a query": int(rows["t"].max()),
                    "seed": str(runs.seed),
                }
            )
        if content.decision is not None and content.decision.manifest:
            page.facts(content.decision.manifest.get("arguments", {}))
        if content.log is not None:
            page.facts(_source(content.log))
        if content.recipe:
            page.code("Recipe, to run it again", content.recipe.read_text(encoding="utf-8"))


def _source(log: Log) -> dict[str, Any]:
    counts, inputs = log.counts, log.manifest["inputs"]
    files = {
        "log": [_input(i) for i in inputs],
        "SHA-256 of the log": [i["sha256"] for i in inputs],
    }
    if log.holds != "serps":
        kept = f"{counts['impressions']:,} impressions, {counts['clicks']:,} clicks, counted before"
        return files | {"kept": kept, "set aside": f"{counts.get('rejected', 0):,} rejected rows"}
    return files | {
        "kept": f"{counts['queries']:,} SERPs, {counts['clicks_matched']:,} clicked results",
        "set aside": f"{counts.get('clicks_orphan', 0):,} orphan clicks, "
        f"{counts.get('rejected', 0):,} rejected lines, "
        f"{counts['test_queries']:,} test SERPs (never fitted)",
    }


def _input(known: dict[str, Any]) -> str:
    """A file, or a data frame."""
    size = f"{known['bytes']:,} bytes" if "bytes" in known else f"{known['rows']:,} rows"
    return f"{known['name']} ({size})"
