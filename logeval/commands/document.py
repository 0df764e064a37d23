"""docs/commands.md from the help of the commands: ``python -m logeval.commands.document``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import typer

INTRODUCTION = """\
# Commands

Made by `python -m logeval.commands.document > docs/commands.md`. `logeval COMMAND --help` lists
the options.
"""


class Command(NamedTuple):
    """A command as its help describes it."""

    name: str  # with its group: "models export"
    help: str
    example: str  # "" if the help has none


def commands_of(app: typer.Typer) -> list[Command]:
    """All commands of an app and of its groups, in the order of ``--help``."""
    return list(_walk(typer.main.get_command(app), ""))


def _walk(command: Any, name: str) -> Iterator[Command]:
    if hasattr(command, "commands"):
        for part, child in command.commands.items():
            yield from _walk(child, f"{name} {part}".strip())
        return
    text = inspect.cleandoc(command.help or "")
    about, _, example = text.partition("Example:")
    yield Command(name, " ".join(about.split()), " ".join(example.split()))


def markdown(app: typer.Typer) -> str:
    """The page."""
    text = [INTRODUCTION]
    for command in commands_of(app):
        text += [f"## logeval {command.name}", "", command.help, ""]
        text += ["```", command.example, "```", ""]
    return "\n".join(text)


if __name__ == "__main__":
    from logeval.cli import app

    print(markdown(app), end="")
