"""inspect, compare, models list: looking at what is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from logeval.clicks.settings import model_names
from logeval.commands.app import app, models_app
from logeval.commands.command import Csv, Json, Latex
from logeval.commands.latex import latex_table
from logeval.commands.show import (
    print_for_programs,
    print_frame,
    print_table,
    wrapped,
)
from logeval.running.words import p_cell, with_interval

ITEM_WIDTH = 32  # characters of an item's name


@app.command()
def inspect(
    models: Annotated[Path, typer.Argument(help="Folder of fitted models.")],
    query: Annotated[
        str,
        typer.Option(help="The query: its text, or its id, as 9982, or 9982@0 with its region."),
    ],
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
    """Show one query of a fitted model: items with intervals, the best list, the lists of the log.

    Example: logeval inspect data/yandex/models/dcm --query 9982
    """
    from logeval.clicks.collection import read_models
    from logeval.clicks.inspection import inspect as look
    from logeval.log.log import load

    found = look(read_models(models), query, model=model, log=load(log) if log else None)
    found = found.named(None if as_json else ITEM_WIDTH)
    if as_json:
        frames = {n: getattr(found, n) for n in ("classes", "items", "positions", "lists")}
        names = ("model", "serps", "best", "reward", "value", "proven")
        parts = {n: json.loads(frame.to_json(orient="records")) for n, frame in frames.items()}
        rest = {n: getattr(found, n) for n in names}
        print(json.dumps({"query": found.names.query(found.query), **rest, **parts}))
        return
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
        rows = [
            (row["shown"], f"{row['share']:.1%}" if row["share"] == row["share"] else "",
             row["in_best"], between.join(map(str, row["list"])))
            for _, row in found.lists.head(top).iterrows()
        ]  # fmt: skip
        print_table(
            f"{len(rows)} of {len(found.lists):,} lists of the log, with their share of that, and "
            "the best items in them",
            ["shown", "share", "best", "list"],
            rows,
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
def compare(
    runs: Annotated[Path, typer.Argument(help="Folder that evaluate wrote.")],
    others: Annotated[Path, typer.Argument(help="Another one.")],
    as_json: Json = False,
    as_csv: Csv = False,
    as_latex: Latex = False,
) -> None:
    """Compare two folders of runs, policy by policy, on what both have.

    Example: logeval compare runs/before runs/after
    """
    from logeval.evaluation.results import Runs
    from logeval.evaluation.statistics.between import between, settings

    first, second = Runs.load(runs), Runs.load(others)
    table = between(first, second)
    differ = settings(runs, others)
    if print_for_programs(table, as_json, as_csv, settings=differ):
        return
    columns = ["simulator", "policy", "first", "second", "second - first", "p"]
    rows = [
        (
            row["simulator"],
            row["policy"],
            f"{row['first']:,.1f}",
            f"{row['second']:,.1f}",
            with_interval(row["difference"], row["low"], row["high"], "+"),
            p_cell(row["p"]),
        )
        for _, row in table.iterrows()
    ]
    title = f"Regret after {table['t'].iloc[0]:,} searches: {runs} (first), {others} (second)"
    if as_latex:  # the smaller regret is bold where the two are told apart
        apart = ((table["low"] > 0) | (table["high"] < 0)).tolist()
        smaller = (2 + (table["second"] < table["first"])).tolist()
        bold = [(r, c) for r, c in enumerate(smaller) if apart[r]]
        print(latex_table(title, columns, rows, bold))
        return
    print_table(title, columns, rows)
    if len(table) > 1:
        print(wrapped(f"intervals (95%) and p hold for all {len(table)} rows together"))
    for line in differ or ["the settings are the same"]:
        print(wrapped(line))


@models_app.command("list")
def list_models(as_json: Json = False, as_csv: Csv = False) -> None:
    """List the click models: estimators (the default first), options, rewards, source.

    Example: logeval models list --json
    """
    import inspect as python

    import pandas as pd

    from logeval.clicks.models.registry import MODELS

    rows = []
    for name, kind in MODELS.items():
        options = [f"{key}={'|'.join(values)}" for key, values in kind.OPTIONS.items()]
        about = (python.getdoc(kind) or "").splitlines()[0]
        module = python.getdoc(python.getmodule(kind)) or ""
        rows.append(
            {
                "model": name,
                "methods": ", ".join(kind.methods),
                "options": ", ".join(options),
                "rewards": ", ".join(kind.rewards),
                "parameters": ", ".join(p.name for p in kind.PARAMETERS),
                "about": about or module.splitlines()[0],
            }
        )
    table = pd.DataFrame(rows)
    if print_for_programs(table, as_json, as_csv):
        return
    print_frame("Click models", table[["model", "methods", "options", "about"]])
