"""fit-models, compare-models, score, check-models, inspect, models, import-models, export."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logeval.clicks.fit import Fit
from logeval.clicks.quality.stages import CheckModels, CompareModels, ScoreModels
from logeval.clicks.settings import model_names
from logeval.commands.app import app
from logeval.commands.command import command
from logeval.commands.show import (
    Csv,
    Details,
    Json,
    print_answer,
    print_for_programs,
    print_frame,
    print_notes,
    print_table,
    wrapped,
)
from logeval.errors import LogevalError
from logeval.exports.export import Export
from logeval.running.console import unguarded
from logeval.running.words import with_interval

if TYPE_CHECKING:
    import pandas as pd

    from logeval.clicks.collection import FittedModels
    from logeval.clicks.inspection import Inspection
    from logeval.clicks.quality.predictive import Checks
    from logeval.clicks.quality.scores import Comparison
    from logeval.clicks.quality.value import Slope
    from logeval.exports.files import Exported

ITEM_WIDTH = 32  # characters of an item's name


@command(Fit)
def show_fit(
    models: FittedModels,
    asked: Fit,
    *,
    details: Details = False,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Which model predicts best, and a row per model."""
    from logeval.reports.answers.models import FITS, fits, of_fits, remarks

    answer, summary = of_fits(models), models.summary()
    apart = ["notes", "priors", "checks", "value", "identified", "drift"]
    plain = summary.drop(columns=apart, errors="ignore")
    more = {"out": str(asked.out), "facts": answer.records(), "notes": remarks(models)}
    if print_for_programs(plain, as_json, as_csv, **more):
        return
    print_answer(answer, f"Models in {asked.out}", FITS, fits(models), details)
    if details:
        print_frame("How they were fitted", _model_rows(summary))
        print_notes(remarks(models))
    own = "".join(
        f" --import {m.report['class']}" for m in models.fitted.values() if "class" in m.report
    )
    words = [str(asked.out), "--query", models.names.query(models.queries[0])]
    print(f"more: logeval{own} inspect {shlex.join(words)}", file=sys.stderr)


