"""Tables of counts -> patterns: what can be fitted without knowing a page."""

from __future__ import annotations

import numpy as np

from logeval.clicks.estimation.patterns import Counted, query_index
from logeval.clicks.estimation.statistics.fold import choose
from logeval.log.log import Log
from logeval.log.queries import Query
from logeval.running.arrays import sum_by


def counted_patterns(
    log: Log, queries: list[Query] | None = None, top_queries: int | None = None
) -> Counted | None:
    """The counts of a log, clicked and unclicked impressions apart; None if there are none.

    Queries come by frequency, their items too, as those of SERPs do.
    """
    with log.connect(holds="counts") as db:
        db.execute("CREATE VIEW fitted AS FROM counts")
        where = choose(db, queries, top_queries, "sum(impressions)")
        rows = db.sql(f"SELECT * FROM counts {where}").to_arrow_table()
    query, seen = query_index(rows)
    item, position, shown, clicks = (
        rows[name].to_numpy() for name in ("item_id", "position", "impressions", "clicks")
    )
    if not shown.sum():
        return None
    total = sum_by(query, shown.astype(np.float64), len(seen))
    order = np.argsort(-total, kind="stable")
    query = np.argsort(order)[query]
    # (query, item) pairs: by query, the most shown first, then by id
    keys, pair = np.unique(np.stack([query, item]), axis=1, return_inverse=True)
    pair = pair.ravel()
    impressions = sum_by(pair, shown.astype(np.float64), keys.shape[1])
    by = np.lexsort((keys[1], -impressions, keys[0]))
    pair = np.argsort(by)[pair]
    # a pattern of the clicked impressions, and one of the others
    row = np.concatenate([np.flatnonzero(clicks), np.flatnonzero(shown > clicks)])
    clicked = np.arange(len(row)) < np.count_nonzero(clicks)
    k = position[row] - 1
    K = int(position.max())
    items = np.full((len(row), K), -1, dtype=np.int64)
    items[np.arange(len(row)), k] = pair[row]
    marks = np.zeros((len(row), K), dtype=np.bool_)
    marks[np.arange(len(row)), k] = clicked
    count = np.where(clicked, clicks[row], shown[row] - clicks[row]).astype(np.float64)
    offsets = np.searchsorted(keys[0][by], np.arange(len(seen) + 1))
    return Counted(
        [seen[i] for i in order], query[row], items, marks, k + 1, count, keys[1][by], offsets
    )
