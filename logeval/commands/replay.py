"""``logeval replay``: estimate, policy, validate."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logeval.commands.command import command
from logeval.commands.show import Details, Json, print_answer, print_for_programs, print_frame
from logeval.replay.stages import ReplayEstimate, ReplayPolicy, ReplayValidate
from logeval.stage import Stage

if TYPE_CHECKING:
    import pandas as pd

    from logeval.replay.estimate import Estimates
    from logeval.replay.policy import PolicyReplay
    from logeval.replay.validate import Validation


@command(ReplayEstimate, figures=["estimates.png"])
def show_estimates(
    found: Estimates, asked: ReplayEstimate, *, details: Details = False, as_json: Json = False
) -> None:
    """A row per target, by the estimator to believe; with details by all of them, and by query."""
    import pandas as pd

    from logeval.log.names import WIDTH, Names
    from logeval.reports.answers.replay import TARGETS, targets

    answer, names = found.verdict(), Names.of(found.manifest)
    if not print_for_programs(names.shown(found.table), as_json, facts=answer.records()):
        K, placed = found.table["positions"].iloc[0], asked.placed
        unit = "per placement" if placed else f"at K = {K}"
        rows = pd.DataFrame(targets(found), columns=TARGETS)
        rows = rows.loc[:, (rows != "").any()]  # a ranker that is no log has no clicks of its own
        columns, cells = rows.columns.tolist(), rows.to_numpy().tolist()
        print_answer(answer, f"Clicks {unit}", columns, cells, details)
        if found.table["reward"].notna().any():
            print_frame(f"Second reward {unit}", _rewards(found.overall()), 2)
        for name, rows in found.table.groupby("target", sort=False) if details else ():
            overall, by_query = (rows[rows["query"].isna() == each] for each in (True, False))
            print_frame(f"{name}, by estimator", _estimates(overall, False))
            print_frame(f"{name}, by query", _estimates(names.shown(by_query, WIDTH), True), 2)
    _save(found.plot, asked, "estimates.png")


@command(ReplayPolicy, figures=["replays.png"])
def show_replays(
    found: PolicyReplay, asked: ReplayPolicy, *, details: Details = False, as_json: Json = False
) -> None:
    """What each policy earned on the SERPs that it accepted."""
    summary, answer = found.summary(), found.verdict()
    columns: dict[str, Any] = {
        "policy": summary["policy"],
        "clicks per\nsearch": summary["clicks_per_step"],
        "95% interval": _intervals(summary, "low", "high"),
        "after\nsearches": summary["common_t"],
        "accepted": summary["acceptance"].map("{:.1%}".format),
        "exhausted": summary["exhausted"].map("{:.0%}".format),
    }
    title = f"Clicks per accepted search, over {len(found.covered())} queries"
    if not print_for_programs(summary, as_json, facts=answer.records()):
        rows = zip(*columns.values(), strict=True)
        print_answer(answer, title, [*columns], rows, details)
    _save(found.plot, asked, "replays.png")


@command(ReplayValidate, figures=["validation.png"])
def show_validation(
    found: Validation, asked: ReplayValidate, *, details: Details = False, as_json: Json = False
) -> None:
    """The error of each estimator, and which to use."""
    answer, table = found.verdict(), found.table[found.table["clip"].isna()]
    title = "Error of the predicted clicks per search (RMSE); floor: what chance alone makes"
    if not print_for_programs(found.table, as_json, facts=answer.records()):
        shown = ["positions", "estimator", "rmse", "low", "high", "floor", "support"]
        slopes = zip(table["slope"], table["slope_low"], table["slope_high"], strict=True)
        of_lists = ["" if b != b else f"{b:.2f} [{low:.2f}, {high:.2f}]" for b, low, high in slopes]
        rows = table[shown].assign(slope=of_lists).astype(object).to_numpy().tolist()
        print_answer(answer, title, ["K", *shown[1:], "slope [95%]"], rows, details, 2)
        if details:
            first = ["positions", "estimator"]
            print_frame("", table[[*first, *(c for c in table if c not in (*first, "clip"))]], 2)
    _save(found.plot, asked, "validation.png")


def _estimates(rows: pd.DataFrame, by_query: bool) -> pd.DataFrame:
    shown: dict[str, Any] = {"query": rows["query"]} if by_query else {}
    shown |= {
        "estimator": rows["estimator"],
        "value": rows["value"],
        "95% interval": _intervals(rows, "low", "high"),
    }
    if rows["truth"].notna().any():
        shown["truth"] = rows["truth"]
        shown["interval of it"] = _intervals(rows, "truth_low", "truth_high")
    shown |= {
        "to the log": ["" if d != d else f"{d:+.4f}" for d in rows["difference"]],
        "its 95% interval": _intervals(rows, "difference_low", "difference_high"),
        "P(worse)": ["" if p != p else f"{p:.0%}" for p in rows["worse"]],
        "SERPs": rows["serps"],
        **({} if by_query else {"covers": rows["covered"].map("{:.0%}".format)}),
        "support": rows["support"],
        "up to K": rows["supported_positions"],
        "effective": rows["effective_serps"],
        "clipped": rows["clipped"],
        "largest": rows["largest_weight"],
    }
    return type(rows)(shown)


def _rewards(rows: pd.DataFrame) -> pd.DataFrame:
    return type(rows)(
        {
            "target": rows["target"],
            "estimator": rows["estimator"],
            "value": rows["reward"],
            "95% interval": _intervals(rows, "reward_low", "reward_high"),
            "to the log": ["" if d != d else f"{d:+.4f}" for d in rows["reward_difference"]],
            "its 95% interval": _intervals(rows, "reward_difference_low", "reward_difference_high"),
        }
    )


def _intervals(rows: pd.DataFrame, low: str, high: str) -> list[str]:
    pairs = zip(rows[low], rows[high], strict=True)
    return ["" if a != a else f"{a:.4f} .. {b:.4f}" for a, b in pairs]


def _save(plot: Callable[[], Any], asked: Stage[Any], name: str) -> None:
    if asked.out is not None:
        from logeval.reports.figures.canvas import figure_beside

        print(f"figure {figure_beside(plot().figure, asked.out, name)}", file=sys.stderr)
