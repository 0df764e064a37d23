"""docs/output.md: what the commands print, by running them on a small synthetic log.

``python -m logeval.commands.document_output > docs/output.md``
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import tempfile
from collections.abc import Iterator

INTRODUCTION = """\
# What the commands print

Made by `python -m logeval.commands.document_output > docs/output.md`, which runs them on a small
synthetic log. Tables fit 80 columns; `--json` and `--csv` give all columns. Progress and hints go
to standard error and are not shown here.
"""

COMMANDS = """\
logeval generate log.tsv.gz --sessions 3000 --queries 50 --seed 1
logeval ingest log.tsv.gz --out log
logeval describe log --top 3
logeval models list
logeval policies --track rank1
logeval fit-models log -m dcm -m pbm --top-queries 3 --holdout 0.1 --out models
logeval inspect models --query 1 --model pbm --top 5
logeval compare-models log -m dcm -m pbm -m dctr --top-queries 3
logeval score models log --known-queries
logeval evaluate models --policy dcmKL-UCB --policy RankedExp3 --horizon 500 --runs 3 --out runs/a
logeval evaluate models --policy dcmKL-UCB --policy UCB1 --horizon 500 --runs 3 --out runs/b
logeval compare runs/a runs/b
logeval export models --propensities csv --model pbm
logeval export models --propensities csv --model pbm --from swaps
logeval export models --judgments qrels --quantiles 2 --out dcm.qrels
logeval plan models --metric clicks --positions 5 --bandit none
"""


def outputs(commands: str = COMMANDS) -> Iterator[tuple[str, str]]:
    """Every command and what it prints, in an empty folder, one after the other."""
    from logeval.cli import app

    with tempfile.TemporaryDirectory(prefix="logeval-") as folder, contextlib.chdir(folder):
        for command in commands.splitlines():
            text = io.StringIO()
            with (
                contextlib.redirect_stdout(text),
                contextlib.redirect_stderr(io.StringIO()),
                contextlib.suppress(SystemExit),
            ):
                app(shlex.split(command)[1:], prog_name="logeval")
            yield command, text.getvalue().rstrip()


def markdown() -> str:
    """The page."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    parts = [INTRODUCTION]
    parts += [f"```text\n$ {command}\n{text}\n```\n" for command, text in outputs()]
    return "\n".join(parts)


if __name__ == "__main__":
    print(markdown(), end="")
