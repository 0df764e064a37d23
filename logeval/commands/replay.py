"""``logeval replay``: estimate, policy, validate."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logeval.commands.command import command
from logeval.commands.show import Json, print_for_programs, print_frame
from logeval.replay.stages import ReplayEstimate, ReplayPolicy, ReplayValidate
from logeval.stage import Stage

if TYPE_CHECKING:
    import pandas as pd

    from logeval.replay.estimate import Estimates
    from logeval.replay.policy import PolicyReplay
    from logeval.replay.validate import Validation
    from logeval.reports.answers.checks import Answer


@command(ReplayEstimate, figures=["estimates.png"])
def show_estimates(found: Estimates, asked: ReplayEstimate, *, as_json: Json = False) -> None:
    """The estimates of each target, over all queries and by query."""
    from logeval.log.names import WIDTH, Names

    answer, names = found.verdict().text(), Names.of(found.manifest)
    if as_json:  # as they are stored, to the last digit
        table = names.shown(found.table)
        rows = table.astype(object).where(table.notna(), None)
        print(json.dumps({"verdict": answer, "rows": rows.to_dict(orient="records")}))
    else:
        for name, rows in found.table.groupby("target", sort=False):
            K, placed = rows["positions"].iloc[0], found.manifest.get("holds") == "placements"
            overall, by_query = (rows[rows["query"].isna() == each] for each in (True, False))
            unit = "placement" if placed else f"SERP at K = {K}"
            print_frame(f"{name}, clicks per {unit}", _estimates(overall, False))
            if by_query["query"].nunique() > 1:
                print_frame(f"{name}, by query", _estimates(names.shown(by_query, WIDTH), True), 2)
            if overall["reward"].notna().any():
                print_frame(f"{name}, second reward per {unit}", _rewards(overall))
        print(answer)
    _save(found.plot, asked, "estimates.png")


@command(ReplayPolicy, figures=["replays.png"])
def show_replays(found: PolicyReplay, asked: ReplayPolicy, *, as_json: Json = False) -> None:
    """What each policy earned on the SERPs that it accepted."""
    summary = found.summary()
    shown = type(summary)(
        {
            "policy": summary["policy"],
            "clicks per\nsearch": summary["clicks_per_step"],
            "95% interval": _intervals(summary, "low", "high"),
            "after\nsearches": summary["common_t"],
            "accepted": summary["acceptance"].map("{:.1%}".format),
            "exhausted": summary["exhausted"].map("{:.0%}".format),
        }
    )
    title = f"Clicks per accepted search, over {len(found.covered())} queries"
    _show(summary if as_json else shown, title, as_json, found.verdict())
    _save(found.plot, asked, "replays.png")


@command(ReplayValidate, figures=["validation.png", "clips.png"])
def show_validation(found: Validation, asked: ReplayValidate, *, as_json: Json = False) -> None:
    """The error of each estimator, and which to use."""
    from logeval.reports.figures.models import plot_clips

    shown = found.table[found.table["clip"].isna()].drop(columns=["clip"])
    shown = shown.rename(columns={"positions": "K"})
    columns = ["K", "estimator", *(c for c in shown.columns if c not in ("K", "estimator"))]
    title = "Error of the predicted clicks per search (RMSE), the clip chosen on the other parts"
    frame = found.table if as_json else shown[columns]
    _show(frame, title, as_json, found.verdict(), keys=2)
    _save(found.plot, asked, "validation.png")
    _save(lambda: plot_clips(found), asked, "clips.png")


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
            "estimator": rows["estimator"],
            "value": rows["reward"],
            "95% interval": _intervals(rows, "reward_low", "reward_high"),
            "in the log": rows["reward_logged"],
            "to the log": ["" if d != d else f"{d:+.4f}" for d in rows["reward_difference"]],
            "its 95% interval": _intervals(rows, "reward_difference_low", "reward_difference_high"),
        }
    )


def _intervals(rows: pd.DataFrame, low: str, high: str) -> list[str]:
    pairs = zip(rows[low], rows[high], strict=True)
    return ["" if a != a else f"{a:.4f} .. {b:.4f}" for a, b in pairs]


def _show(frame: pd.DataFrame, title: str, as_json: bool, answer: Answer, keys: int = 1) -> None:
    if print_for_programs(frame, as_json, False, verdict=answer.text()):
        return
    print_frame(title, frame, keys)
    print(answer.text())


def _save(plot: Callable[[], Any], asked: Stage[Any], name: str) -> None:
    if asked.out is not None:
        from logeval.reports.figures.canvas import figure_beside

        print(f"figure {figure_beside(plot().figure, asked.out, name)}", file=sys.stderr)
