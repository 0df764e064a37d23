"""The ``logeval`` command: the stages in their order."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Annotated

import typer

from logeval import __version__
from logeval.commands.app import app as app
from logeval.running.console import answer_signals, end, guard


def _version(wanted: bool) -> None:
    if wanted:
        print(f"logeval {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", "--verbose", help="Before the command: errors with a traceback."),
    ] = False,
    own: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            help="Before the command: a click model of your own, module:Class, or a module that "
            "registers some; repeatable.",
        ),
    ] = None,
) -> None:
    for name in own or []:
        _import(name)


def _import(name: str) -> None:
    if ":" in name:
        from logeval.clicks.models.registry import import_model

        import_model(name)
    else:
        from logeval.running.own_code import imported

        imported("module", name)


# in the order of ``--help``
for _file in ("log", "models", "decide", "evaluate", "replay", "pipeline"):
    import_module(f"logeval.commands.{_file}")


def console() -> None:
    """The console script, and ``python -m logeval``."""
    # its matrices are small: on two cores threads of BLAS cost three times what they save
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        main()
    except SystemExit as done:
        end(done.code)
    end(0)


def main() -> None:
    """A command; raises SystemExit at its end."""
    answer_signals()
    guard()
    app(prog_name="logeval")


if __name__ == "__main__":
    console()
