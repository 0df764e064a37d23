"""``logeval reproduce``: the experiments of the papers again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logeval.commands.options import Csv, Json, Quiet
from logeval.commands.show import print_for_programs, print_table, wrapped
from logeval.errors import LogevalError

if TYPE_CHECKING:
    from logeval.papers.page import Told
    from logeval.papers.runner import How


def experiment_names(incomplete: str) -> list[str]:
    """The experiments whose names start so."""
    from logeval.papers.registry import EXPERIMENTS

    return [name for name in (*EXPERIMENTS, "list", "all", "page") if name.startswith(incomplete)]


def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            help="An experiment as dcm-3c; list: all their names; all: all of them; page: nothing "
            "is run, the page of what --out has.",
            autocompletion=experiment_names,
        ),
    ],
    log: Annotated[
        list[Path] | None,
        typer.Option(help="An ingested log, for those that need one; with all, several."),
    ] = None,
    scale: Annotated[
        float, typer.Option(help="A part of the paper's size: fewer runs, then fewer steps.")
    ] = 1.0,
    horizon: Annotated[int | None, typer.Option(help="Steps; default: the paper's.")] = None,
    runs: Annotated[int | None, typer.Option(help="Runs; default: the paper's.")] = None,
    workers: Annotated[int, typer.Option(help="Processes on this machine.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of runs, models and the page; an unfinished one goes on."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the page as markdown as well, to this file.")
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
    quiet: Quiet = False,
) -> None:
    """Run published experiments again: ours beside the published, and a verdict.

    `list` names them, `dcm-3b --scale 0.1` is a quick look at one of them.

    Example: logeval reproduce all --log data/yandex --workers 2 --out reproduction
    """
    from logeval.papers.runner import How

    if experiment == "list":
        _list(as_json, as_csv)
        return
    how = How(out, scale, horizon, runs, workers, seed, quiet)
    if experiment == "all":
        told = _all(log or [], how)
    elif experiment == "page":
        told = _finished(how)
    else:
        if log is not None and len(log) > 1:
            raise LogevalError("one experiment runs on one log; give several with all")
        told = _one(experiment, log[0] if log else None, how)
    _print(told, as_json, as_csv)
    _write(told, out, markdown, as_json or as_csv)


def _list(as_json: bool, as_csv: bool) -> None:
    import pandas as pd

    from logeval.papers import words

    columns, rows = words.listing()
    if not print_for_programs(pd.DataFrame(rows, columns=columns), as_json, as_csv):
        print_table("experiments", columns, rows)
        print(wrapped(words.total()))


def _one(name: str, log: Path | None, how: How) -> list[Told]:
    from logeval.papers.page import tell
    from logeval.papers.registry import named
    from logeval.papers.runner import reproduce as run

    return tell([run(named(name), log, how)])


def _all(logs: list[Path], how: How) -> list[Told]:
    from logeval.log.log import load
    from logeval.papers.page import tell
    from logeval.papers.registry import EXPERIMENTS, in_order
    from logeval.papers.runner import reproduce_all

    if how.out is None:
        raise LogevalError("reproduce all takes long: give --out, so that it can go on later")
    if not logs:
        raise LogevalError(
            "reproduce all needs an ingested log: give --log; `logeval generate` and "
            "`logeval ingest` make one"
        )
    for log in logs:
        load(log)  # before the long part
    outcomes = []
    for outcome in reproduce_all(list(EXPERIMENTS.values()), logs, how):
        outcomes.append(outcome)
        if not how.quiet:
            print(f"{outcome.name}: {outcome.refused or 'done'}", file=sys.stderr)
    return tell(in_order(outcomes))


def _finished(how: How) -> list[Told]:
    from logeval.papers.page import tell
    from logeval.papers.registry import in_order
    from logeval.papers.runner import finished

    if how.out is None or not (outcomes := list(finished(how.out, how.quiet))):
        raise LogevalError("there is nothing to show: give --out, a folder that reproduce wrote")
    return tell(in_order(outcomes))


def _print(told: list[Told], as_json: bool, as_csv: bool) -> None:
    import pandas as pd

    from logeval.papers import words
    from logeval.papers.page import NOT_PUBLISHED
    from logeval.papers.verdicts import table, verdict_of

    rows = pd.concat(
        [table(one.found).assign(experiment=one.outcome.name) for one in told if one.found],
        ignore_index=True,
    )
    summary = [words.summary_row(*one) for one in told]
    if print_for_programs(rows, as_json, as_csv, experiments=summary):
        return
    if len(told) > 1:
        print_table("experiments", words.SUMMARY, summary)
        return
    (one,) = told
    title = f"{one.title}; {words.size(one.outcome)}"
    for _, columns, lines in words.halves(one.found):
        print_table(title, columns, lines)
        title = NOT_PUBLISHED
    for line in (f"verdict: {verdict_of(one.found)}", *one.facts):
        print(wrapped(line))


def _write(told: list[Told], out: Path | None, markdown: Path | None, silent: bool) -> None:
    from logeval.papers.page import write_markdown, write_page

    files = []
    if out is not None:
        files.append(write_page(told, out / "page"))
    if markdown is not None:
        files.append(write_markdown(told, markdown))
    for file in files:
        print(f"page {file}", file=sys.stderr if silent else sys.stdout)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reproduce)
