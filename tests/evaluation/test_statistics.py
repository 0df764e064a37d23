import numpy as np
import pyarrow as pa
import pytest

from logeval.evaluation import Runs, statistics
from logeval.tables import RUNS


def test_the_mean_gives_queries_equal_weight():
    x = np.array([[1.0, 3.0], [10.0, np.nan]])
    assert statistics.mean(x) == pytest.approx((2 + 10) / 2)


def test_the_standard_error_is_over_runs_of_averages_over_queries():
    x = np.array([[1.0, 3.0, 5.0], [3.0, 5.0, 7.0]])  # averages 2, 4, 6: deviation 2
    assert statistics.standard_error(x) == pytest.approx(2 / 3**0.5)
    assert np.isnan(statistics.standard_error(x[:, :1]))


def test_holm_worked_out_by_hand():
    p = np.array([0.04, np.nan, 0.01, 0.03])
    corrected = statistics.holm(p)
    assert corrected[[2, 3, 0]] == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(corrected[1])


def test_sign_flips_worked_out_by_hand():
    assert statistics.sign_flip_p(np.array([[1.0, 2.0, 3.0]])) == 2 / 8
    assert statistics.sign_flip_p(np.array([[1.0, -1.0]])) == 1.0
    by_query = np.array([[1.0, 3.0], [2.0, 2.0], [4.0, np.nan]])  # means 2, 2, 4
    assert statistics.sign_flip_p(by_query) == 2 / 8


def test_sign_flips_hold_their_level():
    rng = np.random.default_rng(0)
    p = [statistics.sign_flip_p(rng.normal(size=(1, 8)), seed) for seed in range(300)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.04)


def test_bootstrap_intervals_of_many_runs_agree_with_the_normal_ones():
    x = np.random.default_rng(0).normal(size=(1, 400))
    low, high = statistics.interval(statistics.bootstrap_means(x))
    assert high - low == pytest.approx(2 * 1.96 * x.std() / 20, rel=0.1)


def test_the_bootstrap_sees_the_spread_of_queries():
    rng = np.random.default_rng(0)
    queries = 10 * rng.normal(size=(30, 1))
    x = queries + rng.normal(size=(30, 5))
    low, high = statistics.interval(statistics.bootstrap_means(x))
    assert high - low == pytest.approx(2 * 1.96 * queries.std() / 30**0.5, rel=0.25)


def test_the_bootstrap_leaves_padding_out():
    x = np.array([[1.0, 1.0, 1.0], [1.0, np.nan, np.nan]])
    assert (statistics.bootstrap_means(x, resamples=50) == 1.0).all()


def rows(**regret):
    """Runs of one query, one checkpoint: regret by policy and run."""
    flat = [(p, run, value) for p, values in regret.items() for run, value in enumerate(values)]
    n = len(flat)
    columns = {
        "simulator": ["DCM"] * n,
        "track": ["ranking"] * n,
        "policy": [p for p, _, _ in flat],
        "query": ["1@0"] * n,
        "run": [run for _, run, _ in flat],
        "t": [100] * n,
        "regret": [float(v) for _, _, v in flat],
        "reward": [50.0 - v for _, _, v in flat],
        "optimal_reward": [50.0] * n,
        "clicks": [0] * n,
        "optimal_steps": [25] * n,
    }
    for name in RUNS.names[len(columns) :]:  # nullable
        columns[name] = pa.nulls(len(columns["t"]))
    return Runs(pa.table(columns).cast(RUNS))


def test_summary_worked_out_by_hand():
    summary = rows(Oracle=[0, 0, 0], A=[10, 12, 14], B=[20, 24, 28]).summary().set_index("policy")
    assert summary.index.tolist() == ["Oracle", "A", "B"]
    assert summary.loc["B", "regret"] == 24
    assert summary.loc["B", "relative_regret"] == pytest.approx(24 / 50)
    assert summary.loc["B", "share_of_optimum"] == pytest.approx(26 / 50)
    assert summary.loc["B", "optimal_steps"] == pytest.approx(0.25)
    assert summary.loc["B", "difference"] == 12  # to A: the Oracle is not a competitor
    assert summary.loc["B", "difference_low"] >= 10
    assert summary.loc["B", "p"] == 2 / 8
    assert np.isnan(summary.loc["A", "p"])


def test_differences_are_paired():
    noise = np.random.default_rng(0).normal(scale=50, size=40)
    paired = rows(A=100 + noise, B=101 + noise).summary().set_index("policy")
    assert paired.loc["B", "difference_low"] == pytest.approx(1.0)
    assert paired.loc["B", "p"] < 0.01
    assert paired.loc["B", "low"] < paired.loc["A", "high"]


def test_policies_are_compared_on_the_runs_that_all_have():
    summary = rows(A=[10, 10, 10, 1000], B=[20, 20, 20]).summary().set_index("policy")
    assert summary.loc["A", "regret"] == 10
