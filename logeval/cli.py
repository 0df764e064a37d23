"""The ``logeval`` command: the stages in their order."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from logeval import __version__
from logeval.commands import (
    checks,
    evaluate,
    features,
    log,
    look,
    models,
    pipeline,
    policies,
    replay,
    reproduce,
)
from logeval.commands.command import plot_app
from logeval.errors import LogevalError, visible
from logeval.running import stopping, terminal


class Stages(TyperGroup):
    """A wrong input is one line and exit code 2; Ctrl-C is exit code 130."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except LogevalError as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            lines = map(visible, str(error).split("\n"))
            print("logeval:", "\n".join(lines), file=sys.stderr)
            sys.exit(2)
        except MemoryError as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            what = str(error).partition("\n")[0]
            print(
                f"logeval: out of memory{f' ({what})' if what else ''}; use fewer --workers, fewer "
                "queries, or a machine with more",
                file=sys.stderr,
            )
            sys.exit(2)
        except OSError as error:
            if isinstance(error, BrokenPipeError):  # the reader of stdout went away, as `| head`
                sys.stderr.close()
                sys.exit(141)
            if ctx.params.get("debug"):
                traceback.print_exc()
            said = visible(str(error))
            print(f"logeval: {said}; check the path and the space on it", file=sys.stderr)
            sys.exit(2)
        except UnicodeEncodeError as error:
            print(f"logeval: {visible(error.object)}: is not UTF-8; rename it", file=sys.stderr)
            sys.exit(2)
        except KeyboardInterrupt:
            print("\nlogeval: stopped; nothing is left half-written", file=sys.stderr)
            sys.exit(stopping.exit_code())


app = typer.Typer(
    cls=Stages,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Offline evaluation of ranking bandits over search logs. The stages, in their order:",
)


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
) -> None:
    pass


log.register(app)
models.register(app)
checks.register(app)
look.register(app, models.models_app)
features.register(app)
policies.register(app)
evaluate.register(app)
reproduce.register(app)
replay.register(app)
pipeline.register(app)
app.add_typer(plot_app, name="plot")


def main() -> None:
    """The console script."""
    stopping.answer_signals()
    terminal.guard()
    app(prog_name="logeval")


def main_of_module() -> None:
    """``python -m logeval.cli``."""
    try:
        main()
    except SystemExit as done:
        stopping.leave(done.code)
        raise


if __name__ == "__main__":
    main_of_module()
