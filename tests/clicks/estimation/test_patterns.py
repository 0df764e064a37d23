"""Click statistics -> arrays."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from logeval.clicks.estimation.fold import fold
from logeval.clicks.estimation.patterns import patterns_of
from logeval.log.log import load
from logeval.log.queries import Query
from logeval.storage.schemas import CLICK_STATISTICS
from tests.serps import Serp, write_serps

SERPS = [
    Serp(1, [10, 11, 12], [1, 0, 3], session_id=0, day=1),
    Serp(1, [10, 11, 12], [2, 0, 1], session_id=1, day=1),  # the same, clicked more often
    Serp(1, [10, 11, 12], [0, 0, 0], session_id=2, day=2),
    Serp(1, [11, 10], [0, 1], session_id=3, day=2),  # a shorter list
    Serp(2, [20], [1], session_id=4, region_id=7, day=2),
    Serp(2, [20], [1], session_id=5, region_id=8, day=3),
    Serp(2, [20, 21], [1, 1], session_id=6, region_id=8, day=3, test=True),
]


@pytest.fixture
def log(tmp_path):
    return load(write_serps(tmp_path / "log", SERPS, parts=3))


def test_patterns_number_items_by_query_and_impressions(log):
    data = patterns_of(fold(log))
    assert data.queries == [Query(1), Query(2, 7), Query(2, 8)]  # the most frequent first
    assert data.item_ids.tolist() == [10, 11, 12, 20, 20]
    assert data.impressions.tolist() == [4, 4, 3, 1, 1]
    assert data.positions.tolist() == [3, 1, 1]
    assert data.serps.tolist() == [4, 1, 1]
    short = data.length == 2
    assert data.items[short].tolist() == [[1, 0, -1]]
    assert data.clicks[short].tolist() == [[False, True, False]]
    assert data.last_click[short].tolist() == [1]


def test_sums_by_item_use_every_shown_position(log):
    data = patterns_of(fold(log))
    assert data.sum_items(data.shown.clicks).tolist() == [3, 0, 2, 1, 1]
    assert np.array_equal(data.item_query, [0, 0, 0, 1, 2])


def test_the_base_list_is_the_one_shown_most_often(log):
    """Lists are counted over all their click patterns; of equals the first one."""
    assert [a.tolist() for a in patterns_of(fold(log)).base] == [[10, 11, 12], [20], [20]]
    rng = np.random.default_rng(3)
    shown = [
        (int(q), tuple(rng.permutation(4)[:n].tolist())) for q, n in rng.integers(1, 4, (90, 2))
    ]
    rows = [
        {"query_id": q, "holdout": False, "items": list(a), "clicks": int(c), "count": 1}
        for (q, a), c in zip(shown, rng.integers(0, 2, len(shown)), strict=True)
    ]
    data = patterns_of(pa.Table.from_pylist(rows, schema=CLICK_STATISTICS))
    for query, base in zip(data.queries, data.base, strict=True):
        lists = [a for q, a in shown if q == query.query_id]
        expected = Counter(lists).most_common(1)[0][0]  # of equals the first one it met
        assert tuple(base.tolist()) == expected
