"""How hard the queries are: a row of the hardness table for each, in tracks that have a measure."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from logeval.storage.tables import HARDNESS
from logeval.tracks.registry import TRACKS
from logeval.tracks.track import Problem


def hardness_of(problems: Iterable[Problem], n: int) -> pa.Table:
    """The hardness table (see ``logeval.storage.tables.HARDNESS``) at horizon n."""
    measures = [(TRACKS[problem.track].hardness, problem) for problem in problems]
    rows = [measure(problem, n) for measure, problem in measures if measure is not None]
    return pa.Table.from_pylist(rows, schema=HARDNESS)


def united(old: pa.Table, new: pa.Table) -> pa.Table:
    """The rows of both; where both have a query, that of ``new``."""
    rows = {(row["simulator"], row["query"]): row for t in (old, new) for row in t.to_pylist()}
    return pa.Table.from_pylist([rows[key] for key in sorted(rows)], schema=HARDNESS)