def _model_rows(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary as people read it, without what is the same for all or of no use to them."""
    shown = summary[["model", "method", "queries", "items", "serps"]].astype(object)
    if summary["dropped_items"].any():
        shown["dropped"] = summary["dropped_items"]
    steps = zip(summary["converged"], summary["iterations"], strict=True)
    shown["converged"] = [f"{c} ({i:.0f})" if isinstance(c, str) else "" for c, i in steps]
    for name in ("log_likelihood", "perplexity"):
        if name in summary:
            shown[name.replace("_", "\n")] = summary[name].astype(object)
    return shown


@command(CompareModels, figures=["perplexity.png"])
def show_comparison(comparison: Comparison, asked: CompareModels, *, as_json: Json = False) -> None:
    """The qualities, and their figure in the folder."""
    show_score(comparison, asked, as_json=as_json)
    if asked.out is not None:
        from logeval.reports.figures.canvas import figure_beside

        figure_beside(comparison.plot().figure, asked.out, "perplexity.png")
        print(f"{asked.out}: quality-*.parquet, perplexity.png", file=sys.stderr)


@command(ScoreModels)
def show_score(
    comparison: Comparison, asked: CompareModels | ScoreModels, *, as_json: Json = False
) -> None:
    """Qualities overall, against the best model, by frequency, and what was never seen."""
    if as_json:
        rows = json.loads(comparison.table.to_json(orient="records"))
        coverage = json.loads(comparison.coverage.to_json(orient="records"))
        print(json.dumps({"quality": rows, "coverage": coverage}))
        return
    overall = comparison.overall()
    measures = list(dict.fromkeys(overall.columns.get_level_values(1)))
    print_table(
        f"Quality on {comparison.scored_on}, with 95% bootstrap intervals over SERPs",
        ["model", *(measure.replace("-", "\n") for measure in measures)],
        [[m, *(_interval(overall.loc[m], measure) for measure in measures)] for m in overall.index],
    )
    table = comparison.table
    change = table[table["baseline"].notna() & (table["measure"] == "log-likelihood")]
    columns = ["model", "baseline", "value", "low", "high"]
    if len(change):
        print_frame("Log-likelihood against the best model, paired", change[columns])
    bands = comparison.by_frequency().reset_index()
    print_frame("Log-likelihood by SERPs of the query in the training part", bands)
    print_frame("What the models had never seen, as shares", comparison.coverage)


def _interval(row: Any, measure: str) -> str:
    value, low, high = (row[v, measure] for v in ("value", "low", "high"))
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"  # three of them fit 80 columns


@command(CheckModels)
def show_checks(
    checks: Checks,
    asked: CheckModels,
    *,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for the figures, one per check.")
    ] = None,
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Who clicks like the users of the log, and a row per check; figures in a folder."""
    if as_json:
        print(json.dumps(checks.rows()))
    else:
        title = "How far off, over all queries; * where chance does not explain it"
        models = list(checks.verdicts)
        print_answer(checks.verdict(), title, ["check", *models], _check_rows(checks), details)
        if details or not models:
            _print_checks(checks)
    if figures is not None:
        from logeval.reports.figures.models import save_check_figures

        paths = save_check_figures(checks, figures)
        drawn = ", ".join(path.name for path in paths) or "there is no check to draw"
        print(f"{figures}: {drawn}", file=sys.stderr)


def _check_rows(checks: Checks) -> list[list[str]]:
    """A row per check, the value of predicted lists first."""
    from logeval.clicks.quality.value import of_list

    overall = checks.table[checks.table["query"].isna()]
    slopes = {name: of_list(found) for name, found in checks.slopes.items()}
    rows = []
    if any(slopes.values()):
        rows.append(
            ["a predicted click is worth", *(_worth(slopes.get(m)) for m in checks.verdicts)]
        )
    for check, part in overall.groupby("check", sort=False):
        mine = part.set_index("model")
        rows.append([str(check), *(_cell(mine.loc[model]) for model in checks.verdicts)])
    return rows


def _print_checks(checks: Checks) -> None:
    from logeval.clicks.quality.value import LEVELS
    from logeval.log.names import shortened

    overall = checks.table[checks.table["query"].isna()]
    wrong = overall[overall["faulted"]]
    columns = ["model", "check", "worst", "observed", "expected", "low", "high", "corrected"]
    if len(wrong):
        shown = wrong[columns].assign(worst=wrong["worst"].map(shortened))
        print_frame("What is faulted, at its worst", shown, 2)
    if any(checks.slopes.values()):
        title = "What a predicted click more is worth in the log, list against list"
        rows = [[name, *map(_worth, found)] for name, found in checks.slopes.items() if found]
        print_table(title, ["model", *LEVELS], rows)
    if checks.examination is not None:
        title = "Examination relative to the first rank: from swaps, whose intervals hold for users"
        print_frame(f"{title} of a PBM, and fitted", _with_cells(checks.examination))
    if checks.truth is not None:
        print_frame("Beside the truth", checks.truth, 2)


def _worth(one: Slope | None) -> str:
    if one is None or one.slope != one.slope:
        return "-"
    return f"{one.slope:.2f} [{one.low:.2f}, {one.high:.2f}]"


def _with_cells(table: pd.DataFrame) -> pd.DataFrame:
    """A column per method, each value with its interval."""
    rest = [c for c in table.columns if c not in ("method", "examination", "low", "high")]
    shown = table.drop_duplicates("rank")[rest].reset_index(drop=True)
    for place, (method, mine) in enumerate(table.groupby("method", sort=False), 1):
        cells = [_value(row["examination"], row) for _, row in mine.iterrows()]
        shown.insert(place, str(method), cells)
    return shown


def _value(value: float, row: Any) -> str:
    return "" if value != value else f"{value:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def _cell(row: Any) -> str:
    if not row["components"]:
        return "-"
    return f"{row['error']:.3f}{'*' if row['faulted'] else ''}"


@app.command()
def inspect(
    models: Annotated[Path, typer.Argument(help="Folder of fitted models.")],
    query: Annotated[
        str | None,
        typer.Option(help="A query: its text, or its id, as 9982, or 9982@0 with its region."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Which model; default: the first.", autocompletion=model_names),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Their log; default: the one that was fitted.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many items, and how many lists.")] = 15,
    as_json: Json = False,
) -> None:
    """Show fitted models, or one query of one: items with intervals, the best list, the log's.

    Without --query, --json is all of their parameters, which import-models reads.

    Example: logeval inspect data/yandex/models/dcm --query 9982
    """
    from logeval.clicks.collection import read_models
    from logeval.clicks.inspection import inspect as look
    from logeval.log.log import load

    fitted = read_models(models)
    if query is None:
        if as_json:
            print(fitted.to_json())
        else:
            print_frame(str(models), _model_rows(fitted.summary()))
        return
    found = look(fitted, query, model=model, log=load(log) if log else None)
    found = found.named(None if as_json else ITEM_WIDTH)
    if as_json:
        frames = {n: getattr(found, n) for n in ("classes", "items", "positions", "lists")}
        names = ("model", "serps", "best", "reward", "value", "proven")
        parts = {n: json.loads(frame.to_json(orient="records")) for n, frame in frames.items()}
        rest = {n: getattr(found, n) for n in names}
        print(json.dumps({"query": found.names.query(found.query), **rest, **parts}))
    else:
        _print_query(found, top)


def _print_query(found: Inspection, top: int) -> None:
    serps = "" if found.serps is None else f", {found.serps:,} SERPs in the log"
    query = found.names.query(found.query)
    if len(found.classes):
        print_table(
            "Classes of users: their share, and clicks per search on the best list",
            *_with_intervals(found.classes),
        )
    shown = found.items.head(top).astype({"item": str})  # an id is a name, not an amount
    print_table(
        f"{found.model} of query {query}{serps}: {min(top, len(found.items))} of "
        f"{len(found.items)} items",
        *_with_intervals(shown),
    )
    if len(found.positions.columns) > 1:
        print_table("By position", *_with_intervals(found.positions))
    how = "" if found.proven else " (found by a search, not proven)"
    between = ", " if "item" in found.names.kinds else " "
    print(wrapped(f"Best list: {between.join(map(str, found.best))}"))
    print(f"its expected {found.reward}: {found.value:.4f}{how}\n")
    if len(found.lists):
        shown = found.lists.head(top)
        share = ["" if x != x else f"{x:.1%}" for x in shown["share"]]
        lists = [between.join(map(str, one)) for one in shown["list"]]
        print_table(
            f"{len(shown)} of {len(found.lists):,} lists of the log, with their share of that, and "
            "the best items in them",
            ["shown", "share", "best", "list"],
            zip(shown["shown"], share, shown["in_best"], lists, strict=True),
        )


def _with_intervals(frame: Any) -> tuple[list[str], list[list[object]]]:
    """Columns and rows, a parameter and its interval in one cell."""
    names = [n for n in frame.columns if not n.endswith(("_low", "_high"))]
    rows = [
        [
            with_interval(row[n], row[f"{n}_low"], row[f"{n}_high"])
            if f"{n}_low" in row
            else row[n]
            for n in names
        ]
        for row in frame.astype(object).to_dict("records")
    ]
    return names, rows


@app.command()
def models(as_json: Json = False, as_csv: Csv = False) -> None:
    """The click models: estimators (the default first), options, rewards, parameters.

    Example: logeval models --json
    """
    import inspect as python

    import pandas as pd

    from logeval.clicks.models.registry import kinds

    rows = []
    for name, kind in kinds().items():
        options = [f"{key}={'|'.join(values)}" for key, values in kind.OPTIONS.items()]
        about = python.getdoc(kind) or python.getdoc(python.getmodule(kind)) or ""
        row = {"model": name, "methods": kind.methods, "options": options, "rewards": kind.rewards}
        row["parameters"] = [p.name for p in kind.PARAMETERS]
        texts = {key: ", ".join(x) if key != "model" else x for key, x in row.items()}
        rows.append({**texts, "about": about.partition("\n")[0]})
    table = pd.DataFrame(rows)
    if not print_for_programs(table, as_json, as_csv):
        print_frame("Click models", table[["model", "methods", "options", "about"]])


@app.command()
def import_models(
    source: Annotated[Path, typer.Argument(help="JSON file, as inspect --json prints it.")],
    out: Annotated[Path, typer.Option(help="Folder for the models.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
) -> None:
    """Make a models folder from parameters found elsewhere.

    Example: logeval import-models paper.json --out models/paper
    """
    from logeval.clicks.collection import models_of_json

    try:
        text = source.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LogevalError(f"{source}: cannot be read as JSON ({error})") from None
    found = models_of_json(text, str(source))
    found.write(out, overwrite)
    print(f"{out}: {', '.join(f'{n} ({len(f.queries)} queries)' for n, f in found.fitted.items())}")


@command(Export)
def show_export(found: Exported, asked: Export) -> None:
    """The text itself, or where it is; what was withheld."""
    if asked.out is None:
        print(found.files[""], end="", file=unguarded(sys.stdout))
    else:
        for more in found.files:
            print(f"{asked.out}{more}")
    print(wrapped(found.words), file=sys.stderr)
