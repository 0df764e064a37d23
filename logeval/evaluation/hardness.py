"""How hard the queries of the rank-1 track are: a row of the hardness table for each."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from logeval.evaluation.theory import rank1_hardness, rank1_upper
from logeval.tables import HARDNESS
from logeval.tracks.rank1 import Rank1Problem


def hardness_of(problems: Iterable[object], n: int) -> pa.Table:
    """mu, p_max, gamma and Theorem 1's bound at horizon n (see ``logeval.tables.HARDNESS``)."""
    rows = [
        {
            "simulator": p.simulator,
            "query": p.query,
            "rows": p.L,
            "columns": p.K,
            **rank1_hardness(p.u_bar, p.v_bar)._asdict(),
            "n": n,
            "bound": rank1_upper(p.u_bar, p.v_bar, n),
        }
        for p in problems
        if isinstance(p, Rank1Problem)
    ]
    return pa.Table.from_pylist(rows, schema=HARDNESS)


def united(old: pa.Table, new: pa.Table) -> pa.Table:
    """The rows of both; where both have a query, that of ``new``."""
    rows = {(row["simulator"], row["query"]): row for t in (old, new) for row in t.to_pylist()}
    return pa.Table.from_pylist([rows[key] for key in sorted(rows)], schema=HARDNESS)
