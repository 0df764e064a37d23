"""A batch with a row per result -> rows, without those that cannot be used.

A batch with a row per page, which has lists -> rows per result.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from logeval.log.columns.table_file import Batch
from logeval.log.layouts import ROLES, Layout
from logeval.log.rows.conversion import (
    APART,
    MOST_CLICKS,
    NONE,
    OF_RESULT,
    OF_SEARCH,
    Converted,
    Rejects,
    Rows,
    of_search,
)
from logeval.log.rows.ids import Given, sums_of
from logeval.log.rows.values import (
    BAD,
    GOOD,
    MISSING,
    Sums,
    as_floats,
    as_lists,
    as_numbers,
    as_times,
    sums_of_numbers,
    together,
)
from logeval.running.arrays import Bools, Floats, Ints


def convert_results(batch: Batch, file: int, layout: Layout, text: frozenset[str]) -> Converted:
    """The rows of a batch; raises NotNumbers for an id that should be a number."""
    columns = layout.of(batch)
    rejects = Rejects(batch)
    key, missing = _key([batch.columns[name] for name in layout.columns["search"]])
    rejects.add(missing, "search is empty")
    if layout.by_file:
        key = together(key, sums_of_numbers(np.full(len(missing), file)))
    ids = {kind: rejects.ids(kind, columns[kind], text) for kind in OF_SEARCH if kind in columns}
    rejects.add(ids["query"].missing, "query is empty")
    results = results_of(columns, layout, text, rejects, alone=True)
    search = of_search(columns, layout, rejects)
    # rows of a search may contradict each other
    more = results.more | {"random": search.pop("random")} if "random" in search else results.more
    rows = Rows(
        key,
        ids | results.ids,
        results.position,
        results.clicks,
        search,
        more,
        dates=layout.has_dates,
        clock=layout.has_clock,
    )
    if not rejects.good.all():
        rows = rows.chosen(np.flatnonzero(rejects.good))
    rejected = rejects.all()
    empty = int((results.empty & rejects.good).sum())
    counts = Counter(rows=batch.rows, heads=batch.heads, rejected=len(rejected), clicks_empty=empty)
    return Converted(rows, rejected, counts)


def _key(parts: list[pa.Array]) -> tuple[Sums, Bools]:
    """What is the same for all rows of a search, and where nothing of it is there."""
    key, missing = sums_of(parts[0])
    for part in parts[1:]:
        sums, empty = sums_of(part)
        key, missing = together(key, sums), missing & empty
    return key, missing


@dataclass(frozen=True)
class Results:
    """What is known of results; ``empty`` are those with no word of clicks."""

    ids: dict[str, Given]
    position: Ints
    clicks: Ints
    more: dict[str, Ints | Floats]
    empty: Bools


def results_of(
    columns: dict[str, pa.Array],
    layout: Layout,
    text: frozenset[str],
    rejects: Rejects,
    alone: bool = False,
) -> Results:
    """The columns of results as arrays; what is ``alone`` may be a click without a position."""
    ids = {kind: rejects.ids(kind, columns[kind], text) for kind in OF_RESULT if kind in columns}
    rejects.add(ids["item"].missing, "item is empty")
    clicks = as_numbers(columns["clicks"])
    bad = (clicks.states == BAD) | (clicks.values > MOST_CLICKS)
    rejects.add(bad, "clicks are no whole number from 0 on", columns["clicks"])
    clicked = clicks.filled(0)
    position = as_numbers(columns["position"])
    rejects.add(
        position.states == BAD, "position is no whole number from 0 on", columns["position"]
    )
    apart = (position.states == MISSING) & (clicked > 0) & alone
    rejects.add((position.states == MISSING) & ~apart, "no position")
    more: dict[str, Ints | Floats] = {}
    if "propensity" in columns:
        p = as_floats(columns["propensity"])
        outside = (p.states == GOOD) & ~((p.values > 0) & (p.values <= 1))
        reason = "propensity is not above 0 and at most 1"
        rejects.add((p.states == BAD) | outside, reason, columns["propensity"])
        more["propensity"] = p.filled(np.nan)
    if "click_time" in columns:
        times = as_times(columns["click_time"], layout.unit)
        rejects.add(times.states == BAD, "not a time", columns["click_time"])
        timed = (times.states == GOOD) & (clicked == 0)
        rejects.add(timed, "a time without a click", columns["click_time"])
        more["click_time"] = times.filled(NONE)
    return Results(
        ids,
        np.where(apart, APART, position.values),
        clicked.astype(np.int32),
        more,
        clicks.states == MISSING,
    )


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
