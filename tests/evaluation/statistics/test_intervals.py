import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from logeval.errors import LogevalError
from logeval.evaluation.results import Runs
from logeval.evaluation.statistics import intervals
from logeval.evaluation.statistics.intervals import compare, compare_ratios, critical_value, p_of
from logeval.storage.schemas import RUNS


def test_the_mean_gives_queries_equal_weight():
    x = np.array([[1.0, 3.0], [10.0, np.nan]])
    assert intervals.mean(x) == pytest.approx((2 + 10) / 2)


def test_the_standard_error_is_over_runs_of_averages_over_queries():
    x = np.array([[1.0, 3.0, 5.0], [3.0, 5.0, 7.0]])  # averages 2, 4, 6: deviation 2
    assert intervals.standard_error(x) == pytest.approx(2 / 3**0.5)
    assert intervals.standard_error(x[:, :2]) == pytest.approx(2**0.5 / 2**0.5)
    assert np.isnan(intervals.standard_error(x[:, :1]))
    y = np.array([[1.0, 3.0, 5.0], [1.0, 9.0, 7.0]])  # averages 1, 6, 6
    assert intervals.standard_error(y) == pytest.approx((25 / 3) ** 0.5 / 3**0.5)


def test_units_are_queries_or_the_runs_of_a_single_one():
    assert intervals.units(np.array([[1.0, 3.0], [10.0, np.nan]])).values.tolist() == [2.0, 10.0]
    assert intervals.units(np.array([[1.0, np.nan, 3.0]])).values.tolist() == [1.0, 3.0]


def test_a_run_that_lacks_a_checkpoint_is_no_unit_of_a_single_query():
    x = np.array([[[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]]])
    assert intervals.units(x).values.tolist() == [[2.0, 3.0], [4.0, 5.0]]


def test_the_mean_gives_draws_equal_weight():
    x = np.array([[[[0.0], [4.0]], [[10.0], [np.nan]]]])  # one query, draws of two runs and of one
    assert intervals.mean(x) == pytest.approx((2 + 10) / 2)


def test_the_error_of_one_unit_is_unknown_for_each_policy():
    error = intervals.units(np.array([[[8.0, 9.0]]])).error()
    assert error.shape == (2,)
    assert np.isnan(error).all()


def test_units_with_draws_are_the_draws_of_all_queries():
    """The mean over Q queries has Q draws in it, however many were drawn of each."""
    x = np.arange(12.0).reshape(2, 3, 2, 1)  # two queries, three draws, two runs, one checkpoint
    both = intervals.units(x)
    assert both.values.tolist() == [[0.5], [2.5], [4.5], [6.5], [8.5], [10.5]]
    assert (both.n, both.size) == (2, 2)
    assert both.error() == pytest.approx(np.std(both.values, ddof=1) / math.sqrt(2))
    one = intervals.units(x[:1])
    assert one.values.tolist() == [[0.5], [2.5], [4.5]]
    assert (one.n, one.size) == (1, 3)
    assert one.error() == pytest.approx(2.0)
    assert intervals.mean(x) == pytest.approx(5.5)


def test_two_units_have_an_interval_and_one_has_none():
    # mean 10, standard error 2, Student's quantile 12.706205 at 1 degree of freedom
    low, _ = intervals.interval(np.array([[8.0, 12.0]]))
    assert low == pytest.approx(10 * math.exp(-12.706205 * 0.2), rel=1e-6)
    assert intervals.units(np.array([[8.0, 12.0]])).error() == pytest.approx(2.0)
    assert np.isnan(intervals.units(np.array([[8.0]])).error())
    R, low, _ = intervals.ratio(np.array([[8.0, 12.0]]), np.array([[20.0, 20.0]]))
    assert (R, low) == pytest.approx((0.5, 0.5 * math.exp(-12.706205 * 0.2)), rel=1e-6)


