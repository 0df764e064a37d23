"""decide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logeval.commands.command import command
from logeval.commands.show import Json, print_facts, print_table
from logeval.decision.decide import Decide

if TYPE_CHECKING:
    from logeval.decision.decision import Decision


@command(Decide)
def show(
    found: Decision,
    asked: Decide,
    *,
    why: Annotated[bool, typer.Option("--why", help="The facts behind the answer, too.")] = False,
    test: Annotated[
        bool, typer.Option("--test", help="What a test in traffic takes, too.")
    ] = False,
    as_json: Json = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="As Markdown, for a chat or a ticket.")
    ] = False,
) -> None:
    """The answer in twelve lines, and its page."""
    from logeval.reports.answer import TESTS, rows_of_tests, text
    from logeval.reports.report import report

    page = None
    if asked.out is not None:
        models = Path(asked.out) / "models"
        page = report(
            [asked.out],
            Path(asked.out) / "page",
            models=models if models.exists() else None,
            title="Should it take over from today's ranker?",
            quiet=asked.quiet,
        )
    if as_json:
        print(json.dumps(found.to_json(), indent=1))
        return
    print(text(found, as_markdown))
    if why:
        print()
        print_facts(found.facts)
    if test and found.tests:
        print()
        title = f"Tests of {found.policy} against today's ranker (power 80%, two-sided at 5%)"
        print_table(title, TESTS, rows_of_tests(found))
    if page is not None:
        asked_for = {"--why": why, "--test": test or not found.tests}
        more = "".join(f"   {option}" for option, given in asked_for.items() if not given)
        print(f"More   {page}{more}")
