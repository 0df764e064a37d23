"""The lists of the log and their clicks, against counting by hand."""

import numpy as np
import pytest

from logeval.clicks import lists as module
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.lists import Lists
from logeval.log.queries import Query

Q = [Query(7, 0), Query(8, None)]
SERPS = [  # query, list of ids, clicks
    *[(0, (11, 12, 13), (1, 0, 1))] * 3,
    *[(0, (11, 12, 13), (0, 0, 0))] * 2,
    *[(0, (12, 11, 13), (1, 1, 1))] * 4,
    *[(0, (11, 12), (0, 1))] * 1,
    *[(1, (-5, 12, -6), (0, 1, 0))] * 2,
]


def patterns(serps=SERPS):
    """Folded by hand; ids 11, 12, 13 of the first query and -5, 12, -6 of the second."""
    ids = np.array([11, 12, 13, -5, 12, -6])
    place = [{11: 0, 12: 1, 13: 2}, {-5: 3, 12: 4, -6: 5}]
    folded = {}
    for one in serps:
        folded[one] = folded.get(one, 0) + 1
    items = np.full((len(folded), 3), -1)
    clicks = np.zeros((len(folded), 3), dtype=bool)
    for p, (q, shown, c) in enumerate(folded):
        items[p, : len(shown)] = [place[q][i] for i in shown]
        clicks[p, : len(c)] = c
    return Patterns(
        Q,
        np.array([q for q, _, _ in folded]),
        items,
        clicks,
        np.array([len(shown) for _, shown, _ in folded]),
        np.array(list(folded.values()), dtype=float),
        ids,
        np.array([0, 3, 6]),
    )


@pytest.mark.parametrize("K", [1, 2, 3])
def test_lists_and_clicks_are_those_of_the_serps(K):
    found = Lists.of(patterns()).ranker(Q[0], np.array([13, 11, 12]), K)
    mine = [(shown[:K], sum(c[:K])) for q, shown, c in SERPS if q == 0 and len(shown) >= K]
    ids = np.array([13, 11, 12])[found.A]
    shares = {tuple(row): p for row, p in zip(ids.tolist(), found.p, strict=True)}
    for shown, share in shares.items():
        assert share == pytest.approx(sum(s == shown for s, _ in mine) / len(mine))
    assert sum(shares.values()) == pytest.approx(1.0)
    assert list(found.p) == sorted(found.p, reverse=True)
    clicks = np.array([c for _, c in mine])
    assert found.clicks == pytest.approx(clicks.mean())
    assert found.error == pytest.approx(clicks.std(ddof=1) / np.sqrt(len(clicks)))
    assert found.covered == pytest.approx(len(mine) / 10)


def test_lists_that_cannot_be_simulated_are_left_out_and_counted():
    found = Lists.of(patterns())
    assert found.ranker(Q[0], np.array([11, 12, 99]), 3) is None  # 13 was dropped
    some = found.ranker(Q[0], np.array([11, 12, 99]), 2)
    assert some.covered == 1.0
    assert found.ranker(Query(9, 0), np.array([11]), 1) is None
    assert found.ranker(Q[0], np.array([11, 12, 13]), 4) is None
    twice = Lists.of(patterns([(0, (11, 11, 13), (1, 0, 0)), *SERPS])).ranker(
        Q[0], np.array([11, 12, 13]), 3
    )
    assert twice.covered == pytest.approx(9 / 11)


def test_one_serp_has_no_standard_error():
    found = Lists.of(patterns([SERPS[0]])).ranker(Q[0], np.array([11, 12, 13]), 3)
    assert found.clicks == 2.0
    assert np.isnan(found.error)


def test_the_table_gives_the_same_lists_back():
    made = Lists.of(patterns())
    read = Lists.read(made.table())
    assert read.queries == Q
    for query, items in ((Q[0], np.array([11, 12, 13])), (Q[1], np.array([-6, -5, 12]))):
        a, b = made.ranker(query, items, 2), read.ranker(query, items, 2)
        assert a.A.tolist() == b.A.tolist()
        assert a[1].tolist() == b[1].tolist()
        assert a[2:] == b[2:]
    assert Lists.read(made.table().slice(0, 0)).ranker(Q[0], np.array([11]), 1) is None


def test_the_most_frequent_lists_and_queries_are_kept(monkeypatch):
    monkeypatch.setattr(module, "MOST_LISTS", 1)
    monkeypatch.setattr(module, "MOST_QUERIES", 1)
    found = Lists.of(patterns())
    assert found.queries == Q[:1]
    assert found.items.tolist() == [[11, 12, 13]]
    assert found.serps.tolist() == [5.0]
