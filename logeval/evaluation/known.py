"""Known results: those that the log showed often enough to be counted on.

A result that is hardly ever shown was shown when the ranker saw a reason to, which no click model
knows: what it would earn in every search is a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from logeval.clicks.lists import Lists
from logeval.errors import LogevalError
from logeval.log.queries import Query
from logeval.running.arrays import Floats, Ints, place_of, sum_by
from logeval.tracks.fitted import FittedQuery


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


def only_known(fitted: Sequence[FittedQuery], models: Any, known: float) -> list[FittedQuery]:
    """The queries with their known results: policies, best lists and today's ranker share these."""
    lists: Lists | None = getattr(models, "lists", None)
    if lists is None:
        raise LogevalError(
            "known: these models do not say which results the log showed; fit them to a log with "
            "fit-models, or leave it out"
        )
    found = []
    for f in fitted:
        query = Query.of(f.query)
        rows = known_rows(lists, query, f.model.items, known, f.K)
        model, later = f.model.only(rows), tuple(one.only(rows) for one in f.later)
        place = None if f.base is None else place_of(f.base, rows)
        base = None if place is None else place[place >= 0]
        ranker = lists.ranker(query, model.items, f.K)
        found.append(f._replace(model=model, later=later, base=base, ranker=ranker))
    return found
