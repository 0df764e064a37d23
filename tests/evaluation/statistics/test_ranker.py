"""Break-even and its interval: crossings by hand, identities, and how often the interval holds."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from logeval.evaluation.statistics.ranker import (
    against_ranker,
    break_even,
    crossing,
    earned,
    student,
)
from tests.reports.tables import problem, rows, runs_of

T = np.array([1.0, 10.0, 50.0, 100.0])


@pytest.mark.parametrize(
    ("y", "step"),
    [
        ([0.0, 1.0, 2.0, 3.0], 0.0),  # never behind
        ([-1.0, -2.0, -3.0, -0.1], np.inf),  # never ahead
        ([-1.0, -2.0, 2.0, 3.0], 30.0),  # halfway from 10 to 50
        ([-1.0, 2.0, -1.0, 1.0], 75.0),  # behind again: the last time counts
        ([-1.0, -1.0, -1.0, 0.0], 100.0),
    ],
)
def test_break_even_is_where_the_gain_stays_above_zero(y, step):
    assert crossing(T, np.array(y)) == step


def test_cost_is_the_deepest_point_and_nothing_where_it_is_never_behind():
    gain = np.array([-1.0, -4.0, -2.0, 6.0])
    found = break_even(T, gain, gain - 1.0, gain + 1.0)
    assert (found["cost"], found["cost_low"], found["cost_high"]) == (4.0, 3.0, 5.0)
    assert found["gain"] == pytest.approx(0.06)
    assert found["break_even_low"] < found["break_even"] < found["break_even_high"]
    assert break_even(T, gain + 10, gain + 9, gain + 11)["cost"] == 0.0


def test_the_cost_may_be_as_high_as_the_deepest_lower_end():
    """A gain that is known less and less may be deepest where it seems to have recovered."""
    gain, half = np.array([-1.0, -4.0, -2.0, 6.0]), np.array([0.1, 1.0, 7.0, 11.0])
    found = break_even(T, gain, gain - half, gain + half)
    assert (found["cost"], found["cost_low"], found["cost_high"]) == (4.0, 3.0, 9.0)
    assert found["break_even_high"] == np.inf


def test_without_an_interval_of_the_gain_there_is_none_of_the_break_even():
    gain, nothing = np.array([-1.0, -4.0, -2.0, 6.0]), np.full(4, np.nan)
    found = break_even(T, gain, nothing, nothing)
    assert found["break_even"] == pytest.approx(62.5)
    assert np.isnan([found["break_even_low"], found["break_even_high"], found["cost_low"]]).all()


def test_a_reward_above_the_ranker_from_the_start_breaks_even_at_once():
    runs = runs_of(
        rows({"A": [10.0, 20.0], "B": [60.0, 50.0]}),
        problems=[problem("0@0", ranker=0.5), problem("1@0", ranker=0.5)],
    )
    found = runs.against_ranker().set_index("policy")
    # regret 5, 9, 10 (10, 18, 20) of 1, 50, 100: behind at first, since regret is half at t = 1
    assert found.loc["A", "break_even"] < 50
    assert found.loc["A", "gain"] == pytest.approx((100 - 15 - 50) / 100)
    assert found.loc["B", "break_even"] == np.inf
    assert found.loc["B", "cost"] == pytest.approx(max(55 * 0.5 - 0.5, 55 * 0.9 - 25, 5))
    assert found["ranker"].tolist() == [0.5, 0.5]
    assert found["best"].tolist() == [1.0, 1.0]
    # the last tenth of the steps: from 50, the nearest that was recorded, to 100
    assert found.loc["A", "reward"] == pytest.approx((50 - 1.5) / 50)
    by_query = runs.against_ranker(by_query=True)
    assert by_query["query"].tolist() == ["0@0", "0@0", "1@0", "1@0"]


def test_where_no_ranker_is_known_its_columns_are_missing():
    runs = runs_of(rows({"A": [10.0, 20.0]}), problems=[problem("0@0"), problem("1@0")])
    found = runs.against_ranker().iloc[0]
    assert np.isnan([found["ranker"], found["break_even"], found["cost"], found["gain"]]).all()
    assert found["reward"] > 0


def test_ranker_and_best_are_those_of_the_same_draw():
    frame = rows({"A": [10.0]})
    frames = [frame.assign(draw=d + 1, reward=frame["t"] * r) for d, r in enumerate((0.6, 0.4))]
    facts = [
        problem("0@0", draw=1, ranker=0.6, best=0.7),
        problem("0@0", draw=2, ranker=0.4, best=0.5),
    ]
    found = runs_of(*frames, problems=facts).against_ranker().iloc[0]
    assert found["gain"] == pytest.approx(0.0)
    assert found["ranker"] == pytest.approx(0.5)
    assert found["best"] == pytest.approx(0.6)
    # earned just what the ranker earns, in both draws
    assert found["gain_high"] - found["gain_low"] == pytest.approx(0.0, abs=1e-12)


def test_the_interval_of_the_break_even_holds_in_95_percent():
    """Gains that are normal around a known curve: the interval must hold its crossing."""
    rng, worlds, n = np.random.default_rng(5), 2000, 12
    steps = np.linspace(1, 1000, 60)
    truth = -30.0 * np.minimum(steps / 100, 1.0) + 0.1 * np.maximum(steps - 100, 0.0)
    where, cost = crossing(steps, truth), -truth.min()
    level = rng.normal(size=(worlds, n, 1))
    slope = rng.normal(size=(worlds, n, 1))
    held = enough = 0
    for w in range(worlds):
        gain = truth + 10.0 * level[w] * np.sqrt(steps / 1000) + 0.02 * slope[w] * steps
        found = break_even(steps, *student(gain[:, None]))
        held += found["break_even_low"] <= where <= found["break_even_high"]
        enough += found["cost_low"] <= cost <= found["cost_high"]
    error = np.sqrt(0.95 * 0.05 / worlds)
    assert abs(held / worlds - 0.955) < 3 * error  # a little more, for skewness that is none
    assert enough / worlds > 0.95 - 3 * error  # at least, wherever it is deepest


def coverage(x, truth):
    """The share of intervals of samples (Q, ..., T), T experiments, that hold their truth."""
    _, low, high = student(x)
    return ((low <= truth) & (truth <= high)).mean(), (high < truth).mean(), (low > truth).mean()


def test_draws_of_one_query_hold_one_draw_more():
    """The truth of a query is one draw of its posterior: 95% with as few as four of them."""
    rng, many = np.random.default_rng(7), 40_000
    drawn, truth = rng.normal(size=(1, 4, 1, many)), rng.normal(size=many)
    held, *_ = coverage(drawn, truth)
    assert abs(held - 0.95) < 3 * np.sqrt(0.95 * 0.05 / many)  # without 1 + 1/D: .930


def test_symmetric_gains_have_students_interval():
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]).reshape(5, 1, 1)
    mean, low, high = student(x)
    assert mean == pytest.approx(0.0)
    assert high == pytest.approx(t.ppf(0.975, 4) * np.sqrt(2.5 / 5))
    assert low == pytest.approx(-high)


def test_the_end_on_the_long_side_of_skewed_gains_is_moved_out():
    """Ten exponential gains: Student's interval holds .900, and ends too low in .096."""
    rng, many = np.random.default_rng(8), 20_000
    x = rng.exponential(size=(10, 1, many))
    held, too_low, too_high = coverage(x, 1.0)
    error = np.sqrt(0.95 * 0.05 / many)
    assert held > 0.925 - 3 * error
    assert too_low < 0.075 + 3 * error
    assert coverage(-x, -1.0) == (held, too_high, too_low)
    assert student(np.ones((10, 1, 1)))[1:] == (1.0, 1.0)  # no spread, no skewness


