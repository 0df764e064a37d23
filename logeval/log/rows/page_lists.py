"""A batch with a row per page, which has lists -> rows per result."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from logeval.log.columns.table_file import Batch
from logeval.log.layouts.recognition import Layout
from logeval.log.layouts.roles import ROLES
from logeval.log.rows.conversion import OF_SEARCH, Converted, Rejects, Rows, of_search
from logeval.log.rows.lists import as_lists
from logeval.log.rows.results import results_of
from logeval.running.arrays import Ints

NEEDED = ("item", "clicks", "position")


def convert_pages(batch: Batch, file: int, layout: Layout, text: frozenset[str]) -> Converted:
    """The pages of a batch; raises NotNumbers for an id that should be a number."""
    columns = layout.of(batch)
    rejects = Rejects(batch)
    ids = {kind: rejects.ids(kind, columns[kind], text) for kind in OF_SEARCH if kind in columns}
    rejects.add(ids["query"].missing, "query is empty")
    search = of_search(columns, layout, rejects)
    lists = {role: as_lists(array) for role, array in columns.items() if ROLES[role].lists}
    lengths = _lengths(lists["item"])
    rejects.add(lengths == 0, "item is empty")
    for role, array in lists.items():
        other = (_lengths(array) != lengths) & ((role in NEEDED) | array.is_valid().to_numpy(False))
        rejects.add(other, f"{role}: not one value per item")
    pages = np.flatnonzero(rejects.good)
    inner, lengths = rejects.inside(np.repeat(pages, lengths[pages])), lengths[pages]
    flat = {role: _flat(array, pages, lengths) for role, array in lists.items()}
    places = np.arange(len(flat["item"])) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
    results = results_of({"position": pa.array(places), **flat}, layout, text, inner)
    kept = rejects.good[pages]
    shown, pages = np.flatnonzero(np.repeat(kept, lengths)), pages[kept]
    rows = Rows(
        None,
        {kind: given[pages] for kind, given in ids.items()}
        | {kind: given[shown] for kind, given in results.ids.items()},
        results.position[shown],
        results.clicks[shown],
        {name: values[pages] for name, values in search.items()},
        {name: values[shown] for name, values in results.more.items()},
        first=np.append(0, np.cumsum(lengths[kept])),
        dates=layout.has_dates,
        clock=layout.has_clock,
    )
    rejected = rejects.all()
    empty = int(results.empty[shown].sum())
    counts = Counter(rows=batch.rows, rejected=len(rejected), clicks_empty=empty)
    return Converted(rows, rejected, counts)


def _lengths(lists: pa.ListArray) -> Ints:
    """How long each list is; a null one is empty."""
    found: Ints = lists.value_lengths().fill_null(0).to_numpy()
    return found


def _flat(lists: pa.ListArray, pages: Ints, lengths: Ints) -> pa.Array:
    """The values of some lists; of a null one as many nulls as there are items."""
    lists = lists.take(pa.array(pages))
    values = lists.flatten()
    if not lists.null_count:
        return values
    there = np.repeat(lists.is_valid().to_numpy(False), lengths)
    place = np.cumsum(there) - 1
    return values.take(pa.array(place, mask=~there))
