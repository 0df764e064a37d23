"""generate, ingest, describe, features."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logeval.commands.app import app
from logeval.commands.command import command
from logeval.commands.show import Details, Json, print_answer, print_frame, print_table
from logeval.facts import Answer, Fact
from logeval.features.make import MakeFeatures
from logeval.log.ingest import Ingest
from logeval.synthetic.generate import Generate

if TYPE_CHECKING:
    from logeval.clicks.support.support import Support
    from logeval.features.table import Features
    from logeval.log.describe import Description
    from logeval.log.log import Log


@command(Generate, short_help="Write a synthetic log.")
def show_truth(truth: Path, asked: Generate) -> None:
    """Where everything is."""
    print(f"log           {asked.out}\ntrue models   {truth}")


ALSO = {  # what else was counted, told if there is any
    "test_queries": "test SERPs among the queries",
    "pages_with_gaps": "pages with positions left out, closed up",
    "pages_later": "pages that begin at a later rank, which they keep",
    "searches_without_text": "searches whose text nothing says, each a query of its own",
    "rows_unseen": "hits below the last that was seen, left out",
    "pages_with_item_twice": "pages that show an item twice",
    "pages_random_unclear": "pages in random order by some of their rows only, taken as not",
    "rows_cut": "results beyond the last position, cut",
    "clicks_dropped": "clicks on rows that were dropped",
    "clicks_empty": "results without a word of clicks, taken as not clicked",
}


@command(Ingest, short_help="Raw log -> table of SERPs.")
def show_counts(log: Log, asked: Ingest) -> None:
    """What was read, kept and dropped."""
    from logeval.log.formats.registry import FORMATS

    names = sorted(set(log.manifest["formats"]))
    rows: list[tuple[str, object]] = []
    for unit in dict.fromkeys(FORMATS[name].unit for name in names):
        said = {k: v for name in names for k, v in FORMATS[name].accounts.items()}
        rows += [(f"{unit} read", log.counts[unit])]
        rows += [
            (f"  {words}", log.counts.get(count, 0))
            for count, words in said.items()
            if log.counts.get(count) or unit == "lines" or count in ("results", "rejected")
        ]
    results = all("queries" not in FORMATS[name].accounts for name in names)
    if log.holds == "counts":
        rows += [(name, log.counts[name]) for name in ("impressions", "clicks")]
        if capped := log.counts.get("clicks_capped"):
            rows += [("rows with more clicks than impressions, all taken as clicked", capped)]
        print_table(f"{asked.out or log.title}: counts", ["", "count"], rows)
        return
    if log.holds == "placements":
        rows += [("clicked", log.counts["clicked"]), ("clicks", log.counts["clicks"])]
        print_table(f"{asked.out or log.title}: placements", ["", "count"], rows)
        return
    if results:
        rows += [("result pages (SERPs)", log.counts["queries"])]
        rows += [("clicked results", log.counts["clicks_matched"])]
    rows += [
        (words, log.counts.get(count, 0))
        for count, words in ALSO.items()
        if log.counts.get(count) or count == "test_queries"
        if not (results and count == "rows_cut")
    ]
    out = f"{log.title}, the first rows" if asked.dry_run else asked.out
    print_table(f"{out}: {', '.join(names)}", ["", "count"], rows)
    if asked.dry_run:
        print_table("The first pages", ["query", "clicks", "items"], list(_first_pages(log)))


def _first_pages(log: Log) -> Iterator[tuple[str, str, str]]:
    from logeval.log.names import shortened

    for page in log.serps(columns=["query_id", "items", "clicks"]).slice(0, 5).to_pylist():
        items = log.names.names_of("item", page["items"])
        yield (
            shortened(log.names.name_of("query", page["query_id"])),
            " ".join(map(str, page["clicks"])),
            ", ".join(shortened(name, 24) for name in items[:3]) + (", ..." if items[3:] else ""),
        )


EXAMINED = ["rank", "examination", "low", "high"]
QUERIES = ["query", "searches", "items", "lists", "clicks each", "can carry", "exact to"]


@app.command(short_help="What a log holds.")
def describe(
    log: Annotated[Path, typer.Argument(help="An ingested log.")],
    top: Annotated[int, typer.Option(min=1, help="How many of the most frequent queries.")] = 20,
    details: Details = False,
    as_json: Json = False,
    figure: Annotated[
        Path | None, typer.Option(help="Also draw CTR by rank and the query frequencies here.")
    ] = None,
) -> None:
    """Show what a log holds, and what can be learned from it.

    The most frequent queries: which click models they can carry, and how exactly the clicks of the
    best list would be known. Counts say less: nothing of pages, nor of models that depend on what
    else was clicked there.

    Example: logeval describe data/yandex --figure log.png
    """
    from logeval.clicks.support.support import support
    from logeval.log.log import load
    from logeval.log.names import WIDTH

    opened = load(log)
    found, supported = opened.describe(top), support(opened, top)
    if as_json:
        print(json.dumps(found.to_dict() | {"support": supported.to_dict()}, indent=1))
    else:
        absent = [name for name, n in found.totals.items() if n is None]
        unknown = [Fact("not-in-the-log", more={"names": absent})] if absent else []
        learned = supported.facts if found.ordered else []
        notes = [*found.facts, *learned[1:], *unknown]
        answer = Answer([_holds(found), *learned[:1]], notes)
        title = f"{log}: the {len(found.top_queries)} most frequent queries"
        print_answer(answer, title, QUERIES, _queries(found, supported), details)
        if details:
            counted = [(name, n) for name, n in found.totals.items() if n is not None]
            print_table(str(log), ["", "count"], counted)
            print_frame("CTR by rank", found.ctr_by_rank)
            if opened.holds == "serps":
                print_frame("Clicked results per SERP", found.clicks_per_serp)
            if len(supported.table):
                decided = supported.names.shown(supported.table, WIDTH)
                print_frame("What the clicks on them can decide (docs/support.md)", decided)
                title = "Examination relative to the first rank, from swaps"
                if found.ordered:
                    print_frame(title, supported.examination[EXAMINED])
    if figure:
        from logeval.reports.figures.canvas import save_figure

        save_figure(found.plot()[0].figure, figure)
        if not as_json:
            print(f"figure   {figure}")


def _holds(found: Description) -> Fact:
    """The size of a log."""
    totals = found.totals
    if (serps := totals.get("serps")) is None:
        return Fact("holds-counts", more=totals)
    each = float(totals["clicked_results"] or 0) / max(float(serps), 1.0)
    return Fact("holds", value=each, more=totals)


def _queries(found: Description, supported: Support) -> list[list[object]]:
    """A row per query: what it shows, which models it can carry, how exact its best list is."""
    from logeval.clicks.support.graph import CARRIES
    from logeval.clicks.support.support import NEEDY
    from logeval.log.names import WIDTH

    known = {} if supported.table.empty else supported.table.set_index("query").to_dict("index")
    queries = found.names.shown(found.top_queries, WIDTH)["query"]
    rows: list[list[object]] = []
    for name, row in zip(queries, found.top_queries.to_dict("records"), strict=True):
        of = known.get(str(row["query"]), {})
        models = [m for m in NEEDY if of.get(f"share_{m.lower()}", 0.0) >= CARRIES]
        value = of.get("value", 0.0)
        exact = f"{of['width_value'] / 2 / value:.0%}" if value else ""
        serps = row.get("serps", row.get("impressions"))
        each = row.get("clicks_per_serp", row.get("ctr"))
        rows.append(
            [name, serps, row["items"], row.get("lists", ""), each, " ".join(models), exact]
        )
    return rows


@command(MakeFeatures, short_help="SERPs -> features of items and users.")
def show_features(found: Features, asked: MakeFeatures) -> None:
    """How many items and users, and how much of the clicks."""
    matrix = found.manifest["matrix"]
    rows: list[tuple[str, object]] = [
        ("queries", ", ".join(asked.names.titles(found.queries).values())),
        ("items", found.items.num_rows),
        ("  never clicked: their vector is 0", found.manifest["never_clicked"]),
        ("users", found.users.num_rows),
        (f"click matrix, {matrix['rows']}s x items", " x ".join(map(str, matrix["shape"]))),
        ("  cells that are not 0", matrix["cells"]),
        ("length of a context", found.dimension),
    ]
    print_table(f"{asked.out}: {found.context}", ["", "value"], [(a, str(b)) for a, b in rows])
    if (share := matrix.get("share_of_clicks", 1.0)) < 1.0:
        print(f"only the items clicked most are used, which have {share:.1%} of the clicks")
    if found.d < asked.dim:
        print(f"the click matrix has rank {found.d}: that is used, not --dim {asked.dim}")
