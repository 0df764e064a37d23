"""``python -m reproduction [list|all|dcm-3b --scale 0.1]``: published experiments again."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import fields
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from logeval import LogevalError
from logeval.log.log import load
from reproduction import page
from reproduction.data import experiments, named
from reproduction.run import NEEDS_LOG, Asked, Outcome, run_all, run_one


def main(arguments: list[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    options = {f.name: getattr(given, f.name) for f in fields(Asked)}
    if given.experiment == "list":
        _show(page.listed(list(experiments().values())))
        return
    try:
        outcomes = _run(given.experiment, Asked(**options))
    except LogevalError as error:
        sys.exit(f"error: {error}")
    if given.json:
        print(json.dumps([row for outcome in outcomes for row in page.rows_of(outcome)]))
    for one in () if given.json else outcomes:
        _show("\n\n".join(page.section(one)))
    if given.write:
        page.write(outcomes)


def _parser() -> argparse.ArgumentParser:
    about = "Run published experiments again: ours beside the published, and a verdict."
    parser = argparse.ArgumentParser("python -m reproduction", description=about)
    add = parser.add_argument
    add("experiment", nargs="?", default="list", help="one as dcm-3c; list; all")
    add(
        "--log",
        dest="logs",
        action="append",
        type=Path,
        default=[],
        help="an ingested log; several with all",
    )
    add("--scale", type=float, default=1.0, help="a part of the size: fewer runs, then steps")
    add("--horizon", type=int, help="steps; default: the paper's")
    add("--runs", type=int, help="runs; default: the paper's")
    add("--workers", type=int, default=1, help="processes on this machine")
    add("--seed", type=int, default=0)
    add("--out", type=Path, help="folder of runs and models; an unfinished one goes on")
    add("--write", action="store_true", help="write results.csv and docs/reproduction.md")
    add("--json", action="store_true", help="all columns, for programs")
    add("--quiet", "-q", action="store_true", help="no progress")
    return parser


def _run(name: str, asked: Asked) -> list[Outcome]:
    if name != "all":
        experiment = named(name)
        if len(asked.logs) > 1:
            raise LogevalError("one experiment runs on one log; give several with all")
        return [run_one(experiment, next(iter(asked.logs), None), asked)]
    if asked.out is None:
        raise LogevalError("all of them take long: give --out FOLDER, so that it can go on later")
    if not asked.logs:
        raise LogevalError(f"all of them need {NEEDS_LOG.format(': give one')}")
    for log in asked.logs:
        load(log)  # before the long part
    found = []
    for outcome in run_all(experiments().values(), asked):
        found.append(outcome)
        if not asked.quiet:
            print(f"{outcome.name}: {outcome.refused or 'done'}", file=sys.stderr)
    place = {name: i for i, name in enumerate(experiments())}
    return sorted(found, key=lambda outcome: place[outcome.experiment.name])


def _show(text: str) -> None:
    Console().print(Markdown(text))


if __name__ == "__main__":
    main()
