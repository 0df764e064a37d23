"""``logeval features``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def features(
    log: Annotated[Path, typer.Argument(help="An ingested log.")],
    out: Annotated[Path, typer.Option(help="Folder for the table.")],
    top_queries: Annotated[int, typer.Option(min=1, help="The most frequent queries.")] = 3,
    queries: Annotated[
        str | None, typer.Option(help="These queries instead, 9982@0,4411@0.")
    ] = None,
    items: Annotated[int, typer.Option(help="The most shown items of each query.")] = 100,
    dim: Annotated[int, typer.Option(help="Singular values to keep, at most.")] = 200,
    context: Annotated[
        str, typer.Option(help="What a context knows: item, user+item or user*item.")
    ] = "item",
    product_dim: Annotated[
        int, typer.Option(help="For user*item: leading entries of each in the product.")
    ] = 10,
    users: Annotated[int, typer.Option(help="Users to keep, drawn at random.")] = 2_000,
    same_log: Annotated[
        bool,
        typer.Option("--same-log", help="From all sessions; by default from the held-out half."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the halves: as given to fit-models.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Make features of items (and users) from who clicked what: a truncated SVD.

    They come from the half of the sessions that fit-models --holdout 0.5 does not fit.

    Example: logeval features data/yandex --top-queries 3 --items 100 --dim 200 --context item
    --out data/yandex/features
    """
    from logeval.commands.show import print_table
    from logeval.features.table import make_features

    found = make_features(
        log,
        top_queries=top_queries,
        queries=[q.strip() for q in queries.split(",")] if queries else None,
        items=items,
        dim=dim,
        context=context,
        product_dim=product_dim,
        users=users,
        same_log=same_log,
        seed=seed,
        out=out,
        overwrite=overwrite,
        quiet=quiet,
    )
    matrix = found.manifest["matrix"]
    rows: list[tuple[str, object]] = [
        ("queries", ", ".join(found.queries)),
        ("items", found.items.num_rows),
        ("  never clicked: their vector is 0", found.manifest["never_clicked"]),
        ("users", found.users.num_rows),
        (f"click matrix, {matrix['rows']}s x items", " x ".join(map(str, matrix["shape"]))),
        ("  cells that are not 0", matrix["cells"]),
        ("length of a context", found.dimension),
    ]
    print_table(f"{out}: {found.context}", ["", "value"], [(a, str(b)) for a, b in rows])
    if (share := matrix.get("share_of_clicks", 1.0)) < 1.0:
        print(f"only the items clicked most are used, which have {share:.1%} of the clicks")
    if found.d < dim:
        print(f"the click matrix has rank {found.d}: that is used, not --dim {dim}")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("features", short_help="SERPs -> features of items and users.")(features)
