"""decide."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from logeval.commands.command import command
from logeval.commands.show import Json
from logeval.decision.decide import Decide

if TYPE_CHECKING:
    from logeval.decision.decision import Decision


@command(Decide)
def show(
    found: Decision,
    asked: Decide,
    *,
    why: Annotated[bool, typer.Option("--why", help="The facts behind the answer, too.")] = False,
    as_json: Json = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="As Markdown, for a chat or a ticket.")
    ] = False,
) -> None:
    """The answer in twelve lines."""
    from logeval.reports.answer import facts_table, text

    if as_json:
        print(json.dumps(found.to_json(), indent=1))
        return
    print(text(found, as_markdown))
    if why:
        print(f"\n{facts_table(found.facts)}")
