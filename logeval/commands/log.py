"""generate, ingest, describe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from logeval.commands.options import Overwrite, Quiet, Scheduler
from logeval.errors import LogevalError


def register(app: typer.Typer) -> None:
    """Add the commands of this stage."""
    app.command("generate", short_help="Write a synthetic log.")(generate)
    app.command("ingest", short_help="Raw log -> table of SERPs.")(ingest)
    app.command("describe", short_help="What a log holds.")(describe)


def generate(
    out: Annotated[Path, typer.Argument(help="The log to write: .tsv, .tsv.gz or .tsv.zst.")],
    format: Annotated[
        str, typer.Option(help="yandex-personalized or yandex-relpred.")
    ] = "yandex-personalized",
    sessions: Annotated[int, typer.Option(help="Number of sessions.")] = 50_000,
    queries: Annotated[int, typer.Option(help="Number of distinct queries.")] = 1_000,
    model: Annotated[
        str, typer.Option(help="Model of the clicks: cm, dcm, sdbn, dbn, ccm, pbm or ubm.")
    ] = "dcm",
    users: Annotated[
        int | None, typer.Option(help="Number of users; default: one for every six sessions.")
    ] = None,
    taste: Annotated[
        float, typer.Option(help="How much users differ in what attracts them; 0: not at all.")
    ] = 0.0,
    factors: Annotated[int, typer.Option(help="Dimensions of their tastes.")] = 5,
    explore: Annotated[
        float, typer.Option(help="Share of SERPs whose list is in random order.", min=0, max=1)
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Root of all random numbers.")] = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write a synthetic log that resembles the real one, and its true click models beside it.

    Example: logeval generate out.tsv.gz --format yandex-personalized --sessions 50000 --seed 1
    """
    from logeval.synthetic.generate import generate as run

    truth = run(
        out,
        format=format,
        sessions=sessions,
        queries=queries,
        model=model,
        users=users,
        taste=taste,
        factors=factors,
        explore=explore,
        seed=seed,
        overwrite=overwrite,
        quiet=quiet,
    )
    print(f"log           {out}\ntrue models   {truth}")


def ingest(
    logs: Annotated[
        list[str], typer.Argument(help="Log files: plain, .gz or .zst; - is standard input.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the table.")],
    format: Annotated[
        str, typer.Option(help="auto, yandex-personalized, yandex-relpred or table.")
    ] = "auto",
    max_bad: Annotated[
        float, typer.Option(min=0, max=1, help="Share of lines that may be rejected.")
    ] = 0.01,
    workers: Annotated[
        int | None, typer.Option(min=1, max=8, help="Threads; by default one per core.")
    ] = None,
    map: Annotated[
        list[str] | None,
        typer.Option("--map", help="For tables: our column=yours, as query_id=qid; repeatable."),
    ] = None,
    scheduler: Scheduler = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Parse search logs into a Parquet table of SERPs; count what is kept and what is dropped.

    Example: logeval ingest train.gz --out data/yandex
    """
    from logeval.commands.show import print_table
    from logeval.log.ingest import ingest as run

    log = run(
        logs,
        out,
        format=format,
        max_bad=max_bad,
        workers=workers,
        overwrite=overwrite,
        column_map=_pairs(map or []),
        scheduler=scheduler,
        quiet=quiet,
    )
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
    print_table(f"{out}: {', '.join(sorted(set(log.manifest['formats'])))}", ["", "count"], rows)


def describe(
    log: Annotated[Path, typer.Argument(help="An ingested log.")],
    top: Annotated[int, typer.Option(min=1, help="How many of the most frequent queries.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, for programs.")] = False,
    figure: Annotated[
        Path | None, typer.Option(help="Also draw CTR by rank and the query frequencies here.")
    ] = None,
) -> None:
    """Show what a log holds: totals, CTR by rank, clicks per SERP, the most frequent queries.

    Example: logeval describe data/yandex --figure log.png
    """
    from logeval.commands.show import print_frame, print_table
    from logeval.log.log import load

    found = load(log).describe(top)
    if as_json:
        print(json.dumps(found.to_dict(), indent=1))
    else:
        print_table(str(log), ["", "count"], list(found.totals.items()))
        print_frame("CTR by rank", found.ctr_by_rank)
        print_frame("Clicked results per SERP", found.clicks_per_serp)
        print_frame(f"The {len(found.top_queries)} most frequent queries", found.top_queries)
    if figure:
        from logeval.reports.figures import save_figure
        from logeval.reports.log_figures import plot_log

        save_figure(plot_log(found)[0].figure, figure)
        if not as_json:
            print(f"figure   {figure}")


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        ours, sign, theirs = text.partition("=")
        if not (ours and sign and theirs):
            raise LogevalError(f"--map {text}: write it as our column=yours, as query_id=qid")
        pairs[ours] = theirs
    return pairs