def test_interval_worked_out_by_hand():
    # mean 10, standard error 2 / sqrt 3, Student's quantile 4.302653 at 2 degrees of freedom
    low, high = intervals.interval(np.array([[8.0, 10.0, 12.0]]))
    c, r = 4.302653, 0.2 / math.sqrt(3)
    assert low == pytest.approx(10 * math.exp(-c * r), rel=1e-6)
    assert high == pytest.approx(10 * (1 + c * r + 5 * (2 * c * c + 1) / 6 * r * r), rel=1e-6)


def test_an_interval_may_have_negative_values_or_none_that_vary():
    x = np.array([[-2.0, 0.0, 2.0]])
    low, high = intervals.interval(x)  # Student's
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 2, 0.0, 2 / math.sqrt(3)))
    low, high = intervals.interval(np.array([[0.0, 0.0], [0.0, 0.0]]))
    assert (low, high) == (0.0, 0.0)
    low, high = intervals.interval(np.full((1, 4), 3.0))
    assert (low, high) == (3.0, 3.0)
    assert np.isnan(intervals.interval(np.array([[5.0]]))).all()


def test_a_unit_without_regret_is_not_negative():
    """Student's interval of 0, 1 and 5 would begin below 0."""
    low, high = intervals.interval(np.array([[0.0, 1.0, 5.0]]))
    assert 0 < low < 2 < high


def test_intervals_of_many_points_are_those_of_each():
    x = np.random.default_rng(0).lognormal(size=(4, 3, 7))
    low, high = intervals.interval(x)
    for i in range(7):
        assert intervals.interval(x[..., i]) == pytest.approx((low[i], high[i]))


def test_intervals_of_many_runs_agree_with_the_normal_ones():
    x = 10 + np.random.default_rng(0).normal(size=(1, 400))
    low, high = intervals.interval(x)
    assert high - low == pytest.approx(2 * 1.96 * x.std() / 20, rel=0.02)


def test_intervals_do_not_depend_on_the_unit_of_measurement():
    x = np.random.default_rng(0).lognormal(size=(6, 2))
    scaled = intervals.interval(1000 * x)
    assert scaled == pytest.approx([1000 * end for end in intervals.interval(x)])


@pytest.mark.parametrize(("Q", "N"), [(1, 5), (5, 5), (20, 5)])
@pytest.mark.parametrize("log_sd", [0.5, 1.0])
def test_intervals_of_skewed_regrets_hold_at_their_level(Q, N, log_sd):
    rng, R = np.random.default_rng([Q, int(2 * log_sd)]), 4000  # standard error 0.0035
    x = np.exp(0.5 * rng.normal(size=(Q, N, R)) - 0.125)
    x *= np.exp(log_sd * rng.normal(size=(Q, 1, R)) - log_sd**2 / 2)
    if Q == 1:
        x = np.exp(log_sd * rng.normal(size=(1, N, R)) - log_sd**2 / 2)
    low, high = intervals.interval(x)
    covered = ((low <= 1) & (1 <= high)).mean()
    assert 0.93 - 3 * 0.0035 <= covered <= 0.97 + 3 * 0.0035


def test_ratio_of_means():
    rng = np.random.default_rng(0)
    optimal = rng.lognormal(size=(5, 1)) * np.ones((5, 3))
    assert intervals.ratio(0.2 * optimal, optimal) == pytest.approx((0.2, 0.2, 0.2))
    x = rng.lognormal(size=(5, 3))
    constant = intervals.ratio(x, np.full((5, 3), 2.0))  # nothing but a unit
    assert constant[1:] == pytest.approx([end / 2 for end in intervals.interval(x)])
    small = intervals.ratio(x, np.full((5, 3), 0.02))
    assert small == pytest.approx([100 * end for end in constant])
    assert intervals.ratio(np.zeros((2, 2)), np.zeros((2, 2))) == pytest.approx((0, 0, 0))
    assert np.isnan(intervals.ratio(x[:1, :1], optimal[:1, :1])[1:]).all()


