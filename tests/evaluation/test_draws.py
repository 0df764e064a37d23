"""Draws of the simulators' parameters."""

from __future__ import annotations

import numpy as np
import pytest

import logeval
from logeval.clicks.draws import drawn_model, drawn_value
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.errors import LogevalError
from logeval.evaluation import statistics
from tests.clicks.examples import three_queries

SETTING = {"policies": ["CascadeKL-UCB", "Random"], "horizon": 60, "runs": 2, "checkpoints": [60]}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    log = three_queries(tmp_path_factory.mktemp("log"))
    return logeval.fit_models(log, ["DCM", "PBM"], quiet=True)


def test_draws_have_the_intervals_of_the_fit():
    u = np.random.default_rng(1).standard_normal((40_000, 3))
    value, low, high = np.array([[0.3, 0.9, 1.0], [0.1, 0.6, 1.0], [0.4, 0.92, 1.0]])
    x = ParameterEstimate(value, low, high, np.full(3, 9.0))
    drawn = drawn_value(x, u)
    inside = ((x.low <= drawn) & (drawn <= x.high)).mean(axis=0)
    assert inside[:2] == pytest.approx(0.95, abs=4 * np.sqrt(0.05 * 0.95 / 40_000))
    assert np.median(drawn, axis=0) == pytest.approx(x.value, abs=0.005)
    assert (drawn[:, 2] == 1.0).all()  # what is fixed stays


def test_a_draw_depends_on_itself_alone_and_ties_stay(models):
    fitted = models.fitted["DCM"]
    query = fitted.queries[0]
    one, again, other = (drawn_model(fitted, query, d, seed=3) for d in (1, 1, 2))
    assert np.array_equal(one.w, again.w)
    assert not np.array_equal(one.w, other.w)
    replaced = np.isfinite(fitted.estimates["v"].raw[0])
    assert replaced[-1]
    assert one.v[-1] == one.v[-2]


def test_no_replica_depends_on_how_many_draws_there_are(models, tmp_path):
    few = logeval.evaluate(models, draws=2, quiet=True, **SETTING)
    out = tmp_path / "runs"
    logeval.evaluate(models, draws=1, out=out, quiet=True, **SETTING)
    more = logeval.evaluate(models, draws=3, out=out, quiet=True, **SETTING)  # adds two
    table = more.table()
    assert sorted(table["draw"].unique()) == [1, 2, 3]
    assert table[table["draw"] <= 2].reset_index(drop=True).equals(few.table())
    assert table.groupby(["policy", "simulator", "query", "draw"])["run"].nunique().eq(2).all()
    plain = logeval.evaluate(models, quiet=True, **SETTING).table()
    assert (plain["draw"] == 0).all()
    assert few.table()["regret"].min() >= 0.0


def test_the_mean_over_queries_has_the_variance_of_one_draw():
    rng = np.random.default_rng(2)
    Q, D = 400, 30
    x = (
        5.0
        + rng.normal(0, 1.0, (Q, 1, 1, 1))
        + rng.normal(0, 2.0, (Q, D, 1, 1))
        + np.zeros((1, 1, 2, 1))
    )
    assert statistics.units(x).error()[0] == pytest.approx(np.sqrt(5.0 / Q), rel=0.1)
    alone = statistics.units(x[:1])
    assert alone.error()[0] == pytest.approx(x[0].std(), rel=0.1)
    assert alone.size == D
    assert statistics.mean(x) == pytest.approx(x.mean())


def test_summary_variance_and_best_with_draws(models):
    runs = logeval.evaluate(models, draws=4, quiet=True, **SETTING)
    summary = runs.summary()
    assert (summary["low"] <= summary["regret"]).all()
    assert (summary["regret"] <= summary["high"]).all()
    assert summary["replicas"].eq(3 * 4 * 2).all()
    variance = runs.variance()
    assert variance.groupby("policy")["share"].sum().to_numpy() == pytest.approx(1.0)
    assert set(variance["source"]) == {"runs", "queries", "parameters", "choice of model"}
    best = runs.best()
    assert best["simulators"].sum() == 2
    assert best["probability"].sum() == pytest.approx(1.0)


def test_draws_need_intervals(models):
    with pytest.raises(LogevalError, match="of fitted models"):
        logeval.evaluate(problem="B_LB(L=8,K=2,p=0.2,gap=0.1)", draws=2, **SETTING)
    with pytest.raises(LogevalError, match="need models with intervals"):
        logeval.evaluate(list(models), draws=2, **SETTING)
