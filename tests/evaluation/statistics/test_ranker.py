"""Break-even and its interval: crossings by hand, identities, and how often the interval holds."""

import numpy as np
import pytest

from logeval.evaluation.statistics.ranker import against_ranker, break_even, crossing, student
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
    t = np.linspace(1, 1000, 60)
    truth = -30.0 * np.minimum(t / 100, 1.0) + 0.1 * np.maximum(t - 100, 0.0)
    where = crossing(t, truth)
    level = rng.normal(size=(worlds, n, 1))
    slope = rng.normal(size=(worlds, n, 1))
    held = 0
    for w in range(worlds):
        gain = truth + 10.0 * level[w] * np.sqrt(t / 1000) + 0.02 * slope[w] * t
        found = break_even(t, *student(gain[:, None]))
        held += found["break_even_low"] <= where <= found["break_even_high"]
    assert abs(held / worlds - 0.95) < 3 * np.sqrt(0.95 * 0.05 / worlds)


def test_problems_of_other_panels_do_not_matter():
    one, other = rows({"A": [10.0]}), rows({"A": [10.0]}, simulator="PBM")
    facts = [problem("0@0", ranker=0.5), problem("0@0", "PBM", ranker=0.9, reward="clicks")]
    found = runs_of(one, other, problems=facts).against_ranker().set_index("simulator")
    assert found["unit"].to_dict() == {"DCM": "satisfaction", "PBM": "clicks"}
    assert found["ranker"].to_dict() == {"DCM": 0.5, "PBM": 0.9}
    assert against_ranker(one, runs_of(one, problems=facts[:1]).problems()).shape[0] == 1
