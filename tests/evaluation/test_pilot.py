"""A pilot: the runs that a comparison needs, by formula, by trying, and in words."""

import math

import numpy as np
import pandas as pd
import pytest

from logeval import evaluate
from logeval.evaluation.statistics.intervals import compare, critical_value
from logeval.evaluation.statistics.summary import FEWEST, POWER, Need, need, needed, pilot_runs
from logeval.reports.verdict import duration, pilot_words

Z = 0.8416212


def test_one_query_needs_runs_by_student():
    pair = np.array([[-1.0, 1.0] * 20])
    s = pair.std(ddof=1)
    runs, queries = needed(pair, 0.4, 2)
    assert math.isnan(queries)
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
    assert queries <= 6
    more, _ = needed(alike, 0.2, 2)
    assert more > runs


def test_the_queries_have_the_power_and_are_known_within_their_range():
    """Of samples of so many queries 80% tell the policies apart; pilots of 8 and of 25 queries."""
    rng = np.random.default_rng(5)

    def drawn(Q, move=0.0):
        base = rng.gamma(20.0, 0.5, (Q, 1, 1))
        second = base + move + rng.normal(0, 2.0, (Q, 1, 1))
        return np.concatenate([base, second], axis=2) + rng.normal(0, 0.5, (Q, 3, 2))

    def rows(x):
        q, n, p = np.indices(x.shape).reshape(3, -1)
        names = np.array(["A", "B"])[p]
        return pd.DataFrame({"query": q, "draw": 0, "run": n, "policy": names, "regret": x.ravel()})

    truth = need(rows(drawn(4000, 1.0))).queries_needed
    size = round(truth)
    told = [compare(drawn(size, 1.0)).told_apart()[0, 1] for _ in range(400)]
    assert abs(np.mean(told) - POWER) < 4 * math.sqrt(POWER * (1 - POWER) / 400) + 0.02
    for Q in (8, 25):
        found = [need(rows(drawn(Q, 1.0))) for _ in range(150)]
        held = np.mean([one.queries_low <= truth <= one.queries_high for one in found])
        assert abs(held - 0.8) < 4 * math.sqrt(0.16 / 150)


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


class Said:
    """Runs of which a pilot says what it is told to."""

    seconds = None

    def __init__(self, need):
        self.need = need

    def table(self):
        return pd.DataFrame({"run": [0, 1, 2]})

    def needs(self):
        return {"panel": self.need}

    def title(self, panel):
        return "DCM"


def test_the_words_name_runs_and_queries():
    def said(runs, *queries):
        return pilot_words(Said(Need(("A", "B"), 1.0, 8, runs, *queries)))[0]

    text = said(math.inf, 60.0, 31.0, 120.0)
    assert "with about 60 queries (31 to 120) with 3 runs of each. No number of runs" in text
    assert "of these 8 is enough" in text
    assert "Next: fit more queries (fit-models --top-queries)" in text
    text = said(14.0, 12.0, 8.0, 20.0)
    assert "with 14 runs of each of its 8 queries, or about 12 queries (8 to 20)" in text
    assert text.endswith(" with 3 runs of each.")
    assert "no number of runs or queries" in said(math.inf, math.inf, math.inf, math.inf)


def test_times_have_units():
    assert [duration(s) for s in (0.2, 45, 400, 9000)] == [
        "1.00 seconds", "45.0 seconds", "6.67 minutes", "2.50 hours",
    ]  # fmt: skip
