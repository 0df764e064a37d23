"""The sections of the report, each from one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from logeval import tables
from logeval.clicks.collection import FittedModels
from logeval.clicks.fitted import FittedModel
from logeval.evaluation.results import Panel, Runs
from logeval.evaluation.theory import dcm_lower_slope
from logeval.log.log import Log
from logeval.names import parse_call
from logeval.reports.log_figures import plot_log
from logeval.reports.model_figures import plot_attraction, plot_examination, plot_termination
from logeval.reports.page import Page
from logeval.reports.regret_figures import plot_regret
from logeval.reports.track_figures import plot_relative, plot_remaining

PER_QUERY = 60  # with more queries than this, no small multiples are drawn
SHOWN = 60  # rows of parameters on the page; the CSV has all


def what_was_run(page: Page, runs: list[Runs], log: Log | None, recipe: Path | None) -> None:
    """Settings, data and versions."""
    page.section("What was run")
    rows = pd.concat([one.table() for one in runs])
    facts: dict[str, Any] = {
        "policies": sorted(set(rows["policy"])),
        "simulators": sorted(set(rows["simulator"])),
        "queries": rows["query"].nunique(),
        "runs per query": int(rows["run"].max()) + 1,
        "steps": int(rows["t"].max()),
        "seed": [str(one.seed) for one in runs],
    }
    if log:
        counts = log.counts
        source = [f"{i['name']} ({i['bytes']:,} bytes)" for i in log.manifest["inputs"]]
        kept = f"{counts['queries']:,} SERPs, {counts['clicks_matched']:,} clicked results"
        facts |= {
            "log": source,
            "SHA-256 of the log": [i["sha256"] for i in log.manifest["inputs"]],
            "kept": kept,
            "set aside": f"{counts.get('clicks_orphan', 0):,} orphan clicks, "
            f"{counts.get('rejected', 0):,} rejected lines, "
            f"{counts['test_queries']:,} test SERPs (never fitted)",
        }
    page.facts(facts)
    for one in runs:
        if one.folder:
            text = (one.folder / tables.MANIFEST).read_text()
            page.code(f"Manifest of the runs in {one.folder}", text[:20_000])
    if recipe:
        page.code("Recipe, to run it again", recipe.read_text())


def the_log(page: Page, log: Log) -> None:
    """The log at a glance."""
    page.section("The log at a glance")
    found = log.describe()
    page.facts({name.replace("_", " "): value for name, value in found.totals.items()})
    page.figure(
        "log",
        plot_log(found)[0].figure,
        "Left: how often the result at a rank is clicked; a steep fall means that few users look "
        "further. Right: how many SERPs the queries have, most frequent first; a straight line is "
        "a Zipf law.",
    )
    page.table(
        "clicks-per-serp", found.clicks_per_serp, "SERPs by number of clicked results.", share=".4f"
    )
    page.table(
        "top-queries",
        found.top_queries,
        "The most frequent queries: SERPs, distinct items L, distinct lists and their entropy.",
        clicks_per_serp=".3f",
        list_entropy=".2f",
    )


def the_models(page: Page, models: FittedModels) -> None:
    """The simulators: quality, parameters with intervals, warnings."""
    page.section("The click models")
    summary = models.summary()
    page.notes(
        [note for fitted in models.fitted.values() for note in fitted.report.get("notes", [])]
    )
    hidden = [c for c in ("notes", "priors", "patterns", "cpu_seconds") if c in summary]
    page.table(
        "models",
        summary.drop(columns=hidden),
        "How the models were fitted, and how well they predict held-out SERPs (log-likelihood per "
        "result: higher is better; perplexity: 1 is perfect).",
        log_likelihood=".4f",
        perplexity=".4f",
        conditional_perplexity=".4f",
    )
    for name, fitted in models.fitted.items():
        _model_figures(page, name, fitted)
    parameters = models.table()
    parameters = parameters[~parameters["parameter"].isin(["positions", "items"])]
    first = parameters.sort_values("observations", ascending=False, kind="stable").head(SHOWN)
    page.table(
        "parameters",
        first.dropna(axis=1, how="all"),
        f"The {SHOWN} parameters with the most observations, with their 95% intervals; the CSV has "
        "all.",
    )
    parameters.to_csv(page.folder / "tables" / "parameters.csv", index=False)


def _model_figures(page: Page, name: str, fitted: FittedModel) -> None:
    if "v" in fitted.estimates:
        page.figure(
            f"termination-{name}",
            plot_termination(fitted).figure,
            "Probability that a user who clicks at a position is satisfied and leaves, of the five "
            "most frequent queries, with 95% intervals. Where the first position is the highest, "
            "the best item belongs at the top; the last position is hollow because it cannot be "
            "identified.",
        )
    if "e" in fitted.estimates and fitted.estimates["e"].value.ndim == 2:
        page.figure(
            f"examination-{name}",
            plot_examination(fitted).figure,
            "Probability that a position is looked at, most examined first. The steeper the fall, "
            "the more an item's place decides.",
        )
    if "w" in fitted.estimates:
        page.figure(
            f"attraction-{name}",
            plot_attraction(fitted).figure,
            "Attraction of the items, most attractive first, with 95% intervals. Wide bands at the "
            "right are items that were seldom shown, whose values come mostly from the prior.",
        )


def the_runs(page: Page, runs: Runs, suffix: str) -> None:
    """Regret: curves, final tables, query by query, tracks on one axis."""
    page.section("Regret" + (f": {runs.folder}" if suffix else ""))
    for i, panel in enumerate(runs.panels()):
        where = f"{i + 1}{suffix}"
        page.figure(
            f"regret-{where}",
            _linear_and_log(runs, panel),
            f"Cumulative regret on {runs.title(panel)}: expected reward lost so far "
            "against always showing the best list; lower is better, and a curve that flattens has "
            "learned. Bands are 95% intervals at each step, over queries or the runs of a single "
            "one; on the logarithmic axis logarithmic regret is a straight line.",
        )
    page.notes(runs.notes)
    summary = runs.summary()
    page.table(
        f"summary{suffix}",
        summary,
        f"At step {runs.horizon:,}: regret with its 95% interval and the papers' standard error "
        "over runs, its share of the optimal reward, and the paired difference to the best policy "
        "of the same simulator, with interval and p that hold for all pairs of policies together. "
        "in_best_set: cannot be told apart from the best."
        + "".join(f" Note: {caution}." for caution in runs.cautions()),
        **dict.fromkeys(("relative_regret", "share_of_optimum", "optimal_steps"), ".2%"),
        **dict.fromkeys(("regret", "low", "high", "stderr"), ",.1f"),
        **dict.fromkeys(("difference", "difference_low", "difference_high"), "+,.1f"),
        p=".4f",
    )
    _one_axis(page, runs, suffix)
    _by_query(page, runs, suffix)


def _one_axis(page: Page, runs: Runs, suffix: str) -> None:
    page.section("All tracks on one axis" + (f": {runs.folder}" if suffix else ""))
    relative = runs.relative()
    for i, simulator in enumerate(sorted(set(relative["simulator"]))):
        page.figure(
            f"relative-{i + 1}{suffix}",
            plot_relative(runs, simulator).figure,
            f"Regret on {simulator} as a share of the optimal reward, so that lists and single "
            "pairs compare. The label says what is counted: the list, the pair at its most "
            "examined position (top pair), or the pair of the rank-1 track.",
        )
    page.table(
        f"relative{suffix}",
        relative,
        "The same at the last step, with 95% intervals.",
        **dict.fromkeys(("relative_regret", "low", "high"), ".2%"),
    )
    rows = runs.table()
    for i, simulator in enumerate(sorted(set(rows["simulator"][rows["rows_left"].notna()]))):
        page.figure(
            f"remaining-{i + 1}{suffix}",
            plot_remaining(runs, simulator).figure,
            "Items (rows) and positions (columns) that elimination has left, on average. A policy "
            "has found the best pair when one of each remains.",
        )
    hardness = runs.hardness()
    if len(hardness):
        page.table(
            f"hardness{suffix}",
            hardness,
            "How hard the rank-1 problem of each query is (mu, p_max and gamma of the Rank1ElimKL "
            "paper, equations 3 to 5), and Theorem 1's bound on the regret of Rank1ElimKL.",
            bound=",.3g",
        )


def _by_query(page: Page, runs: Runs, suffix: str) -> None:
    rows = runs.table()
    n = rows["query"].nunique()
    if n == 1:
        return
    page.section("Query by query" + (f": {runs.folder}" if suffix else ""))
    if n > PER_QUERY:
        page.text(f"There are {n} queries; figures are drawn for up to {PER_QUERY}.")
    else:
        for i, panel in enumerate(runs.panels()):
            axes: Any = plot_regret(
                runs, simulator=panel.simulator, track=panel.track, per_query=True
            )
            page.figure(
                f"queries-{i + 1}{suffix}",
                axes.flat[0].figure,
                f"Cumulative regret on {runs.title(panel)}, one panel per query. Where the "
                "order of the curves changes from panel to panel, the mean hides something.",
            )
    last = rows[rows["t"] == runs.horizon]
    keys = ["simulator", "track", "query", "policy"]
    final = last.groupby(keys, as_index=False)[["regret", "optimal_reward"]].mean()
    page.table(
        f"queries{suffix}", final, "Final regret by query, mean over runs.",
        regret=",.1f", optimal_reward=",.1f",
    )  # fmt: skip


def lower_bounds(simulator: str) -> dict[str, float]:
    """The lower bound on the regret of any consistent algorithm, as a slope in log t.

    It is known for the synthetic problem B_LB alone: dcm-bandits, Theorem 3 (with gamma = 1,
    cascading-bandits, Theorem 4).
    """
    if not simulator.startswith("B_LB("):
        return {}
    _, given = parse_call(simulator)
    p, gap, gamma = (float(given.get(key, 1.0)) for key in ("p", "gap", "gamma"))
    if not 0 < gap < p:
        return {}
    slope = dcm_lower_slope(int(given["L"]), int(given["K"]), p, gap, gamma)
    return {"lower bound": slope}


def _linear_and_log(runs: Runs, panel: Panel) -> Any:
    from matplotlib.figure import Figure

    simulator, track = panel
    policies = len(runs.curves(simulator, track=track))
    figure = Figure(figsize=(8.2, 3.4 + 0.09 * policies), layout="constrained")
    for ax, log_x in zip(figure.subplots(1, 2), (False, True), strict=True):
        plot_regret(
            runs, ax=ax, simulator=simulator, track=track, log_x=log_x,
            bounds=lower_bounds(simulator),
        )  # fmt: skip
        handles, labels = ax.get_legend_handles_labels()
        ax.get_legend().remove()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure
