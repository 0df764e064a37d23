"""What queries and items are called outside: by their names, where the log has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from logeval.clicks.collection import FittedModels
from logeval.log.log import load
from logeval.log.names import Names
from logeval.log.queries import Query
from logeval.storage import tables


@dataclass(frozen=True)
class Naming:
    """Names of queries and items; ids where there are none."""

    names: Names

    def queries(self, queries: Iterable[Query]) -> list[str]:
        """``red shoes``, ``red shoes@7`` with its region, or ``9982@0``."""
        given = list(queries)
        called = self.names.names_of("query", [query.query_id for query in given])
        return [
            name if query.region_id is None else f"{name}@{query.region_id}"
            for name, query in zip(called, given, strict=True)
        ]

    def items(self, ids: Iterable[int]) -> list[str]:
        """The names of items."""
        return self.names.names_of("item", ids)


def naming_of(models: FittedModels) -> Naming:
    """The names that the models have beside them, or those of the log they were fitted to."""
    own = getattr(models, "names", None)
    if isinstance(own, Names):
        return Naming(own)
    folder = models.manifest.get("log_folder")
    return Naming(load(folder).names if folder and tables.there_is(folder) else Names())


def without_blanks(name: str) -> str:
    """A name in a file whose columns are separated by blanks, as TREC's qrels.

    >>> without_blanks("red shoes")
    'red%20shoes'
    """
    return re.sub(r"\s", lambda blank: quote(blank[0]), name)
