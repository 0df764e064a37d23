"""``logeval policies``: what there is, and what each of them must know."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from logeval.commands.app import app
from logeval.commands.command import Json
from logeval.commands.show import print_table
from logeval.errors import unknown_names
from logeval.evaluation.evaluate import track_names


@app.command()
def policies(
    track: Annotated[
        str | None,
        typer.Option(help="Only those of this track.", autocompletion=track_names),
    ] = None,
    as_json: Json = False,
) -> None:
    """The policies: options (the default first), what each must know and reads, cost, paper.

    Example: logeval policies --track ranking
    """
    from logeval.policies.catalogue import catalogue
    from logeval.tracks.registry import TRACKS

    if track is not None and track not in TRACKS:
        raise unknown_names("track", [track], TRACKS)
    rows = catalogue(track)
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    columns = ["policy", "track", "options", "must know", "paper"]  # the rest is in --json
    print_table("policies", columns, [[row[c] for c in columns] for row in rows])
