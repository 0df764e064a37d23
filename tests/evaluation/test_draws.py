"""Draws of the simulators' parameters."""

from __future__ import annotations

import json

import numpy as np
import pytest

import logeval
from logeval.clicks.collection import models_of_json, read_models
from logeval.errors import LogevalError
from logeval.evaluation.statistics import intervals
from tests.clicks.examples import three_queries

SETTING = {"policies": ["CascadeKL-UCB", "Random"], "horizon": 60, "runs": 2, "checkpoints": [60]}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    log = three_queries(tmp_path_factory.mktemp("log"))
    return logeval.fit_models(log, ["DCM", "PBM"], quiet=True)


def test_draws_are_those_that_the_table_keeps_and_ties_stay(models, tmp_path):
    models.write(tmp_path / "models")
    again = read_models(tmp_path / "models")
    query = models.queries[0]
    for name in ("DCM", "PBM"):
        one, other = (models[name].drawn(d).of(query) for d in (1, 2))
        assert not np.array_equal(one.w, other.w)
        kept = again[name].drawn(1).of(query)
        assert np.allclose(kept.w, one.w, atol=1e-7)  # of single precision
        assert models[name].estimates["w"].draws.shape == (20, len(models[name].item_ids))
    one = models["DCM"].drawn(1).of(query)
    assert np.isfinite(models["DCM"].estimates["v"].raw[0])[-1]
    assert one.v[-1] == one.v[-2]


def test_more_draws_than_were_kept_are_refused_with_the_remedy(models):
    with pytest.raises(LogevalError, match=r"was fitted with 20; ask for fewer.*draws=21"):
        logeval.evaluate(models, draws=21, quiet=True, **SETTING)
    text = models.to_json()
    assert models_of_json(text)["DCM"].estimates["v"].draws is not None
    rows = [{**row, "draws": None} for row in json.loads(text)["rows"]]
    bare = models_of_json(json.dumps({"rows": rows, "queries": json.loads(text)["queries"]}))
    with pytest.raises(LogevalError, match="has no draws; fit it to a log"):
        logeval.evaluate(bare, draws=2, quiet=True, **SETTING)


def test_draws_in_a_table_are_probabilities_and_equally_many(models):
    given = json.loads(models.to_json())
    drawn = given["rows"][0]["draws"]
    drawn[0] = [0.5]
    with pytest.raises(LogevalError, match="equally many"):
        models_of_json(json.dumps(given))
    drawn[0] = [1.5] * 20
    with pytest.raises(LogevalError, match=r"rows.0.draws.0.0: .* less than or equal to 1"):
        models_of_json(json.dumps(given))


def test_no_replica_depends_on_how_many_draws_there_are(models, tmp_path):
    few = logeval.evaluate(models, draws=2, quiet=True, **SETTING)
    out = tmp_path / "runs"
    logeval.evaluate(models, draws=1, out=out, quiet=True, **SETTING)
    more = logeval.evaluate(models, draws=3, out=out, quiet=True, **SETTING)  # adds two
    table = more.to_pandas()
    assert sorted(table["draw"].unique()) == [1, 2, 3]
    assert table[table["draw"] <= 2].reset_index(drop=True).equals(few.to_pandas())
    assert table.groupby(["policy", "simulator", "query", "draw"])["run"].nunique().eq(2).all()
    plain = logeval.evaluate(models, quiet=True, **SETTING).to_pandas()
    assert (plain["draw"] == 0).all()
    assert few.to_pandas()["regret"].min() >= 0.0


def test_the_mean_over_queries_has_the_variance_of_one_draw():
    rng = np.random.default_rng(2)
    Q, D = 400, 30
    x = (
        5.0
        + rng.normal(0, 1.0, (Q, 1, 1, 1))
        + rng.normal(0, 2.0, (Q, D, 1, 1))
        + np.zeros((1, 1, 2, 1))
    )
    assert intervals.units(x).error()[0] == pytest.approx(np.sqrt(5.0 / Q), rel=0.1)
    alone = intervals.units(x[:1])
    assert alone.error()[0] == pytest.approx(x[0].std(), rel=0.1)
    assert alone.size == D
    assert intervals.mean(x) == pytest.approx(x.mean())


def test_the_summary_counts_draws(models):
    runs = logeval.evaluate(models, draws=4, quiet=True, **SETTING)
    summary = runs.summary()
    assert (summary["low"] <= summary["regret"]).all()
    assert (summary["regret"] <= summary["high"]).all()
    assert summary["replicas"].eq(3 * 4 * 2).all()


def test_draws_need_intervals(models):
    with pytest.raises(LogevalError, match="of fitted models"):
        logeval.evaluate(problem="B_LB(L=8,K=2,p=0.2,gap=0.1)", draws=2, **SETTING)
    with pytest.raises(LogevalError, match="need models with intervals"):
        logeval.evaluate(list(models), draws=2, **SETTING)


def test_with_known_results_policies_best_lists_and_the_ranker_share_them(models):
    asked = {**SETTING, "policies": ["Oracle", "Random"], "positions": 2}
    every = logeval.evaluate(models, **asked, quiet=True)
    mine = models.lists.query == 0
    query, lists = models.lists.queries[0], models.lists.items[mine]
    times = {
        item: float(models.lists.serps[mine][(lists == item).any(axis=1)].sum())
        for item in models["DCM", query].items.tolist()
    }
    least = sorted(times.values())[-3]
    known = [item for item, n in times.items() if n >= least]
    assert 2 < len(known) < len(times)
    asked |= {"queries": [query], "known": least}
    few = logeval.evaluate(models, **asked, quiet=True)
    drawn = logeval.evaluate(models, **asked, draws=2, quiet=True)
    for name in ("DCM", "PBM"):
        model = models[name, query]
        both = model.rows_of([(a, b) for a in known for b in known if a != b])
        best = model.expected_reward(both, model.rewards[0]).max()
        rows = few.problems().set_index("simulator")
        assert rows.loc[name, "best"] == pytest.approx(best)
        assert rows.loc[name, "items"] == len(known)
        whole = every.problems().set_index(["simulator", "query"])
        assert rows.loc[name, "best"] <= whole.loc[(name, str(query)), "best"]
    assert set(drawn.problems()["items"]) == {len(known)}
    with pytest.raises(LogevalError, match="do not say which results the log showed"):
        logeval.evaluate([("DCM", str(query), models["DCM", query])], **SETTING, known=0.1)
