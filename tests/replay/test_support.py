"""How far an estimate rests on the log: figures of two queries and two positions, by hand."""

import numpy as np
import pytest

from logeval.replay.values import Support

# one column for each position, one row for each query; of query 1 one SERP in four has weight 4
SUPPORT = Support(
    supported=np.array([[1.0, 0.5], [0.9, 0.3]]),
    mass=np.array([[1.0, 1.0], [1.0, 0.5]]),
    weight=np.array([[8.0, 8.0], [10.0, 6.0]]),
    square=np.array([[8.0, 32.0], [20.0, 12.0]]),
    clipped=np.array([[1.0, 2.0], [1.0, 0.0]]),
    largest=np.array([[1.0, 4.0], [3.0, 7.0]]),
)
N = np.array([8.0, 10.0])
SHARE = np.array([0.25, 0.75])


def overall(columns):
    return {name: values[0] for name, values in columns.items()}


def test_the_figures_of_each_query():
    found = SUPPORT.columns(N, SHARE, enough=0.5)
    assert found["support"][1:] == pytest.approx([1.5 / 2.0, 1.2 / 1.5])  # of what the target shows
    assert found["clipped"][1:] == pytest.approx([3 / 16, 1 / 20])  # of SERPs times positions
    assert found["largest_weight"][1:].tolist() == [4.0, 7.0]
    assert found["supported_positions"][1:].tolist() == [2, 2]  # 0.5 / 1 and 0.3 / 0.5 are enough


def test_effective_serps_are_the_mean_over_positions():
    """Kish: (sum of weights)^2 / sum of squares; 8 SERPs of weight 1 are 8, two of weight 4 two."""
    found = SUPPORT.columns(N, SHARE, enough=0.5)
    assert found["effective_serps"][1:] == pytest.approx([(8 + 2) / 2, (5 + 3) / 2])


def test_a_position_that_no_serp_supports_has_no_effective_serps():
    none = Support(*(np.array([[1.0, 0.0]]) * x for x in (1.0, 1.0, 6.0, 9.0, 0.0, 2.0)))
    found = none.columns(np.array([9.0]), np.ones(1), enough=0.5)
    assert found["effective_serps"][1:] == pytest.approx([(4 + 0) / 2])
    assert found["effective_serps"][0] == pytest.approx((4 + 0) / 2)


def test_positions_have_support_up_to_the_first_that_has_not():
    supported = np.array([[0.5, 0.9, 0.2, 0.9], [0.4, 1.0, 1.0, 1.0], [1.0, 1.0, 0.6, 0.5]])
    one = np.ones_like(supported)
    f = Support(supported, one, one, one, one, one)
    third = np.full(3, 1 / 3)
    assert f.columns(np.ones(3), third, enough=0.5)["supported_positions"][1:].tolist() == [2, 0, 4]
    # over the queries: 1.9 / 3, 2.9 / 3, 1.8 / 3, 2.4 / 3
    for enough, K in ((0.5, 4), (0.6, 4), (0.61, 2), (0.64, 0)):
        found = f.columns(np.ones(3), third, enough)["supported_positions"][0]
        assert found == K, enough


def test_a_position_that_the_target_leaves_empty_is_not_without_support():
    f = Support(*(np.array([[1.0, 0.0, 1.0]]) for _ in range(6)))
    found = f.columns(np.ones(1), np.ones(1), enough=0.9)
    assert found["supported_positions"][1:].tolist() == [3]
    assert found["supported_positions"][0] == 3


def test_of_whole_lists_the_positions_are_those_of_their_beginnings():
    """A list has support or not; what it would have at a smaller K is told by ``at_positions``."""
    one = np.ones((2, 3))
    f = Support(0.2 * one, one, one, one, one, one)
    at = np.array([[0.9, 0.7, 0.2], [0.9, 0.2, 0.2]])
    found = f.columns(np.ones(2), np.array([0.75, 0.25]), 0.5, at)
    assert found["supported_positions"][1:].tolist() == [2, 1]
    assert found["support"][1:] == pytest.approx([0.2, 0.2])
    assert found["supported_positions"][0] == 2  # 0.9, 0.575, 0.2
    assert found["support"][0] == pytest.approx(0.2)
    assert found["clipped"][1:].tolist() == [1.0, 1.0]  # at each of the three positions
    assert found["clipped"][0] == 1.0


def test_the_figures_of_all_queries():
    found = overall(SUPPORT.columns(N, SHARE, enough=0.5))
    assert found["support"] == pytest.approx((0.25 * 1.5 + 0.75 * 1.2) / (0.25 * 2 + 0.75 * 1.5))
    assert found["clipped"] == pytest.approx(4 / (18 * 2))
    assert found["largest_weight"] == 7.0
    assert found["supported_positions"] == 2  # (0.25 * 0.5 + 0.75 * 0.3) / (0.25 + 0.75 * 0.5)
    # a SERP counts for 0.25 / 8 or 0.75 / 10 of the value, times its weight
    a, b = 0.25 / 8, 0.75 / 10
    first = (a * 8 + b * 10) ** 2 / (a**2 * 8 + b**2 * 20)
    second = (a * 8 + b * 6) ** 2 / (a**2 * 32 + b**2 * 12)
    assert found["effective_serps"] == pytest.approx((first + second) / 2)


@pytest.mark.parametrize("n", [[30.0, 10.0], [1.0, 3.0]])
def test_serps_of_equal_weight_are_all_effective(n):
    """However they are spread over queries, as long as each counts the same."""
    n = np.array(n)
    one, each = np.ones((2, 2)), n[:, None] * [1.0, 1.0]
    found = Support(one, one, each, each, 0 * one, one).columns(n, n / n.sum(), enough=0.5)
    assert found["effective_serps"][1:] == pytest.approx(n)
    assert found["effective_serps"][0] == pytest.approx(n.sum())


def test_one_serp_of_one_result():
    f = Support(*(np.array([[x]]) for x in (1.0, 1.0, 0.5, 0.25, 1.0, 0.5)))
    found = f.columns(np.ones(1), np.ones(1), enough=0.5)
    assert (found["clipped"][1], found["clipped"][0]) == (1.0, 1.0)
    assert (found["largest_weight"][1], found["largest_weight"][0]) == (0.5, 0.5)


def test_a_query_that_the_target_does_not_show_counts_for_nothing():
    found = SUPPORT.columns(N, np.array([1.0, 0.0]), enough=0.5)
    alone = Support(*(getattr(SUPPORT, name)[:1] for name in vars(SUPPORT)))
    assert overall(found) == pytest.approx(overall(alone.columns(N[:1], np.ones(1), 0.5)))
    assert found["clipped"][0] == pytest.approx(3 / 16)
    assert found["largest_weight"][0] == 4.0


def test_a_query_without_serps_divides_by_nothing():
    zero = np.zeros((1, 2))
    f = Support(zero, zero + 1.0, zero, zero, zero, zero)
    found = f.columns(np.zeros(1), np.ones(1), enough=0.5)
    assert (found["support"][1], found["effective_serps"][1], found["clipped"][1]) == (
        0.0,
        0.0,
        0.0,
    )
    assert (found["effective_serps"][0], found["clipped"][0]) == (0.0, 0.0)
    assert found["supported_positions"][0] == found["supported_positions"][1] == 0
