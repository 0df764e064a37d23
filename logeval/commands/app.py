"""The ``logeval`` command and its groups, to which the files beside this one add theirs."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from logeval.errors import LogevalError, visible
from logeval.running import console


class Commands(TyperGroup):
    """Commands, listed with their first sentences, whole."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list in ``--help``."""
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.short_help:
                command.short_help = " ".join((command.help or "").partition("\n\n")[0].split())
        super().format_commands(ctx, formatter)


class Stages(Commands):
    """A wrong input is one line and exit code 2; Ctrl-C is exit code 130."""

    def main(self, *args: Any, **more: Any) -> Any:
        """Run a command line; where what it printed cannot be written, it fails."""
        code: Any = 0
        try:
            super().main(*args, **more)
        except SystemExit as done:
            code = done.code
        except OSError as error:
            code = _said(error)
        try:
            print(end="", flush=True)
        except OSError as error:
            sys.stdout = None  # type: ignore[assignment]  # which Python would flush once more
            code = code or _said(error)
        sys.exit(code)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (LogevalError, MemoryError, OSError, UnicodeEncodeError) as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            sys.exit(_said(error))
        except KeyboardInterrupt:
            print("\nlogeval: stopped; nothing is left half-written", file=sys.stderr)
            sys.exit(console.exit_code())


def _said(error: Exception) -> int:
    """The exit code, after a line about the error."""
    if isinstance(error, BrokenPipeError):  # the reader of stdout went away, as `| head`
        sys.stderr.close()
        return 141
    text = visible(str(error), "\n")
    if isinstance(error, UnicodeEncodeError):
        text = f"{visible(error.object)}: is not UTF-8; rename it"
    elif isinstance(error, MemoryError):
        text = f"out of memory ({text or 'in Python'}); use fewer --workers, or fewer queries"
    elif isinstance(error, OSError):
        text = f"{visible(str(error))}; check the path and the space on it"
    print(f"logeval: {text}", file=sys.stderr)
    return 2


app = typer.Typer(
    cls=Stages,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Offline evaluation of ranking bandits over search logs. The stages, in their order:",
)


replay_app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    help="What rankers and policies would have earned, from the log itself.",
)
app.add_typer(replay_app, name="replay")
