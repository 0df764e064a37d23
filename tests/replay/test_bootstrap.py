"""The folding of a log into patterns and clusters, and resampling in the space of counts."""

import numpy as np
import pytest

from logeval.replay.estimators import parse_estimators
from logeval.replay.logged import parts_sql, read_logged, resampled
from logeval.replay.values import Values
from logeval.running import seeds
from tests.replay.worlds import logged_of, target_of
from tests.serps import Serp, write_serps


@pytest.fixture(scope="module")
def serps():
    rng = seeds.generator(1, "serps")
    n = 300
    lists = np.array([rng.permutation(4)[:3] for _ in range(n)])
    clicks = (rng.random((n, 3)) < 0.4).astype(int)
    session, query = rng.integers(0, 150, n), rng.integers(0, 2, n)
    return lists, clicks, session, query


def serp_rows(serps):
    lists, clicks, session, query = serps
    return [
        Serp(int(q), a, c, int(s), day=int(s) % 3)
        for a, c, s, q in zip(lists.tolist(), clicks.tolist(), session, query, strict=True)
    ]


def test_the_log_is_folded_as_a_loop_does_it(tmp_path, serps):
    found = read_logged(write_serps(tmp_path / "log", serp_rows(serps), parts=3))
    expected = logged_of(*serps)
    assert found.patterns.count.sum() == 300
    for name in ("query", "items", "clicks", "count"):
        a, b = getattr(found.patterns, name), getattr(expected.patterns, name)
        order = [np.lexsort((*x.clicks.T, *x.items.T)) for x in (found.patterns, expected.patterns)]
        assert (a[order[0]] == b[order[1]]).all()
    assert found.alone.sum() == expected.alone.sum()
    assert found.sessions.sum() == expected.sessions.sum()
    assert (found.alone + found.clusters @ found.sessions == found.patterns.count).all()
    sizes = [sorted(np.asarray(x.clusters.sum(axis=0)).ravel()) for x in (found, expected)]
    assert sizes[0] == sizes[1]


def test_test_serps_and_positions_below_are_left_out(tmp_path):
    rows = [Serp(1, [1, 2, 3], [0, 0, 2], 1), Serp(1, [1, 2], [1, 0], 2, test=True)]
    found = read_logged(write_serps(tmp_path / "log", rows), 2)
    assert found.patterns.items.shape == (1, 2)
    assert not found.patterns.clicks.any()


def test_parts_are_days_or_shares_of_sessions(tmp_path, serps):
    log = write_serps(tmp_path / "log", serp_rows(serps))
    assert set(read_logged(log, part=parts_sql(None, 0)).part) == {0, 1, 2}
    found = read_logged(log, part=parts_sql(4, 0))
    assert set(found.part) == {0, 1, 2, 3}
    again = read_logged(log, part=parts_sql(4, 1))
    assert (np.bincount(found.part, found.patterns.count) > 40).all()
    assert not np.array_equal(
        np.bincount(found.part, found.patterns.count), np.bincount(again.part, again.patterns.count)
    )


def test_sessions_are_resampled_whole(serps):
    """The covariance of the patterns' counts is that of one Poisson weight per session."""
    lists, clicks, session, query = serps
    logged = logged_of(lists, clicks, session, query)
    rounds = 4000
    W = np.concatenate(list(resampled(logged, rounds, 0)), axis=1)
    patterns = logged.patterns
    assert W.shape == (len(patterns.count), rounds)
    key = {
        (int(patterns.query[p]), *patterns.item_ids[patterns.items[p]], *patterns.clicks[p]): p
        for p in range(len(patterns.count))
    }
    ids = [q.query_id for q in patterns.queries]
    rank = {q: i for i, q in enumerate(ids)}
    member = np.zeros((150, len(key)))
    for a, c, s, q in zip(lists, clicks, session, query, strict=True):
        member[s, key[rank[int(q)], *a, *c.astype(bool)]] += 1
    expected = member.T @ member  # Poisson(1) has variance 1
    assert (member.sum(axis=0) == patterns.count).all()
    # sums over queries, over all patterns, and one contrast: variances within 5 standard errors
    rng = seeds.generator(2, "contrast")
    directions = [np.ones(len(key)), patterns.query == 0, rng.standard_normal(len(key))]
    for x in directions:
        variance = x @ expected @ x
        found = (x @ W).var()
        assert found == pytest.approx(variance, rel=5 * np.sqrt(2 / rounds))
    clustered = np.ones(len(key)) @ expected @ np.ones(len(key))
    assert clustered > 1.5 * 300  # SERPs on their own would have 300


def test_propensities_are_recomputed_in_each_round(serps):
    """With the log's own lists as target the value follows the resampled log."""
    lists, clicks, session, _ = serps
    logged = logged_of(lists, clicks, session, np.zeros(300, dtype=int))
    (estimator,) = parse_estimators(["IP"])
    target = target_of(logged, np.array([[0, 1, 2]]), [1.0])
    valued = Values(logged, target, [estimator])
    W = next(resampled(logged, 5, 0))
    together = valued.values(W, {})[estimator][0]
    for b in range(5):
        patterns = logged.patterns
        ids, weight = patterns.item_ids[patterns.items], W[:, b]
        expected = sum(
            (weight * (ids[:, k] == k) * patterns.clicks[:, k]).sum()
            / (weight * (ids[:, k] == k)).sum()
            for k in range(3)
        )
        assert together[b] == pytest.approx(expected, abs=1e-5)


def test_blocks_do_not_depend_on_the_number_of_rounds_asked_for(serps):
    logged = logged_of(*serps)
    few, many = (next(resampled(logged, n, 7))[:, :3] for n in (64, 100))
    assert (few == many).all()
