"""Sections on all queries together: verdict with its forest plot, curves, tables, tracks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.relative import relative_curves
from logeval.evaluation.statistics.summary import is_oracle
from logeval.policies.names import parse_call
from logeval.reports.charts import forest, line_chart
from logeval.reports.content import Content
from logeval.reports.figures import new_panels
from logeval.reports.limits import flattens
from logeval.reports.page import Page
from logeval.reports.regret_figures import plot_regret
from logeval.reports.track_figures import LINES, plot_relative, plot_remaining
from logeval.reports.verdict import verdict
from logeval.reports.words import interval, joined, number, p_value, query_names
from logeval.tracks.keys import Panel
from logeval.tracks.registry import TRACKS

# how numbers are shown where all columns are
FORMATS: dict[str, Any] = {
    **dict.fromkeys(("relative_regret", "share_of_optimum", "optimal_steps"), ".2%"),
    **dict.fromkeys(("regret", "low", "high", "stderr"), ",.1f"),
    **dict.fromkeys(("difference", "difference_low", "difference_high"), "+,.1f"),
    "p": ".4f",
}
BANDS = 5  # policies whose bands can be told apart in one chart
ASSUMED = "Oracle(order=assumed)"
CURVES = 12  # that can be told apart
SHARES: dict[str, Any] = dict.fromkeys(("relative_regret", "low", "high"), ".2%")


def the_verdict(page: Page, content: Content) -> None:
    """The answer in words, and the paired differences that it rests on."""
    for i, runs in enumerate(content.runs):
        page.section("Verdict" + content.where(i))
        found = verdict(runs)
        page.verdict(found.answer, found.findings, found.limits)
        summary = runs.summary()
        charts = []
        for panel in runs.panels():
            part = _of(summary, panel)
            rows = list(part[~part["policy"].map(is_oracle)].itertuples())
            if len(rows) > 1:
                best: Any = rows[0]
                title = f"{runs.title(panel)}: difference to {best.policy}"
                charts.append(forest(rows[1:], str(best.policy), title))
        if charts:
            page.charts(
                f"differences{content.suffix(i)}",
                charts,
                "Regret of each policy minus that of the best one, paired over queries (or the "
                "runs of a single one), with 95% intervals that hold for all pairs of policies of "
                "a simulator at once. An interval that leaves 0 out tells the two apart.",
            )


def curves(page: Page, content: Content) -> None:
    """Regret over time; on a logarithmic axis too where curves flatten."""
    for i, runs in enumerate(content.runs):
        page.section("Regret over time" + content.where(i))
        charts, flat, banded = [], False, False
        for panel in runs.panels():
            found = _worst_first(runs.curves(panel.simulator, track=panel.track))
            bands = len(found) <= BANDS
            banded |= bands
            bounds = _bounds(panel, next(iter(found.values()))["t"].to_numpy())
            every, name = found | bounds, runs.title(panel)
            dotted = [*bounds, *([ASSUMED] if ASSUMED in found and len(found) > 1 else [])]
            charts.append(line_chart(every, name, dotted=dotted, bands=bands))
            if flattens(found):
                flat = True
                title = f"{name}, log steps"
                charts.append(line_chart(every, title, dotted=dotted, bands=bands, log_x=True))
        text = (
            f"Cumulative regret on {joined([runs.title(p) for p in runs.panels()])}: expected "
            "reward lost so far against always showing the best list or pair; lower is better, and "
            "a curve that flattens has learned."
        )
        text += (
            " Bands are 95% intervals at each step."
            if banded
            else f" With more than {BANDS} policies bands would cover each other; the intervals "
            "are in the table."
        )
        if ASSUMED in set(runs.table()["policy"]):
            text += (
                f" {ASSUMED} is the best list in the assumed order: the best items from the first "
                "position down. No policy that assumes this order can stay below it for long."
            )
        if flat:
            text += " On the logarithmic axis logarithmic regret is a straight line."
        page.charts(f"regret{content.suffix(i)}", charts, text, pdf=_figure(runs))


def final_tables(page: Page, content: Content) -> None:
    """The policies at the horizon, a table for each simulator and track; all pairs."""
    for i, runs in enumerate(content.runs):
        page.section("Final regret" + content.where(i))
        summary, suffix = runs.summary(), content.suffix(i)
        for k, panel in enumerate(runs.panels()):
            part = _of(summary, panel)
            page.table(
                f"summary-{k + 1}{suffix}",
                part.drop(columns=["simulator", "track"]),
                f"{runs.title(panel)}, after {runs.horizon:,} steps: regret with its 95% interval, "
                "paired difference to the best policy with interval and p that hold for all pairs "
                "together, and the share of the optimal reward that was earned.",
                shown=_seven(part),
                **FORMATS,
            )
        pairs = runs.pairs()
        if len(pairs) > 1:
            both = pairs["better"] + " before " + pairs["worse"]
            page.table(
                f"pairs{suffix}",
                pairs,
                "All pairs of policies",
                shown={
                    "simulator": [(s, None) for s in pairs["simulator"]],
                    "pair": [(b, None) for b in both],
                    "difference": _numbers(pairs["difference"]),
                    "95% interval": _intervals(pairs["low"], pairs["high"]),
                    "p": _p(pairs["p"]),
                    "ratio on a typical query": _numbers(pairs["ratio"]),
                    "its p": _p(pairs["ratio_p"]),
                },
                folded=True,
            )


def across_tracks(page: Page, content: Content) -> None:
    """Lists and pairs on one axis, what elimination has left, how hard the queries are."""
    for i, runs in enumerate(content.runs):
        rows, suffix = runs.table(), content.suffix(i)
        left = sorted(set(rows["simulator"][rows["rows_left"].notna()]))
        groups = rows.groupby("simulator")["track"].nunique()
        several = [str(simulator) for simulator in groups.index[groups > 1]]
        if not several and not left:
            continue
        page.section("Lists and pairs on one axis" + content.where(i))
        for k, simulator in enumerate(several):
            page.charts(
                f"relative-{k + 1}{suffix}",
                [_relative_chart(runs, simulator)],
                f"Regret on {simulator} as a share of the optimal reward, so that lists and single "
                "pairs compare. The label says what is counted: the list, the pair at its most "
                "examined position (top pair), or the pair of the rank-1 track.",
                pdf=plot_relative(runs, simulator).figure,
            )
        if several:
            page.table(
                f"relative{suffix}",
                runs.relative(),
                "The same at the last step, with 95% intervals.",
                **SHARES,
            )
        for k, simulator in enumerate(left):
            if not _eliminated(runs, simulator):
                page.text(f"Nothing was eliminated on {simulator} in {runs.horizon:,} steps.")
                continue
            page.figure(
                f"remaining-{k + 1}{suffix}",
                plot_remaining(runs, simulator).figure,
                f"Items (rows) and positions (columns) that elimination has left on {simulator}, "
                "on average. A policy has found the best pair when one of each remains.",
            )
        _hardness(page, runs, suffix)


def _hardness(page: Page, runs: Runs, suffix: str) -> None:
    """mu, p_max and gamma; the bound in words where it says nothing."""
    hardness = runs.hardness()
    if hardness.empty:
        return
    names = query_names(list(hardness["query"].unique()))
    place = {query: i for i, query in enumerate(names)}
    hardness = hardness.sort_values("query", key=lambda q: q.map(place), kind="stable")
    vacuous = hardness["bound"] > hardness["n"]
    text = (
        "How hard the rank-1 problem of each query is (mu, p_max and gamma of the Rank1ElimKL "
        "paper, equations 3 to 5)."
    )
    if vacuous.all():
        text += (
            f" Theorem 1's bound on the regret of Rank1ElimKL is at least "
            f"{hardness['bound'].min():,.3g}, more than the {runs.horizon:,} steps could cost: it "
            "says nothing here."
        )
    elif vacuous.any():
        text += f" Theorem 1's bound says nothing for {vacuous.sum()} queries (above the horizon)."
    columns = ["simulator", "query", "rows", "columns", "mu", "p_max", "gamma"]
    if not vacuous.all():
        columns = ["query", "rows", "columns", "mu", "p_max", "gamma", "bound"]
    said = hardness.assign(bound=hardness["bound"].where(~vacuous))
    shown = {c.replace("_", " "): _cells(said[c]) for c in columns}
    page.text(text)
    caption = "Hardness of each query"
    page.table(f"hardness{suffix}", hardness, caption, shown=shown, folded=True, bound=",.3g")


def _relative_chart(runs: Runs, simulator: str) -> str:
    rows = runs.table()
    found = relative_curves(rows[rows["simulator"] == simulator])
    found = dict(sorted(found.items(), key=lambda c: -float(c[1]["relative_regret"].iloc[-1])))
    if len(found) > CURVES:  # those that earn the same: the pair at the most examined position
        found = {key: curve for key, curve in found.items() if key[1] != "list"}
    curves = {f"{policy}: {reward}": curve for (policy, reward), curve in found.items()}
    return line_chart(
        curves, simulator, value="relative_regret", y_label="regret / optimal reward", width=560,
        height=330, bands=len(curves) <= BANDS,
        dashed=[f"{p}: {reward}" for p, reward in found if LINES[reward] == "--"],
    )  # fmt: skip


def _eliminated(runs: Runs, simulator: str) -> bool:
    """Whether something was."""
    left = [c[["rows_left", "columns_left"]] for c in runs.remaining(simulator).values()]
    return any((part.iloc[-1] < part.iloc[0]).any() for part in left)


def _seven(part: pd.DataFrame) -> dict[str, list[tuple[str, Any]]]:
    """The columns that decide."""
    return {
        "policy": [(p, None) for p in part["policy"]],
        "regret": _numbers(part["regret"]),
        "95% interval": _intervals(part["low"], part["high"]),
        "to the best": [
            ("best", 0.0) if abs(v) < 1e-9 else (number(v, "+"), v) for v in part["difference"]
        ],
        "its 95% interval": _intervals(part["difference_low"], part["difference_high"]),
        "p": _p(part["p"]),
        "of the optimum": [(f"{v:.1%}", v) for v in part["share_of_optimum"]],
    }


def _numbers(values: pd.Series, sign: str = "") -> list[tuple[str, Any]]:
    return [(number(v, sign), v) if v == v else ("", None) for v in values]


def _intervals(low: pd.Series, high: pd.Series) -> list[tuple[str, Any]]:
    ends = zip(low, high, strict=True)
    return [(interval(a, b), a) if a == a and (a, b) != (0, 0) else ("", None) for a, b in ends]


def _p(values: pd.Series) -> list[tuple[str, Any]]:
    return [
        (p_value(p).removeprefix("p = ").removeprefix("p "), p if p == p else None) for p in values
    ]


def _cells(column: pd.Series) -> list[tuple[str, Any]]:
    from logeval.reports.page import cell

    return [
        (cell(v), v if isinstance(v, int | float) and cell(v) else None) for v in column.tolist()
    ]


def _of(table: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    return table[(table["simulator"] == panel.simulator) & (table["track"] == panel.track)]


def lower_bounds(panel: Panel) -> dict[str, float]:
    """The lower bound on the regret of any consistent algorithm, as a slope in log t, if known."""
    slope_of = TRACKS[panel.track].lower_slopes.get(parse_call(panel.simulator)[0])
    slope = None if slope_of is None else slope_of(panel.simulator)
    return {} if slope is None else {"lower bound": slope}


def _worst_first(curves: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """In the order in which they end, from top to bottom."""
    return dict(sorted(curves.items(), key=lambda item: -float(item[1]["regret"].iloc[-1])))


def _bounds(panel: Panel, t: np.ndarray) -> dict[str, pd.DataFrame]:
    return {
        name: pd.DataFrame({"t": t, "regret": slope * np.log(t)})
        for name, slope in lower_bounds(panel).items()
    }


def _figure(runs: Runs) -> Any:
    """The curves by matplotlib, for papers."""
    figure, axes = new_panels(len(runs.panels()))
    for ax, panel in zip(axes, runs.panels(), strict=True):
        bounds = lower_bounds(panel)
        plot_regret(runs, ax=ax, simulator=panel.simulator, track=panel.track, bounds=bounds)
    return figure
