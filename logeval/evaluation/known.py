"""Known results: those that the log showed often enough to be counted on.

A result that is hardly ever shown was shown when the ranker saw a reason to, which no click model
knows: what it would earn in every search is a guess.
"""

from __future__ import annotations

import numpy as np

from logeval.clicks.lists import Lists
from logeval.log.queries import Query
from logeval.running.arrays import Floats, Ints, place_of, sum_by


def impressions(lists: Lists, query: Query, items: Ints) -> tuple[Floats, float]:
    """How often the log showed each of the ``items`` (L,) of a query, and its searches."""
    of = lists.queries.index(query) if query in lists.queries else -1
    mine = lists.query == of
    n, k = np.nonzero(np.arange(lists.items.shape[1]) < lists.length[mine][:, None])
    rows = place_of(lists.items[mine][n, k], items)
    shown = sum_by(rows[rows >= 0], lists.serps[mine][n][rows >= 0], len(items))
    return shown, float(lists.serps[mine].sum())


def known_rows(lists: Lists | None, query: Query, items: Ints, known: float | None, K: int) -> Ints:
    """The rows of the items that are known, at least K; all without lists, or with None.

    ``known`` is a share of the query's searches, or, from 1 on, a number of them.
    """
    every = np.arange(len(items))
    if known is None or lists is None:
        return every
    shown, searches = impressions(lists, query, items)
    least = known if known >= 1.0 else known * searches
    often = np.flatnonzero(shown >= least)
    return often if len(often) >= K else np.sort(np.argsort(-shown, kind="stable")[:K])
