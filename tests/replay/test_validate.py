"""Leave-one-part-out validation against a plain loop, and its verdict."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from logeval import LogevalError
from logeval.cli import app
from logeval.replay.estimators.registry import parse_estimators
from logeval.replay.validate import replay_validate
from logeval.replay.validation import _Errors, _verdict, is_larger
from tests.replay import loops
from tests.replay.test_estimate import drawn
from tests.serps import write_serps

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
    errors = _Errors(1, 2, 3, 1)
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


def test_the_verdict_names_the_best_estimator(found):
    best = found.table[found.table["clip"].isna()].sort_values("rmse").groupby("positions").first()
    for K, line in zip((1, 2), found.verdict, strict=True):
        assert line.startswith(f"K = {K}: use {best.loc[K, 'estimator']}")


def test_a_model_without_weights_has_no_support_to_speak_of(log):
    found = replay_validate(log, positions=[1, 2], clips=[10.0], estimators=["DM"], quiet=True)
    assert any("Worse than the logger's own value: DM" in line for line in found.verdict)
    assert "nan" not in " ".join(found.verdict)


def verdict(first, second):
    """Of two estimators whose errors on five parts of 100 SERPs are given."""
    errors = _Errors(2, 1, 5, 1)
    errors.serps[:], errors.error[:, 0, :, 0] = 100.0, [first, second]
    estimators = parse_estimators(["IP", "RCTR"])
    rows = errors.rows(estimators, [10.0], 1, 0)
    return _verdict(pd.DataFrame(rows), errors, estimators, 1)[0]


def test_what_prints_alike_is_not_told_apart():
    one = np.array([0.0198, 0.0199, 0.0197, 0.0198, 0.0198])
    assert "Not told from it on these parts: RCTR" in verdict(one, one + 1e-7)
    assert "Not told" not in verdict(one, one + 1e-3)
    assert "Not told from it on these parts: RCTR" in verdict(
        one, one + np.array([0, 0, 0, 0, 5e-3])
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
    assert {r["estimator"] for r in shown["rows"]} == {"IP", "RCTR"}
    assert len(shown["verdict"]) == 2
    for name in ("validation.parquet", "validation.png", "clips.png", "manifest.json"):
        assert (tmp_path / "out" / name).exists()


def test_bad_arguments(log, tmp_path):
    for changes, message in (
        ({"positions": [3]}, "at most 2"),
        ({"positions": [0]}, "1..10"),
        ({"positions": [1], "clips": [0]}, "above 0"),
        ({"positions": [1], "clips": [1.0, float("nan")]}, "above 0"),
        ({"positions": [1], "smoothing": float("nan")}, "smoothing=nan"),
        ({"positions": [1], "smoothing": float("inf")}, "smoothing=inf"),
        ({"positions": [1], "scope": "each"}, "unknown scope"),
        ({"positions": [1], "parts": 1}, "at least 2 and at most 1,000"),
        ({"positions": [1], "parts": 10**9}, "at least 2 and at most 1,000"),
    ):
        with pytest.raises(LogevalError, match=message):
            replay_validate(log, quiet=True, **changes)
    one = write_serps(tmp_path / "one", [s for s in SERPS if s.day == 1])
    with pytest.raises(LogevalError, match="parts=10"):
        replay_validate(one, positions=[1], quiet=True)