# -- comparisons ------------------------------------------------------------------------------


def test_two_policies_are_compared_by_the_paired_t_test():
    rng = np.random.default_rng(0)
    x = rng.lognormal(size=(8, 3, 2))
    a, b = x.mean(axis=1).T
    expected = stats.ttest_rel(a, b)
    found = compare(x)
    assert found.p[0, 1] == pytest.approx(expected.pvalue)
    inner = expected.confidence_interval()
    near, far = (found.low, inner.low) if a.mean() > b.mean() else (found.high, inner.high)
    assert near[0, 1] == pytest.approx(far)


def test_the_critical_value_of_many_units_is_tukeys():
    for P in (3, 6, 12):
        tukey = stats.studentized_range.ppf(0.95, P, np.inf) / math.sqrt(2)
        assert critical_value(2000, P) == pytest.approx(tukey, rel=0.01)


@pytest.mark.parametrize(("n", "P"), [(7, 4), (5, 8)])  # fewer units than policies, or more
def test_the_critical_value_of_few_units_is_that_of_drawn_data(n, P):
    rng, R = np.random.default_rng(0), 20_000
    i, j = np.triu_indices(P, 1)
    x = rng.normal(size=(R, n, P))
    d = x[:, :, i] - x[:, :, j]
    t = np.abs(d.mean(axis=1)) / (d.std(axis=1, ddof=1) / math.sqrt(n))
    above = (t.max(axis=1) > critical_value(n, P)).mean()
    assert above == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 * (1 / R + 1 / 40_000)))


@pytest.mark.parametrize(("n", "P"), [(2, 2), (7, 2), (12, 3), (7, 4), (5, 8)])
def test_at_the_critical_value_p_is_5_percent(n, P):
    p = p_of(np.array([critical_value(n, P)]), n, P)
    assert p == pytest.approx(0.05, abs=1e-4)


def test_p_is_the_share_of_drawn_data_with_a_difference_as_large():
    rng, n, P, R = np.random.default_rng(1), 6, 3, 20_000
    i, j = np.triu_indices(P, 1)
    x = rng.normal(size=(R, n, P))
    d = x[:, :, i] - x[:, :, j]
    largest = (np.abs(d.mean(axis=1)) / (d.std(axis=1, ddof=1) / math.sqrt(n))).max(axis=1)
    t = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    shares = (largest[:, None] >= t).mean(axis=0)
    assert p_of(t, n, P) == pytest.approx(shares, abs=0.02)
    assert p_of(t, n, P)[0] == 1.0


def test_p_beyond_the_draws_is_bonferronis_and_never_0():
    t = np.array([20.0, 100.0, 1000.0])
    found = p_of(t, 8, 4)
    assert found[1:] == pytest.approx(6 * 2 * stats.t.sf(t[1:], 7))
    assert (np.diff(found) < 0).all()
    assert (found > 0).all()


def test_a_policy_alone_is_like_itself():
    assert compare(np.array([[[1.0]], [[2.0]], [[4.0]]])).p.tolist() == [[1.0]]


def test_intervals_of_differences_worked_out_by_hand():
    # differences 10, 13, 13: mean 12, standard error 1; relative standard errors of the two means
    # 2 / sqrt 3 / 12 and sqrt 13 / sqrt 3 / 24; Student's quantile 4.302653
    a, b = [10.0, 12.0, 14.0], [20.0, 25.0, 27.0]
    x = np.array([a, b]).T[:, None]
    c, r = 4.302653, max(2 / 12, 13**0.5 / 24) / 3**0.5
    for unit in (1.0, 0.001):
        found = compare(unit * x)
        assert found.low[1, 0] == pytest.approx(unit * (12 - c), rel=1e-6)
        wider = 12 + c + 5 * (2 * c * c + 1) / 6 * r
        assert found.high[1, 0] == pytest.approx(unit * wider, rel=1e-6)
        assert found.high[0, 1] == -found.low[1, 0]
        assert found.low[0, 1] == -found.high[1, 0]


