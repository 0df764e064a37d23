"""Leave-one-part-out validation against a plain loop, and its verdict."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from logeval import LogevalError
from logeval.cli import app
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.quality.value import sums
from logeval.replay.estimators import parse_estimators
from logeval.replay.stages import replay_validate
from logeval.replay.validate import PER_QUERY, Errors, is_larger, most_shown, sums_by_query
from logeval.storage.tables import path_of
from tests.clicks.examples import table_of as folded
from tests.replay import loops
from tests.replay.test_estimate import drawn
from tests.serps import Serp, write_serps

SERPS = drawn(3, 300)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return write_serps(tmp_path_factory.mktemp("validate") / "log", SERPS)


@pytest.fixture(scope="module")
def found(log):
    return replay_validate(
        log, positions=[1, 2], clips=[1.0, 1000.0], estimators=["IP", "List", "DR"], quiet=True
    )


def test_rmse_is_that_of_a_loop_over_days(found):
    rows = [(s.query_id, tuple(s.items), tuple(min(c, 1) for c in s.clicks), s.day) for s in SERPS]
    for name in ("IP", "List"):
        squares = weight = noise = 0.0
        for day in (1, 2, 3):
            rest = [r for r in rows if r[3] != day]
            mine = [r for r in rows if r[3] == day]
            target = {}
            for q in (1, 2):
                lists = [r[1] for r in mine if r[0] == q]
                target[q] = [(a, lists.count(a) / len(lists)) for a in set(lists)]
            values = loops.value(name, rest, target, 2)
            for q in (1, 2):
                clicks = [sum(r[2]) for r in mine if r[0] == q]
                squares += len(clicks) * (values[q] - np.mean(clicks)) ** 2
                noise += np.var(clicks, ddof=1)
                weight += len(clicks)
        row = found.table.query("estimator == @name and positions == 2 and clip == 1000").iloc[0]
        assert row["rmse"] == pytest.approx(np.sqrt(squares / weight))
        assert row["floor"] == pytest.approx(np.sqrt(noise / weight))


def test_the_clip_of_a_part_is_chosen_on_the_others():
    errors = Errors(parse_estimators(["IP"]), [10.0, 100.0], 1, 3, 1)
    errors.serps[:] = 1.0
    errors.error[0, :, :, 0] = [[1, 2, 3], [2, 2, 2]]
    # sums of squares on the other parts: clip 0: 13, 10, 5; clip 1: 8, 8, 8
    assert errors.chosen().tolist() == [[4, 4, 9]]


def test_rctr_has_no_skill_and_intervals_hold_their_value(found):
    table = found.table
    rctr = table[table["estimator"] == "RCTR"]
    assert rctr["skill"].fillna(0).to_numpy() == pytest.approx(0)
    assert (table["low"] <= table["rmse"]).all()
    assert (table["high"] >= table["rmse"]).all()


def test_the_choice_is_the_estimator_with_the_smallest_error(found):
    for choice in found.choices:
        rows = found.table[found.table["clip"].isna()]
        rows = rows[rows["positions"] == choice["positions"]].set_index("estimator")
        assert choice["rmse"] == rows["rmse"].min() == rows.loc[choice["best"], "rmse"]
        assert choice["logger_rmse"] == rows.loc["RCTR", "rmse"]
        assert choice["floor"] == rows["floor"].iloc[0]
    assert "nan" not in found.verdict().text()


def choice_of(first, second):
    """Of two estimators with these errors on five parts."""
    errors = Errors(parse_estimators(["IP", "RCTR"]), [10.0], 1, 5, 1)
    errors.error[:, 0, :, 0], errors.serps[:] = (first, second), 100.0
    return errors.choice(pd.DataFrame(errors.rows(0)))


def test_what_prints_alike_is_not_told_apart():
    one = np.array([0.0198, 0.0199, 0.0197, 0.0198, 0.0198])
    assert choice_of(one, one + 1e-7)["ties"] == ["RCTR"]
    assert choice_of(one, one + 1e-3)["ties"] == []
    assert choice_of(one, one + np.array([0, 0, 0, 0, 5e-3]))["ties"] == ["RCTR"]


def test_an_estimator_beats_the_logger_only_where_it_is_told_from_it():
    one = np.array([0.0198, 0.0199, 0.0197, 0.0198, 0.0198])
    assert choice_of(one, one + 1e-3)["beats_logger"]
    assert not choice_of(one, one + np.array([0, 0, 0, 0, 5e-3]))["beats_logger"]
    worse = choice_of(one + 1e-3, one)
    assert (worse["best"], worse["beats_logger"], worse["worse"]) == ("RCTR", False, ["IP"])


def test_the_spread_is_how_far_predictions_are_from_the_loggers():
    """Errors have the truth in common: what differs are the predictions."""
    one = np.array([0.3, -0.2, 0.1, 0.0, 0.2])
    assert choice_of(one, one)["spread"] == 0.0
    assert choice_of(one, one - 0.02)["spread"] == pytest.approx(0.02)
    assert choice_of(one, one + np.array([0, 0.05, 0, 0, 0]))["spread"] == pytest.approx(
        0.05 / 5**0.5
    )


@pytest.mark.parametrize("F", [3, 5, 20])
def test_equal_estimators_are_told_apart_as_often_as_the_level_says(F):
    rng = np.random.default_rng(F)
    weight = rng.uniform(80, 120, size=(4000, F))
    found = [is_larger(w * rng.normal(size=F), w) for w in weight]
    assert np.mean(found) == pytest.approx(0.025, abs=0.01)


def test_the_command(log, tmp_path):
    arguments = ["replay", "validate", str(log), "--positions", "1..2", "--clip", "10", "-q"]
    arguments += ["-e", "IP", "--parts", "3", "--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert {r["estimator"] for r in shown["rows"]} == {"IP", "RCTR", PER_QUERY}
    assert shown["facts"][0]["code"] in ("cannot-choose", "same-rankings")
    for name in ("validation.png", "manifest.json"):
        assert (tmp_path / "out" / name).exists()
    assert path_of(tmp_path / "out", "validation").exists()


def test_by_default_all_positions_of_the_lists_are_validated(log):
    found = replay_validate(log, clips=[10.0], estimators=["IP"], parts=3, quiet=True)
    assert sorted(set(found.table["positions"])) == [1, 2]


def test_bad_arguments(log, tmp_path):
    for changes, message in (
        ({"positions": [3]}, "at most 2"),
        ({"positions": [0]}, "1..10"),
        ({"positions": [1], "clips": [0]}, "above 0"),
        ({"positions": [1], "clips": [1.0, float("nan")]}, "above 0"),
        ({"positions": [1], "scope": "each"}, "scope='each': must be"),
        ({"positions": [1], "parts": 1}, "parts=.*: must be at"),
        ({"positions": [1], "parts": 10**9}, "parts=.*: must be at"),
    ):
        with pytest.raises(LogevalError, match=message):
            replay_validate(log, quiet=True, **changes)
    one = write_serps(tmp_path / "one", [s for s in SERPS if s.day == 1])
    with pytest.raises(LogevalError, match="parts=10"):
        replay_validate(one, positions=[1], quiet=True)


# -- two days of a log, worked out by hand ----------------------------------------------------


def shown(item, day, n, clicks, query=1):
    """n SERPs of one result."""
    return [Serp(query, [item], [int(i < clicks)], day=day) for i in range(n)]


# item 1 has a click-through rate of 0.8, item 2 of 0.2; the second day shows more of item 2
DAYS = [*shown(1, 1, 10, 8), *shown(2, 1, 5, 1), *shown(1, 2, 5, 4), *shown(2, 2, 20, 4)]
NOISE = (15 * 0.24 / 14 + 25 * 0.32 * 0.68 / 24) / 40


def validated(folder, serps=DAYS, clips=(1000.0,), estimators=("IP",)):
    rows = [replace(s, session_id=i) for i, s in enumerate(serps)]
    log = write_serps(folder / "log", rows)
    return replay_validate(log, positions=[1], clips=clips, estimators=estimators, quiet=True)


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    return validated(tmp_path_factory.mktemp("days"))


def test_the_bias_is_estimate_minus_truth(days):
    """RCTR says 0.32 of the first day, which has 0.6, and 0.6 of the second, which has 0.32."""
    rctr = days.table.query("estimator == 'RCTR'")
    assert rctr["bias"].to_numpy() == pytest.approx((15 * (0.32 - 0.6) + 25 * (0.6 - 0.32)) / 40)
    assert rctr["rmse"].to_numpy() == pytest.approx(0.28)
    assert (rctr["serps"] == 40).all()
    assert (rctr["parts"] == 2).all()


def test_skill_is_what_an_estimator_gains_on_the_logger_above_the_noise(days):
    rows = days.table[days.table["clip"].isna()].set_index("estimator")
    assert rows["floor"].to_numpy() == pytest.approx(math.sqrt(NOISE))
    # IP knows the rates of both items: its error is 0
    assert rows.loc["IP", ["rmse", "bias"]].to_list() == pytest.approx([0, 0], abs=1e-12)
    assert rows.loc["IP", "skill"] == pytest.approx(1 + NOISE / (0.28**2 - NOISE))
    assert rows.loc["RCTR", "skill"] == pytest.approx(0.0)
    assert rows.loc["IP", "support"] == 1.0


def test_what_only_one_part_has_is_neither_target_nor_log(days, tmp_path):
    found = validated(tmp_path, [*DAYS, *shown(1, 1, 50, 50, query=2)])
    for name in ("serps", "rmse", "bias", "floor", "skill", "support"):
        assert found.table[name].to_numpy() == pytest.approx(
            days.table[name].to_numpy(), abs=1e-9, nan_ok=True
        )


def test_a_query_of_one_day_is_left_out_of_click_models_too_and_counted(tmp_path):
    found = validated(
        tmp_path, [*DAYS, *shown(1, 1, 50, 50, query=2)],
        estimators=("IP", "PBM", "DM(dcm)", "DR(auto)"),
    )  # fmt: skip
    assert np.isfinite(found.table["rmse"]).all()
    assert (found.table["serps"] == len(DAYS)).all()
    (fact,) = found.facts
    assert (fact.code, fact.value, fact.threshold) == ("queries-lost", 1, 2)
    assert fact.more == {"serps": 50}
    assert found.verdict().fact("queries-lost") == fact


def test_a_part_that_shows_what_the_others_never_did_lowers_the_support(tmp_path):
    # a fifth of the second day's SERPs show item 3: no support for 6 of 30 of them
    rows = validated(tmp_path, [*DAYS, *shown(3, 2, 5, 5)]).table.set_index("estimator")
    assert rows.loc["IP", "support"].to_numpy() == pytest.approx((1.0 + 25 / 30) / 2)


def test_there_is_a_row_for_every_clip_and_one_for_the_chosen(tmp_path):
    """Weights on day 2: 0.2 / (2/3) and 0.8 / (1/3) = 2.4, which a clip of 1 cuts."""
    table = validated(tmp_path, clips=(1.0, 1000.0)).table.query("estimator == 'IP'")
    assert table["clip"].fillna(0).tolist() == [0.0, 1.0, 1000.0]
    rmse = table["rmse"].to_list()
    assert rmse[1] > 0.01
    assert [rmse[0], rmse[2]] == pytest.approx([0, 0], abs=1e-12)


# -- errors by hand ---------------------------------------------------------------------------


NAMES = ("IP", "RCTR")


def errors_of(error, serps, noise=0.0, support=1.0, clips=(10.0,), K=1):
    """Of errors (estimators, clips, parts, queries) and SERPs (parts, queries)."""
    _, _, F, Q = np.shape(error)
    errors = Errors(parse_estimators(NAMES), clips, K, F, Q)
    errors.error[:], errors.serps[:], errors.noise[:] = error, serps, noise
    errors.support[:] = support
    return errors


def table_of(errors):
    return pd.DataFrame(errors.rows(0))


def test_errors_count_by_the_serps_of_their_part_and_query():
    error = [[[[0.1, -0.2], [0.3, 0.4]]], [[[1.0, 1.0], [1.0, 1.0]]]]
    serps = [[10.0, 20.0], [30.0, 40.0]]
    row = table_of(errors_of(error, serps)).set_index("estimator").loc["IP"].iloc[0]
    assert row["serps"] == 100
    assert row["bias"] == pytest.approx((1.0 - 4.0 + 9.0 + 16.0) / 100)
    assert row["rmse"] ** 2 == pytest.approx((0.1 + 0.8 + 2.7 + 6.4) / 100)


def test_the_interval_of_two_parts_is_from_the_better_to_the_worse():
    """One resampled pair of parts in four is the better one twice, one the worse one."""
    error = [[[[0.1], [0.3]]], [[[1.0], [1.0]]]]
    row = table_of(errors_of(error, [[10.0], [20.0]])).iloc[0]
    assert (row["low"], row["high"]) == pytest.approx((0.1, 0.3))
    assert row["rmse"] ** 2 == pytest.approx((10 * 0.01 + 20 * 0.09) / 30)


def test_the_interval_of_many_parts_is_that_of_their_mean():
    """Of 100 parts: 1.96 standard errors of the mean of 0.1^2 and 0.3^2."""
    error = np.ones((2, 1, 100, 1))
    error[0, 0, :, 0] = [0.1, 0.3] * 50
    row = table_of(errors_of(error, np.ones((100, 1)))).iloc[0]
    half = 1.96 * 0.04 / 10
    assert (row["low"] ** 2, row["high"] ** 2) == pytest.approx(
        (0.05 - half, 0.05 + half), rel=0.02
    )


def test_the_bias_of_the_chosen_clip_is_that_of_the_best():
    error = [[[[0.5], [0.5]], [[-0.2], [-0.2]], [[0.9], [0.9]]], [[[1.0], [1.0]]] * 3]
    table = table_of(errors_of(error, [[1.0], [1.0]], clips=(1.0, 10.0, 100.0)))
    ip = table[table["estimator"] == "IP"]
    assert ip["bias"].to_list() == pytest.approx([-0.2, 0.5, -0.2, 0.9])
    assert ip["rmse"].to_list() == pytest.approx([0.2, 0.5, 0.2, 0.9])


def test_where_the_logger_is_at_the_floor_there_is_no_skill():
    error = [[[[0.125], [0.125]]], [[[0.25], [0.25]]]]
    for noise, known in ((0.0624, True), (0.0625, False), (0.09, False)):
        errors = errors_of(error, [[1.0], [1.0]], noise=noise)
        skill = table_of(errors)["skill"]
        assert skill.notna().all() == skill.notna().any() == known


def test_the_choice_is_about_the_chosen_clip_and_its_own_K():
    """At the clip 1 alone RCTR would be best."""
    error = [[[[0.9], [0.9]], [[0.1], [0.1]]], [[[0.5], [0.5]]] * 2]
    first, second = (errors_of(error, [[1.0]] * 2, clips=(1.0, 10.0), K=K) for K in (1, 2))
    better = table_of(first).assign(rmse=lambda rows: 0.01 * rows["rmse"])
    found = second.choice(pd.concat([better, table_of(second)]))
    assert (found["positions"], found["best"]) == (2, "IP")
    assert found["rmse"] == pytest.approx(0.1)


@pytest.mark.parametrize(("mean", "larger"), [(2.5, True), (2.4, False), (-2.5, False)])
def test_parts_are_compared_by_students_test(mean, larger):
    """Deviations -1, 0, 1: standard error 1 / sqrt 3, quantile 4.303: above 2.484."""
    difference = mean + np.array([-1.0, 0.0, 1.0])
    assert is_larger(difference, np.ones(3)) == larger
    assert is_larger(10 * difference, np.full(3, 70.0)) == larger  # whatever the unit


def test_parts_are_compared_by_their_weight():
    """mean 2.5; deviations from it times weight -0.5, -1, 1.5: t = 2.5 / 0.382 = 6.5."""
    weight = np.array([1.0, 2.0, 3.0])
    assert is_larger(np.array([2.0, 4.0, 9.0]), weight)
    assert not is_larger(np.array([2.0, 4.0, 9.0]) - 0.9 * weight, weight)  # t = 4.2


def test_the_estimator_of_a_query_is_chosen_on_the_other_parts():
    """IP is right on the first query, RCTR on the second, in every part but the last."""
    ip, rctr = [[0.1, 0.9], [0.1, 0.9], [0.5, 0.9]], [[0.4, 0.2], [0.4, 0.2], [0.4, 0.95]]
    rows = table_of(errors_of([[ip], [rctr]], np.ones((3, 2)))).set_index("estimator")
    squares = 2 * (0.1**2 + 0.2**2) + 0.5**2 + 0.95**2
    assert rows.loc[PER_QUERY, "rmse"] ** 2 == pytest.approx(squares / 6)


def test_the_sharpe_ratio_is_that_of_the_three_parts_predicted_to_be_best():
    truth = np.array([[1.0], [0.8], [0.6], [0.4], [0.9]])
    predicted = np.array([[0.9], [0.7], [0.6], [0.5], [0.1]])  # the last is not among the first
    error = np.stack([predicted - truth, 0.5 - truth])[:, None]
    errors = errors_of(error, np.ones((5, 1)))
    errors.truth[:] = truth
    rows = table_of(errors).query("clip != clip").set_index("estimator")
    assert rows.loc["IP", "sharpe"] == pytest.approx((1.0 - 0.74) / np.std([1.0, 0.8, 0.6]))


def test_the_slope_of_lists_is_1_where_users_are_as_the_estimator_assumes(tmp_path):
    """Clicks depend on item and position: IP knows which list earns more, and so does a PBM."""
    found = replay_validate(
        write_serps(tmp_path / "log", drawn(5, 4000)), positions=[2], clips=[1000.0], parts=4,
        estimators=["IP", "DM", "IP(normalised)"], quiet=True,
    ).table.query("clip != clip").set_index("estimator")  # fmt: skip
    for name in ("IP", "DM"):
        row = found.loc[name]
        assert row["slope_low"] < 1.0 < row["slope_high"]
        assert row["slope_high"] - row["slope_low"] < 1.0
    assert found.loc[["RCTR", "IP(normalised)", PER_QUERY], "slope"].isna().all()


def test_sums_by_query_are_those_of_each_query_alone():
    rng = np.random.default_rng(0)
    query, n = rng.integers(3, size=50), rng.integers(1, 5, 50).astype(float)
    x, y = rng.random((2, 50))
    found = sums_by_query(query, x, y, n, 3)
    for q in range(3):
        mine = query == q
        assert found[q] == pytest.approx(sums(x[mine, None], y[mine, None], n[mine]))


def test_the_most_shown_lists_of_each_query():
    items = [(0, [1, 2], 0, 5), (0, [1, 2], 1, 2), (0, [2, 1], 0, 6), (0, [1, 3], 0, 1)]
    patterns = patterns_of(folded([*items, (4, [1, 2], 0, 1)]))
    first, column, rows = most_shown(patterns, np.arange(patterns.P), 2)
    shown = [tuple(patterns.item_ids[row]) for row in patterns.items]
    places = {(int(q), a): int(c) for q, a, c in zip(patterns.query, shown, column, strict=True)}
    known = {(patterns.queries[q].query_id, a): c for (q, a), c in places.items()}
    assert known == {(0, (1, 2)): 0, (0, (2, 1)): 1, (0, (1, 3)): -1, (4, (1, 2)): 0}
    assert len(first) == 3
    assert sorted(rows) == sorted(np.flatnonzero(column >= 0))
