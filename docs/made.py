"""What is made of the code: ``python -m docs.made`` writes it.

The page of all commands, from their help, and the tables of policies and estimators, which stand
between ``<!-- made: NAME -->`` and ``<!-- end -->``. ``outputs`` says what commands print: tests
compare the tutorial with it.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import shlex
import tempfile
from pathlib import Path

import typer

from logeval.cli import app
from logeval.policies.registry import POLICIES, catalogue
from logeval.replay import estimators as replay
from tests.references import REFERENCES

DOCS = Path(__file__).parent

COMMANDS = """\
logeval generate log.tsv.gz --sessions 3000 --queries 50 --seed 1
logeval ingest log.tsv.gz --out log
logeval describe log --top 3
logeval models
logeval policies --track rank1
logeval fit-models log -m dcm -m pbm --top-queries 3 --holdout 0.1 --out models
logeval inspect models --query 1 --model pbm --top 5
logeval compare-models log -m dcm -m pbm -m dctr --top-queries 3
logeval score models log --known-queries
logeval evaluate models --policy dcmKL-UCB --policy RankedExp3 --horizon 500 --runs 3 --out runs/a
logeval evaluate models --policy dcmKL-UCB --policy UCB1 --horizon 500 --runs 3 --out runs/b
logeval export models --propensities --model pbm
logeval export models --propensities --model pbm --from swaps
logeval export models --judgments qrels --out dcm.qrels
"""


def commands_of(command=None, name=""):
    """Name, help and example of every command, in the order of ``--help``."""
    command = command or typer.main.get_command(app)
    if hasattr(command, "commands"):
        for part, child in command.commands.items():
            yield from commands_of(child, f"{name} {part}".strip())
        return
    about, _, example = inspect.cleandoc(command.help or "").partition("Example:")
    yield name, " ".join(about.split()), " ".join(example.split())


def commands():
    """docs/commands.md."""
    yield "# Commands\n"
    yield "Made by `python -m docs.made`. `logeval COMMAND --help`"
    yield "lists the options.\n"
    for name, about, example in commands_of():
        yield f"## logeval {name}\n\n{about}\n\n```\n{example}\n```\n"


def outputs(lines):
    """Every command and what it prints, in an empty folder, one after the other."""
    with tempfile.TemporaryDirectory(prefix="logeval-") as folder, contextlib.chdir(folder):
        for line in lines:
            text = io.StringIO()
            with (
                contextlib.redirect_stdout(text),
                contextlib.redirect_stderr(io.StringIO()),
                contextlib.suppress(SystemExit),
            ):
                app(shlex.split(line)[1:], prog_name="logeval")
            yield line, text.getvalue().rstrip()


def estimators():
    """The table of estimators."""
    yield "| estimator | rho | holds when | paper |\n|---|---|---|---|"
    for name, kind in replay.estimators().items():
        yield f"| {name} | {kind.RHO} | {kind().assumes} | {kind.PAPER} |"


def policies():
    """The table of policies, of what stands at the head of each class."""
    yield "| policy | what it does | paper | parameters | kernel |\n|---|---|---|---|---|"
    for row in catalogue():
        name, about = row["policy"], row["about"].replace("``", "`")
        given = ", ".join(f"`{option}`" for option in row["options"].split(", ") if option)
        pseudocode = Path(inspect.getfile(REFERENCES[name])).name
        paper = f"[{row['paper'] or 'pseudocode'}](../tests/references/{pseudocode})"
        kernel = f"`policies/{Path(inspect.getfile(POLICIES[name])).name}`"
        cells = (name, about, paper, given, kernel)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


TABLES = {"replay.md": estimators, "policies.md": policies}


def page(name):
    """A page with its table made anew."""
    make = TABLES[name]
    mark = f"<!-- made: {make.__name__} -->\n"
    before, _, rest = (DOCS / name).read_text().partition(mark)
    return before + mark + "\n".join([*make(), "<!-- end -->"]) + rest.partition("<!-- end -->")[2]


def markdown():
    """The page of all commands."""
    return "\n".join(commands())


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    (DOCS / "commands.md").write_text(markdown() + "\n")
    for name in TABLES:
        (DOCS / name).write_text(page(name))
