"""serps -> click statistics."""

from __future__ import annotations

import pytest

from logeval.clicks.estimation.fold import Holdout, fold, held_out_rows
from logeval.clicks.estimation.patterns import patterns_of
from logeval.errors import LogevalError
from logeval.log.log import load
from logeval.log.queries import Query
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


def test_equal_serps_fold_and_test_serps_never_enter(log):
    rows = fold(log).to_pylist()
    found = {
        (r["query_id"], r["region_id"], tuple(r["items"]), r["clicks"]): r["count"] for r in rows
    }
    assert found == {
        (1, None, (10, 11, 12), 0b101): 2,
        (1, None, (10, 11, 12), 0): 1,
        (1, None, (11, 10), 0b10): 1,
        (2, 7, (20,), 1): 1,
        (2, 8, (20,), 1): 1,
    }


def test_top_queries_and_chosen_queries(log):
    assert patterns_of(fold(log, top_queries=2)).queries == [Query(1), Query(2, 7)]
    assert patterns_of(fold(log, queries=[Query(2, 8)])).queries == [Query(2, 8)]
    assert patterns_of(fold(log, queries=[Query(2)])).queries == [Query(2, 7), Query(2, 8)]
    with pytest.raises(LogevalError, match="no SERPs of query 5, 2@9"):
        fold(log, queries=[Query(5), Query(2, 9), Query(1)])


def test_a_share_is_held_out_by_session_whatever_the_order(tmp_path):
    serps = [Serp(1, [i % 7], [0], session_id=i // 2) for i in range(4000)]
    write_serps(tmp_path / "a", serps)
    write_serps(tmp_path / "b", serps[::-1], parts=4)
    logs = [load(tmp_path / name) for name in "ab"]
    first, second = (fold(log, holdout=0.25, seed=3) for log in logs)
    assert first.equals(second)
    held_out = held_out_rows(first)["count"].to_numpy().sum()
    assert 880 < held_out < 1120
    assert not first.equals(fold(logs[0], holdout=0.25, seed=4))


def test_days_are_held_out(log):
    assert held_out_rows(fold(log, holdout="days:2-3"))["count"].to_numpy().sum() == 4
    assert held_out_rows(fold(log, holdout="days:1"))["count"].to_numpy().sum() == 2
    for wrong in ("1.5", "days:x", "tenth"):
        with pytest.raises(LogevalError, match="write a share"):
            Holdout.parse(wrong)


def test_fifty_positions_fit_into_the_bits(tmp_path):
    clicks = [int(k % 3 == 0) for k in range(50)]
    log = load(write_serps(tmp_path / "log", [Serp(1, list(range(50)), clicks)]))
    assert patterns_of(fold(log)).clicks[0].astype(int).tolist() == clicks