def test_the_interval_of_a_ratio_has_two_equal_arms():
    x = np.exp([[[0.0, 1.0]], [[0.5, 2.5]], [[1.0, 2.0]]])  # differences of logarithms 1, 2, 1
    found = compare_ratios(x)
    half = 4.302653 / 3  # the standard error is 1 / 3
    ends = (found.low[1, 0], found.high[1, 0])
    assert ends == pytest.approx((4 / 3 - half, 4 / 3 + half), rel=1e-6)


def test_two_units_are_compared():
    found = compare(np.array([[[5.0, 6.0]], [[5.0, 8.0]]]))
    assert found.p[1, 0] == pytest.approx(2 * stats.t.sf(2.0, 1))  # differences 1 and 3
    assert np.isfinite(found.low).all()


def test_a_difference_that_never_varies_is_certain():
    a = np.array([1.0, 2.0, 4.0])
    found = compare(np.stack([a, a + 0.5], axis=1)[:, None])
    assert found.p[0, 1] == found.p[1, 0] == 0.0
    assert found.low[1, 0] == found.high[1, 0] == 0.5
    assert found.told_apart()[0, 1]


def test_a_policy_without_regret_is_compared():
    found = compare(np.array([[[0.0, 1.0]], [[0.0, 2.0]], [[0.0, 4.0]]]))
    assert np.isfinite(found.high).all()
    assert found.p[0, 1] == pytest.approx(stats.ttest_1samp([1.0, 2.0, 4.0], 0).pvalue)


def test_more_policies_need_larger_differences():
    values = [critical_value(6, P) for P in (2, 3, 5, 9)]
    assert values == sorted(values)
    bonferroni = stats.t.isf(0.025 / 36, 5)
    assert values[-1] <= bonferroni


def test_a_difference_is_told_apart_exactly_where_p_is_small():
    rng = np.random.default_rng(1)
    for n in (3, 5, 12):
        x = rng.lognormal(size=(n, 2, 5)) * [1, 1.5, 2, 4, 8]
        found = compare(x)
        assert (found.told_apart() == (found.p <= 0.05)).all()
        assert (found.low == -found.high.T).all()
        assert (found.low <= found.difference).all()
        assert (found.difference <= found.high).all()
        assert (np.diag(found.p) == 1).all()


def test_equal_policies_are_rarely_told_apart():
    rng, R = np.random.default_rng(0), 400
    wrong = 0
    for _ in range(R):
        x = rng.lognormal(sigma=0.5, size=(10, 1, 1)) * rng.lognormal(sigma=0.5, size=(10, 4, 6))
        wrong += compare(x).told_apart().any()
    assert wrong / R <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / R)


def test_the_best_set_holds_all_that_cannot_be_told_from_the_best():
    rng = np.random.default_rng(0)
    x = rng.normal([10, 10.05, 15, 30], 0.5, size=(8, 5, 4))
    assert compare(x).best_set().tolist() == [True, True, False, False]


def test_ratios_do_not_feel_what_a_query_does_to_all_policies():
    rng = np.random.default_rng(0)
    scale = rng.lognormal(sigma=2.0, size=(5, 1, 1))
    x = scale * [1.0, 1.5] * rng.lognormal(sigma=0.05, size=(5, 4, 2))
    found = compare_ratios(x)
    a, b = np.log(x.mean(axis=1)).T
    expected = stats.ttest_rel(b, a)
    assert found.p[1, 0] == pytest.approx(expected.pvalue)
    assert found.low[1, 0] == pytest.approx(expected.confidence_interval().low)
    assert np.exp(found.difference[1, 0]) == pytest.approx(1.5, rel=0.1)
    assert found.p[1, 0] < 0.01 < compare(x).p[1, 0]
    x[0, :, 0] = 0.0
    assert np.isnan(compare_ratios(x).p).all()


