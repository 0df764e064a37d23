"""``features``: who clicked what -> vectors of items and users."""

from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from logeval.stage import (
    Arg,
    LogFolder,
    Manifest,
    Overwrite,
    Queries,
    Quiet,
    Stage,
    function,
    stage,
)

if TYPE_CHECKING:
    from logeval.features.table import Features

MOST_DIMENSIONS = 1_000  # singular values; memory grows with them


@stage(
    "features",
    example="logeval features data/yandex --top-queries 3 --items 100 --dim 200 --context item "
    "--out data/yandex/features",
    again="logeval features LOG --out {folder} --overwrite",
    read="logeval.features.table:read_features",
)
class MakeFeatures(Stage["Features"]):
    """Make features of items (and users) from who clicked what: a truncated SVD.
    They come from the half of the sessions that fit-models --holdout 0.5 does not fit.

    So features and simulator share no session; ``same_log`` takes all sessions.
    """

    log: LogFolder
    _: KW_ONLY
    top_queries: Annotated[int, Arg("The most frequent queries.", least=1)] = 3
    queries: Annotated[Queries, Arg("These queries instead, 9982@0,4411@0.", parse=str)] = None
    items: Annotated[int, Arg("The most shown items of each query.", least=1)] = 100
    dim: Annotated[int, Arg("Singular values to keep, at most.", least=1, most=MOST_DIMENSIONS)] = (
        200
    )
    context: Annotated[
        Literal["item", "user+item", "user*item"],
        Arg("What a context knows: item, user+item or user*item."),
    ] = "item"
    product_dim: Annotated[
        int, Arg("For user*item: leading entries of each in the product.", least=1)
    ] = 10
    users: Annotated[int, Arg("Users to keep, drawn at random.", least=1)] = 2_000
    same_log: Annotated[bool, Arg("From all sessions; by default from the held-out half.")] = False
    seed: Annotated[int, Arg("Of the halves: as given to fit-models.")] = 0
    out: Annotated[Path | str | None, Arg("Folder for the table.", "output", needed=True)] = None
    overwrite: Overwrite = False
    quiet: Quiet = False

    def arguments(self) -> Manifest:
        """The settings; whichever way the queries were chosen."""
        from logeval.features.table import chosen_queries

        settings = super().arguments()
        top = settings.pop("top_queries")
        return settings | {"queries": chosen_queries(self.opened, top, settings["queries"])}

    def make(self, manifest: Manifest) -> "Features":
        """The features."""
        from logeval.features.table import make_table

        return make_table(self, manifest["arguments"]["queries"], manifest)


make_features = function(MakeFeatures, "make_features")
