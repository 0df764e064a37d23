"""Options that several commands share, and the names that the shell completes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from logeval.errors import LogevalError

Json = Annotated[bool, typer.Option("--json", help="JSON, for programs.")]
Csv = Annotated[bool, typer.Option("--csv", help="CSV, for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]

Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler, tls://host:8786.")
]


def split(text: str | None, option: str = "--queries") -> list[str] | None:
    """The parts of ``9982@0,4411@0``; None if the option was not given."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise LogevalError(f"{option} is empty; leave it out for all")
    return parts


def policy_names(incomplete: str) -> list[str]:
    """The policies whose names start so."""
    from logeval.policies.registry import POLICIES

    return _starting(incomplete, POLICIES)


def model_names(incomplete: str) -> list[str]:
    """The click models whose names start so."""
    from logeval.clicks.models.registry import MODELS

    return _starting(incomplete, [*MODELS, "all"])


def track_names(incomplete: str) -> list[str]:
    """The tracks whose names start so."""
    from logeval.tracks.registry import TRACKS

    return _starting(incomplete, TRACKS)


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.lower().startswith(incomplete.lower())]
