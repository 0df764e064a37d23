"""Small worlds whose logger and users are known, and logs drawn from them in memory."""

from __future__ import annotations

from functools import partial
from itertools import permutations

import numpy as np
import pyarrow as pa
from scipy import sparse

from logeval.clicks.estimation.patterns import patterns_of
from logeval.replay.estimate import Estimate, add_intervals
from logeval.replay.logged import Logged, cut
from logeval.replay.models import fit_models
from logeval.replay.targets import ListTarget
from logeval.replay.values import Values
from logeval.storage import schemas


def all_lists(L, K):
    return np.array(list(permutations(range(L), K)))


def plackett_luce(lists, score):
    """The probability of each list when items are drawn one by one, in proportion to score."""
    p = np.ones(len(lists))
    for row, items in enumerate(lists):
        left = score.sum()
        for a in items:
            p[row] *= score[a] / left
            left -= score[a]
    return p


def logged_of(lists, clicks, session=None, query=None, part=None, propensities=None):
    """Fold SERPs, row by row, into what ``read_logged`` gives."""
    n, K = lists.shape
    session = np.arange(n) if session is None else session
    query = np.zeros(n, dtype=int) if query is None else query
    part = np.zeros(n, dtype=int) if part is None else part
    bits = (clicks.astype(np.int64) << np.arange(K)).sum(axis=1)
    rows = np.column_stack([query, part, bits, lists])
    if propensities is not None:
        rows = np.column_stack([rows, propensities.view(np.int64)])
    keys, first, pattern, count = np.unique(
        rows, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    pattern = pattern.ravel()
    table = pa.Table.from_pydict(
        {
            "query_id": keys[:, 0],
            "region_id": [None] * len(keys),
            "holdout": [False] * len(keys),
            "items": keys[:, 3 : 3 + K].tolist(),
            "clicks": keys[:, 2],
            "count": count,
        },
        schema=schemas.CLICK_STATISTICS,
    )
    _, session = np.unique(session, return_inverse=True)
    several = (np.bincount(session) > 1)[session]
    by_session: dict = {}
    for s, p in zip(session[several], pattern[several], strict=True):
        by_session.setdefault(s, []).append(p)
    types: dict = {}
    for ids in by_session.values():
        types[tuple(sorted(ids))] = types.get(tuple(sorted(ids)), 0) + 1
    row = [p for ids in types for p in ids]
    column = [t for t, ids in enumerate(types) for _ in ids]
    clusters = sparse.csr_matrix(
        (np.ones(len(row), dtype=np.float32), (row, column)), shape=(len(keys), len(types))
    )
    alone = np.bincount(pattern[~several], minlength=len(keys))
    return Logged(
        patterns_of(table),
        keys[:, 1],
        alone,
        clusters,
        np.array(list(types.values()), dtype=np.int64),
        None if propensities is None else propensities[first],
    )


def target_of(logged, lists, probability, K=None, query=None, name="target"):
    """A target of lists of item ids."""
    patterns = logged.patterns
    K = lists.shape[1] if K is None else K
    query = np.zeros(len(lists), dtype=int) if query is None else query
    number = {
        (int(q), int(a)): i
        for i, (q, a) in enumerate(zip(patterns.item_query, patterns.item_ids, strict=True))
    }
    more = [
        (int(q), int(a)) for q, row in zip(query, lists, strict=True) for a in row
        if (int(q), int(a)) not in number
    ]  # fmt: skip
    more = list(dict.fromkeys(more))
    number |= {key: patterns.I + i for i, key in enumerate(more)}
    items = np.array(
        [[number[int(q), int(a)] for a in row[:K]] for q, row in zip(query, lists, strict=True)]
    )
    return ListTarget(
        name,
        patterns.Q,
        K,
        np.concatenate([patterns.item_query, [q for q, _ in more]]).astype(int),
        np.concatenate([patterns.item_ids, [a for _, a in more]]).astype(int),
        query=query,
        items=items,
        probability=np.asarray(probability, dtype=float),
    )


def point_and_interval(whole, target, estimators, rounds, seed, refits=0):
    """The overall value of a target and half of its 95% interval."""
    models = partial(fit_models, estimators, whole, scope="per-query")
    values = Values(cut(whole, target.K), target, estimators)
    found = Estimate(values, values.predictions(models(whole.patterns.count)))
    add_intervals([found], whole, models, rounds, refits, seed, quiet=True)
    pairs = zip(found.value[:, 0], found.half_widths()[0][:, 0], strict=True)
    return dict(zip(estimators, pairs, strict=True))
