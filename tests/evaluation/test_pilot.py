"""A pilot: the runs that a comparison needs, by formula, by trying, and in words."""

import math

import numpy as np
import pytest

from logeval import evaluate
from logeval.evaluation.statistics.comparisons import compare, critical_value
from logeval.evaluation.statistics.pilot import FEWEST, POWER, needed, pilot_runs
from logeval.reports.pilot import duration, pilot_words

Z = 0.8416212


def test_one_query_needs_runs_by_student():
    pair = np.array([[-1.0, 1.0] * 20])
    s = pair.std(ddof=1)
    runs, queries = needed(pair, 0.4, 2)
    assert queries == 0
    enough = lambda n: (critical_value(n, 2) + Z) * s / math.sqrt(n) <= 0.4  # noqa: E731
    assert enough(int(runs))
    assert not enough(int(runs) - 1)


def test_the_runs_have_the_power():
    """Of samples of that many runs 80% tell the policies apart; 1,000 samples."""
    rng = np.random.default_rng(3)
    runs, _ = needed(rng.normal(0, 1, (1, 4000)), 0.3, 2)
    found = 0
    for _ in range(1000):
        d = rng.normal(0.3, 1, int(runs))
        x = np.stack([np.zeros_like(d), d], axis=1)[None] + 5.0
        found += compare(x).told_apart()[0, 1]
    assert abs(found / 1000 - POWER) < 4 * math.sqrt(POWER * (1 - POWER) / 1000) + 0.02


def test_queries_that_differ_need_more_of_them():
    rng = np.random.default_rng(1)
    between, within = rng.normal(0, 1.0, (6, 1)), rng.normal(0, 0.5, (6, 8))
    runs, queries = needed(between + within, 0.5, 2)
    assert math.isinf(runs)
    assert queries > 6
    alike = within - within.mean(axis=1, keepdims=True)
    runs, queries = needed(alike, 0.5, 2)
    assert runs < 20
    assert queries == 0
    more, _ = needed(alike, 0.2, 2)
    assert more > runs


def test_a_pilot_has_runs_enough_to_know_their_spread():
    assert pilot_runs(1) == 41
    assert pilot_runs(20) == FEWEST


@pytest.fixture(scope="module")
def runs():
    problem = "B_LB(L=8,K=2,p=0.2,gap=0.15,gamma=0.5)"
    return evaluate(problem=problem, policies=["dcmKL-UCB", "Random", "Oracle"], horizon=50,
                    pilot=True, quiet=True)  # fmt: skip


def test_evaluate_makes_a_pilot(runs):
    assert runs.table()["run"].nunique() == 41
    ((panel, need),) = runs.needs().items()
    assert set(need.policies) == {"dcmKL-UCB", "Random"}
    assert runs.folder is None
    first, last = pilot_words(runs)
    assert f"with {need.runs:,.0f} runs of its query." in first
    assert first.startswith(f"{panel.simulator}: two policies that differ by 10% in regret")
    assert last.startswith(f"Next: --runs {need.runs:,.0f}, about ")
    assert "the pilot made 41 runs in" in last


def test_one_policy_needs_nothing(runs):
    words = pilot_words(runs.only(["Random", "Oracle"]))
    assert words == ["A pilot needs at least two policies that lose anything, besides the Oracle."]


def test_times_have_units():
    assert [duration(s) for s in (0.2, 45, 400, 9000)] == [
        "1.00 seconds", "45.0 seconds", "6.67 minutes", "2.50 hours",
    ]  # fmt: skip
