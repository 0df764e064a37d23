"""generate, ingest, describe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logeval.commands.app import app
from logeval.commands.command import Json, command
from logeval.commands.show import print_frame, print_table
from logeval.log.ingest import Ingest
from logeval.running.words import joined
from logeval.synthetic.generate import Generate

if TYPE_CHECKING:
    from logeval.log.log import Log


@command(Generate, short_help="Write a synthetic log.")
def show_truth(truth: Path, asked: Generate) -> None:
    """Where everything is."""
    print(f"log           {asked.out}\ntrue models   {truth}")


@command(Ingest, short_help="Raw log -> table of SERPs.")
def show_counts(log: Log, asked: Ingest) -> None:
    """What was read, kept and dropped."""
    counts = log.counts
    rows: list[tuple[str, object]] = []
    if "lines" in counts:
        rows += [
            ("lines read", counts["lines"]),
            ("  metadata", counts["metadata"]),
            ("  queries (SERPs)", counts["queries"]),
            ("  clicks, first on a result", counts["clicks_matched"]),
            ("  clicks, repeated", counts["clicks_repeat"]),
            ("  clicks, orphan", counts["clicks_orphan"]),
            ("  rejected (rejects.tsv)", counts["rejected"]),
        ]
    if "rows" in counts:
        rows += [("rows read from tables", counts["rows"])]
    rows += [("test SERPs among the queries", counts["test_queries"])]
    print_table(
        f"{asked.out}: {', '.join(sorted(set(log.manifest['formats'])))}", ["", "count"], rows
    )


@app.command(short_help="What a log holds.")
def describe(
    log: Annotated[Path, typer.Argument(help="An ingested log.")],
    top: Annotated[int, typer.Option(min=1, help="How many of the most frequent queries.")] = 20,
    as_json: Json = False,
    figure: Annotated[
        Path | None, typer.Option(help="Also draw CTR by rank and the query frequencies here.")
    ] = None,
) -> None:
    """Show what a log holds: totals, CTR by rank, clicks per SERP, the most frequent queries.

    Example: logeval describe data/yandex --figure log.png
    """
    from logeval.log.log import load

    found = load(log).describe(top)
    if as_json:
        print(json.dumps(found.to_dict(), indent=1))
    else:
        counted = [(name, n) for name, n in found.totals.items() if n is not None]
        print_table(str(log), ["", "count"], counted)
        if absent := [name for name, n in found.totals.items() if n is None]:
            print(f"The log does not say: {joined(absent)}.\n")
        print_frame("CTR by rank", found.ctr_by_rank)
        print_frame("Clicked results per SERP", found.clicks_per_serp)
        print_frame(f"The {len(found.top_queries)} most frequent queries", found.top_queries)
    if figure:
        from logeval.reports.figures.canvas import save_figure

        save_figure(found.plot()[0].figure, figure)
        if not as_json:
            print(f"figure   {figure}")
