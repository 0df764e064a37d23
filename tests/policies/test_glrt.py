"""The test for a change: corners of the walk are enough, and it says so when users change."""

import math

import numpy as np
import pytest

from logeval.policies import glrt
from logeval.policies.shared.options import error_of, exploration_of
from logeval.tracks.lists import b_lb
from tests.policies.running import make, one_replica, reference_of, steps, users_of
from tests.references import glrt as paper
from tests.references.bounds import kl


def largest_ratio(X):
    """Of all splits."""
    n, x = len(X), np.cumsum(X)[:-1]
    s, mean = np.arange(1, n), np.full(n - 1, np.mean(X))
    return (s * kl(x / s, mean) + (n - s) * kl((sum(X) - x) / (n - s), mean)).max()


@pytest.mark.parametrize("seed", range(30))
def test_the_largest_ratio_is_at_a_corner_of_the_walk(seed):
    generator = np.random.default_rng(seed)
    p = generator.random() ** 3
    X = (generator.random(400) < np.where(np.arange(400) < generator.integers(400), p, 0.3)) * 1
    walks = one_replica(glrt.Walks(), 2)
    for n, click in enumerate(X, start=1):
        glrt.add(1, click, walks)
        if n > 1 and n % 13 == 0:
            mean, total = X[:n].mean(), X[:n].sum()
            found = [
                s * kl(x / s, mean) + (n - s) * kl((total - x) / (n - s), mean)
                for side in range(2)
                for s, x in walks.corner[1, side, : walks.size[1, side] - 1]
            ]
            assert max(found, default=0.0) == pytest.approx(largest_ratio(X[:n]), abs=1e-9)
            for delta in (0.9, 0.05, 1e-6):
                assert glrt.changed(1, delta, walks) == paper.changed(X[:n].tolist(), delta)
    assert walks.n.tolist() == [0, 400]


def test_the_threshold_by_hand():
    """Ten misses, then m hits: the best split is there, and has 10 ln(n / 10) + m ln(n / m)."""
    for m in range(1, 11):
        n, X = 10 + m, [0] * 10 + [1] * m
        ratio = 10 * math.log(n / 10) + m * math.log(n / m)
        delta = 3.0 * n**1.5 / math.exp(ratio)  # log(3 n^1.5 / delta) is the ratio
        walks = one_replica(glrt.Walks(), 1)
        for click in X:
            glrt.add(0, click, walks)
        for factor, rings in ((1.001, True), (0.999, False)):
            assert paper.changed(X, factor * delta) == rings
            assert glrt.changed(0, factor * delta, walks) == rings


def test_a_new_start_forgets_all_items_and_the_clock():
    given = "GLRT-CascadeUCB(p=0,delta=0.9)", users_of(b_lb(4, 2, 0.6, 0.5)), 300
    policy, reference = make(*given), reference_of(*given)
    for t in range(1, 201):  # all is clicked at first, and later nothing is
        A = policy.recommend(t)
        clicks = np.array([[int(t < 100), 0]], dtype=np.int8)
        reference.update(t, A[0], clicks[0])
        policy.update(t, A, clicks)
        if policy.memory.start[0, 0] == t:
            break
    assert 100 <= t < 200
    assert not policy.memory.walks.n.any()
    assert not policy.memory.walks.size.any()
    assert reference.tau == t
    assert reference.X == [[]] * 4


def test_few_corners_are_kept_of_a_long_walk():
    generator = np.random.default_rng(3)
    walks = one_replica(glrt.Walks(), 1)
    for click in generator.random(50_000) < 0.3:
        glrt.add(0, int(click), walks)
    assert 6 <= walks.size[0].max() <= 40


@pytest.mark.parametrize("name", ["GLRT-CascadeUCB", "GLRT-CascadeKL-UCB"])
def test_it_starts_again_after_a_change_and_not_before(name):
    users = users_of(b_lb(6, 2, 0.6, 0.5), runs=4)
    policy = make(name, users, 4000)
    starts = []
    for t, A, clicks in steps(policy, users, 4000):
        if t > 2000:  # the best items are not attractive any more
            clicks[:] = 0
            clicks[:, 0] = A[:, 0] % 3 == 0
        starts.append(policy.memory.start[:, 0].copy())
    assert not np.any(starts[1999])  # no false alarm; delta is 1 in 4000
    assert (np.array(starts[2600]) > 2000).all()


def test_rounds_show_every_item_first():
    users = users_of(b_lb(6, 2, 0.6, 0.5))
    policy = make("GLRT-CascadeUCB(p=0.5)", users, 100)
    first = [A[0, 0] for _, A, _ in steps(policy, users, 100)]
    assert first[:6] == first[12:18] == list(range(6))


def test_defaults_by_hand():
    assert exploration_of(None, 10, 10_000) == 1_041  # 10 / (sqrt(10 ln 10,000 / 10,000) / 10)
    assert exploration_of(0.5, 10, 10_000) == 20
    assert exploration_of(0.0, 10, 10_000) == 0
    assert error_of(None, 10_000) == 1e-4