def test_one_unit_compares_nothing_and_identical_policies_are_equal():
    one = compare(np.array([[[1.0, 2.0]]]))
    assert one.difference[1, 0] == 1.0
    assert np.isnan(one.p).all()
    assert np.isnan(one.low).all()
    assert one.best_set().all()
    twins = compare(np.array([[[1.0, 1.0, 5.0], [2.0, 2.0, 7.0], [4.0, 4.0, 9.0]]]))
    assert (twins.low[0, 1], twins.high[0, 1], twins.p[0, 1]) == (0.0, 0.0, 1.0)


# -- the summary ----------------------------------------------------------------------------------


def rows(**regret):
    """Runs of one query, one checkpoint: regret by policy and run."""
    flat = [(p, run, value) for p, values in regret.items() for run, value in enumerate(values)]
    n = len(flat)
    columns = {
        "simulator": ["DCM"] * n,
        "track": ["ranking"] * n,
        "policy": [p for p, _, _ in flat],
        "query": ["1@0"] * n,
        "draw": [0] * n,
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
    # differences 10, 12, 14: standard error 2 / sqrt 3, Student's quantile 4.302653
    assert summary.loc["B", "difference_low"] == pytest.approx(12 - 4.302653 * 2 / 3**0.5)
    assert summary.loc["B", "p"] == pytest.approx(stats.ttest_1samp([10, 12, 14], 0).pvalue)
    assert np.isnan(summary.loc["A", "p"])
    assert np.isnan(summary.loc["Oracle", "p"])
    assert summary["in_best_set"].to_dict() == {"Oracle": False, "A": True, "B": False}
    assert summary["best_on"].to_dict() == {"Oracle": 0, "A": 1, "B": 0}
    assert (summary["queries"] == 1).all()
    assert (summary["replicas"] == 3).all()


def test_differences_are_paired():
    noise = np.random.default_rng(0).normal(scale=50, size=40)
    paired = rows(A=100 + noise, B=101 + noise).summary().set_index("policy")
    assert paired.loc["B", "difference_low"] == pytest.approx(1.0)
    assert paired.loc["B", "p"] < 0.01
    assert not paired.loc["B", "in_best_set"]
    assert paired.loc["B", "low"] < paired.loc["A", "high"]


def test_policies_are_compared_on_the_runs_that_all_have():
    summary = rows(A=[10, 10, 10, 1000], B=[20, 20, 20]).summary().set_index("policy")
    assert summary.loc["A", "regret"] == 10
    assert summary["missing"].to_dict() == {"A": 0, "B": 1}


def test_policies_without_a_run_in_common_are_refused():
    runs = rows(A=[1, 2], B=[np.nan, 2])
    only = Runs(runs.rows.filter(pa.array([True, False, False, True])))  # A run 0, B run 1
    with pytest.raises(LogevalError, match="A, B have no query and run in common"):
        only.summary()


def test_all_pairs():
    pairs = rows(Oracle=[0, 0, 0], A=[10, 12, 14], B=[20, 24, 28], C=[30, 31, 35]).compare()
    assert list(zip(pairs["better"], pairs["worse"], strict=True)) == [
        ("A", "B"),
        ("A", "C"),
        ("B", "C"),
    ]
    assert pairs["difference"].tolist() == [12, 20, 8]
    assert (pairs["low"] < pairs["difference"]).all()
    assert (pairs["high"] > 20).sum() >= 2
    alone = rows(A=[10, 12, 14], B=[20, 24, 28]).compare()
    assert pairs["p"][0] > alone["p"][0]  # three pairs are tested, not one
    assert pairs["queries_better"].tolist() == [1, 1, 1]
    assert rows(A=[1, 2]).compare().empty


def test_one_run_has_no_interval_and_no_test():
    lone = rows(A=[1], B=[2]).summary()
    assert np.isnan(lone[["low", "p", "log_sd"]]).all(axis=None)


def test_a_step_that_was_not_recorded_is_an_error():
    with pytest.raises(LogevalError, match="step 17 was not recorded; the nearest that was is 100"):
        rows(A=[1, 2]).summary(17)


def test_units_that_spread_widely_have_the_skewness_of_log_normal_ones():
    """g = 2 + exp(s^2) of their log-sd s, where that is more than 5; not where one is 0."""
    near, far = np.exp([[0.0], [0.5], [1.0]]), np.exp([[0.0], [1.5], [3.0]])
    assert intervals.skewness(near) == pytest.approx(5.0)
    assert intervals.skewness(far) == pytest.approx(2.0 + np.exp(1.5**2))
    assert intervals.skewness(np.exp([[0.0], [4.0], [8.0]])) == pytest.approx(2.0 + np.exp(4.0))
    assert intervals.skewness(np.array([[0.0], [1.0], [90.0]])) == pytest.approx(5.0)
    x = far[:, None]  # one run
    m, se = far.mean(), far.std(ddof=1) / np.sqrt(3)
    plain = intervals.skewed_interval(np.array([m]), np.array([se]), 3)
    assert intervals.interval(x)[1] > plain[1]
    assert intervals.interval(x)[0] == pytest.approx(plain[0])


def test_regrets_that_spread_more_than_was_measured_are_said():
    wide = [1.0, 50.0, 2.0, 900.0, 8.0, 70.0]
    near = [10.0, 12.0, 9.0, 15.0, 11.0, 14.0]
    runs = rows(A=wide, B=near)
    spread = runs.summary().set_index("policy")["log_sd"]
    assert spread["A"] == pytest.approx(np.log(wide).std(ddof=1))
    assert spread["B"] < 1
    assert runs.verdict().fact("spread").more["policies"] == ["A"]
    assert rows(A=near, B=near).verdict().fact("spread") is None


def test_rounding_is_no_difference():
    """Regrets that differ by less than 1e-9 of the optimum are ties, however often they do."""
    noise = np.random.default_rng(0).uniform(1e-14, 8e-14, size=12)
    found = rows(A=list(10.0 + 0 * noise), B=list(10.0 + noise)).summary().set_index("policy")
    assert found.loc["B", "p"] == 1.0
    assert found["in_best_set"].all()
    assert (found["difference_low"] == 0.0).all()
    tiny = rows(A=list(noise), B=list(2 * noise)).compare().iloc[0]
    assert (tiny["p"], tiny["low"], tiny["high"]) == (1.0, 0.0, 0.0)
    real = rows(A=list(10.0 + 1e5 * noise), B=list(10.0 + 1e7 * noise)).summary()
    assert real["p"].min() < 0.01


def test_no_interval_goes_beyond_what_can_be_lost():
    """Two runs of one query, of 150 that the best list earns: Student alone says 163 and 243."""
    regrets = {"A": [8.9, 9.3], "LR": [30.9, 24.7]}
    rows = [
        {"simulator": "DCM", "track": "ranking", "policy": policy, "query": "1@0", "draw": 0,
         "run": run, "t": 300, "regret": x, "reward": 150.0 - x, "optimal_reward": 150.0,
         "optimal_steps": 0}
        for policy, each in regrets.items() for run, x in enumerate(each)
    ]  # fmt: skip
    runs = Runs(pa.Table.from_pylist(rows, schema=RUNS))
    table = runs.summary().set_index("policy")
    assert table.loc["LR", "high"] == 150.0
    assert table.loc["A", "high"] < 150.0
    assert table.loc["LR", "difference_high"] == 150.0
    assert (runs.compare()[["low", "high"]].abs() <= 150.0).all(axis=None)
    assert runs.curves("DCM")["LR"]["high"].tolist() == [150.0]
    low, high = intervals.interval(np.array([[-1.0, 5.0]]), most=np.array(9.0))
    assert (low, high) == (0.0, 9.0)