def test_a_reward_is_not_said_to_be_negative():
    frame = rows({"A": [99.9, 10.0]})
    found = runs_of(frame, problems=[problem("0@0"), problem("1@0")]).against_ranker().iloc[0]
    assert found["low"] == 0.0 < found["reward"] < found["high"]


def test_problems_of_other_panels_do_not_matter():
    one, other = rows({"A": [10.0]}), rows({"A": [10.0]}, simulator="PBM")
    facts = [problem("0@0", ranker=0.5), problem("0@0", "PBM", ranker=0.9, reward="clicks")]
    found = runs_of(one, other, problems=facts).against_ranker().set_index("simulator")
    assert found["unit"].to_dict() == {"DCM": "satisfaction", "PBM": "clicks"}
    assert found["ranker"].to_dict() == {"DCM": 0.5, "PBM": 0.9}
    known = runs_of(one, problems=facts[:1]).problems()
    assert against_ranker(earned(one, known)).shape[0] == 1


def drawn_gains(*gains):
    """The row of one query whose draws gain this much by steps 1, 50 and 100."""
    frame = rows({"A": [10.0]})
    frames = [frame.assign(draw=d, reward=0.5 * frame["t"] + g) for d, g in enumerate(gains, 1)]
    facts = [problem("0@0", draw=d, ranker=0.5) for d in range(1, len(gains) + 1)]
    return runs_of(*frames, problems=facts).against_ranker().iloc[0]


def test_half_of_the_draws_of_a_query_break_even_before_it_does():
    """One draw of three gains much: the mean gain is never behind, yet most draws are."""
    found = drawn_gains([5.0, 50.0, 90.0], [-1.0, -5.0, 5.0], [-1.0, -4.0, 4.0])
    assert found["break_even"] == pytest.approx(75.0)  # halfway from 50 to 100
    assert found["break_even_low"] <= 75.0 <= found["break_even_high"]
    assert found["cost"] == 0.0  # which is that of the mean


def test_the_break_even_of_draws_is_within_its_interval():
    found = drawn_gains([1.0, 2.0, 3.0], [-1.0, -2.0, -1e-6], [-1.0, -2.0, -1e-6])
    assert found["break_even_low"] <= found["break_even"] <= found["break_even_high"]


def test_of_several_queries_the_break_even_is_that_of_the_mean_gain():
    frame = rows({"A": [10.0, 10.0]})
    gains = {("0@0", 1): 5.0, ("0@0", 2): -1.0, ("1@0", 1): -1.0, ("1@0", 2): -1.0}
    earned_ = pd.concat([frame.assign(draw=d) for d in (1, 2)], ignore_index=True)
    gain = [gains[q, d] for q, d in zip(earned_["query"], earned_["draw"], strict=True)]
    runs = runs_of(
        earned_.assign(reward=0.5 * earned_["t"] + gain),
        problems=[problem(q, draw=d, ranker=0.5) for q, d in gains],
    )
    assert runs.against_ranker().iloc[0]["break_even"] == 0.0  # 0.5 on average
