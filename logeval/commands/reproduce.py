"""``logeval reproduce``: the experiments of the papers again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from logeval.commands.command import command
from logeval.commands.show import (
    Csv,
    Json,
    Latex,
    latex_table,
    print_for_programs,
    print_table,
    wrapped,
)
from logeval.papers.reproduce import Reproduce

if TYPE_CHECKING:
    from logeval.papers.shared.outcome import Outcome


@command(Reproduce)
def show(
    outcomes: list[Outcome],
    asked: Reproduce,
    *,
    as_json: Json = False,
    as_csv: Csv = False,
    as_latex: Latex = False,
) -> None:
    """The claims of one experiment, or a line for each of several; and the page of them."""
    from logeval.papers.shared.page import write_markdown, write_page

    if asked.experiment == "list":
        _list(as_json, as_csv)
        return
    if as_latex:
        print("\n\n".join(_latex(outcomes)))
    else:
        _print(outcomes, as_json, as_csv)
    to = sys.stderr if as_json or as_csv or as_latex else sys.stdout
    if asked.out is not None:
        print(f"page {write_page(outcomes, asked.out / 'page')}", file=to)
    if asked.markdown is not None:
        print(f"page {write_markdown(outcomes, asked.markdown)}", file=to)


def _list(as_json: bool, as_csv: bool) -> None:
    import pandas as pd

    from logeval.papers.registry import EXPERIMENTS, seconds
    from logeval.papers.shared.words import minutes

    columns = ["experiment", "place", "needs", "steps", "runs", "minutes"]
    rows: list[tuple[object, ...]] = [
        (
            e.name,
            f"{e.paper}, {e.place}",
            "a log" if e.needs_log else "nothing",
            e.horizon,
            e.runs,
            minutes(e.seconds),
        )
        for e in EXPERIMENTS.values()
    ]
    if not print_for_programs(pd.DataFrame(rows, columns=columns), as_json, as_csv):
        print_table("experiments", columns, rows)
        spent = seconds(EXPERIMENTS.values())
        print(
            wrapped(
                f"minutes are of one core; all together {minutes(spent)}, about "
                f"{minutes(spent / 2)} on two cores (runs that two figures share are counted once)"
            )
        )


def _latex(outcomes: list[Outcome]) -> Iterator[str]:
    """Ours beside the published, a table each; standard errors, and the verdict in words."""
    from logeval.papers.shared import words

    for one in outcomes:
        for _, columns, lines in words.halves(one.judged):
            yield latex_table(f"{one.title}; {words.size(one)}", columns, lines)


def _print(outcomes: list[Outcome], as_json: bool, as_csv: bool) -> None:
    import pandas as pd

    from logeval.papers.shared import words
    from logeval.papers.shared.page import NOT_PUBLISHED
    from logeval.papers.shared.verdicts import table, verdict_of

    tables = [table(o.judged).assign(experiment=o.name) for o in outcomes if o.judged]
    summary = [words.summary_row(outcome) for outcome in outcomes]
    rows = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    if print_for_programs(rows, as_json, as_csv, experiments=summary):
        return
    if len(outcomes) > 1:
        print_table("experiments", words.SUMMARY, summary)
        return
    (one,) = outcomes
    title = f"{one.title}; {words.size(one)}"
    for _, columns, lines in words.halves(one.judged):
        print_table(title, columns, lines)
        title = NOT_PUBLISHED
    for line in (f"verdict: {verdict_of(one.judged)}", *one.facts):
        print(wrapped(line))
