"""Rehearsals: the clicks of known users, errors by hand, and what becomes of them."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import logeval
from logeval.clicks.collection import FittedModels
from logeval.clicks.fit import Fit
from logeval.log.queries import Query
from logeval.planning.effects import AB, is_chosen, rehearsed, simulated
from logeval.planning.experiment import corrected, interval_of
from logeval.planning.plan import Plan
from logeval.planning.power import Effect
from logeval.planning.rankers import best_of_known, impressions
from logeval.running.seeds import generator
from logeval.tracks.fitted import fitted_queries
from tests.clicks.examples import three_queries


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    log = three_queries(tmp_path_factory.mktemp("log"))
    return logeval.fit_models(log, ["dcm"], quiet=True)


def test_simulated_clicks_are_those_of_the_users_on_the_lists_of_the_log(models):
    users, lists = models["DCM"], models.lists
    data = simulated(users, lists, np.random.default_rng(1))
    assert data.serps.sum() == lists.serps.sum()
    for query in users.queries:
        q, model = data.queries.index(query), users.of(query)
        mine = data.take(data.query == q)
        ranker = lists.ranker(query, model.items, model.K)
        wanted = ranker.p @ model.users.click_probs(ranker.A)
        ctr = mine.count @ mine.clicks / mine.count.sum()
        error = np.sqrt(wanted * (1 - wanted) / mine.count.sum())
        assert (np.abs(ctr - wanted) < 4 * error).all()
        theirs = lists.items[lists.query == lists.queries.index(query)]
        shown = np.where(mine.items < 0, 0, data.item_ids[mine.items])
        assert {tuple(row) for row in shown.tolist()} == {tuple(row) for row in theirs.tolist()}


def test_an_error_is_the_plan_of_a_simulated_log_less_the_truth(models, monkeypatch):
    seen = []

    def watched(users, *more):
        seen.append(users.estimates["w"].value)
        return simulated(users, *more)

    monkeypatch.setattr("logeval.planning.effects.simulated", watched)
    asked = Plan(models, metric="clicks", rehearsals=3, quiet=True)
    dcm = models["DCM"]
    kept = fitted_queries(models, None, "clicks", None)
    errors = rehearsed(asked, dcm, ["clicks"], kept)
    assert set(errors) == {(AB, "clicks"), ("team-draft interleaving", "credit"),
                           ("probabilistic interleaving", "credit")}  # fmt: skip
    assert len(errors[AB, "clicks"]) == 3
    assert np.array_equal(seen, dcm.estimates["w"].draws[:3])  # users of three draws
    # the first of them by hand
    users = dcm.drawn(1)
    data = simulated(users, models.lists, generator(0, "plan", "rehearsal", 0))
    fit = Fit("", ["dcm"], draws=10).fit("DCM", data)
    again = FittedModels({"DCM": fit}, {}, models.lists)
    planned, true = 0.0, 0.0
    for f in fitted_queries(again, None, "clicks", None):
        query = Query.of(f.query)
        best = f.model.items[best_of_known(f, impressions(again, f), 100, "clicks")]
        share = fit.serps[fit.index[query]] / fit.serps.sum()

        def effect(model, best=best, f=f):
            lists = models.lists.ranker(Query.of(f.query), model.items, f.K)
            a = lists.p @ model.expected_reward(lists.A, "clicks")
            return model.expected_reward(model.rows_of(best[None]), "clicks")[0] - a

        planned += share * np.mean([effect(d.of(query)) for d in fit.some_draws(10)])
        true += share * effect(users.of(query))
    assert errors[AB, "clicks"][0] == pytest.approx(planned - true)


def test_the_bias_is_taken_off_and_the_spread_is_that_of_the_errors():
    effects = [Effect(0.3, 1.0), Effect(0.4, 1.0), Effect(0.5, 1.0)]
    errors = np.array([0.1, 0.3, 0.2, 0.0])
    found = corrected(effects, errors)
    means = [one.mean for one in found]
    spread = errors.std(ddof=1) * math.sqrt(1.25)
    assert np.mean(means) == pytest.approx(0.4 - 0.15)
    assert np.std(means, ddof=1) == pytest.approx(spread)
    assert means[0] < means[1] < means[2]
    low, high = interval_of(found, 4)
    assert (low, high) == pytest.approx((0.25 - 3.182446 * spread, 0.25 + 3.182446 * spread))
    assert corrected(effects, None) == effects
    low, high = interval_of(effects, None)
    assert (low, high) == pytest.approx((0.4 - 0.196, 0.4 + 0.196))


def test_only_what_the_clicks_chose_is_rehearsed(models, tmp_path):
    assert [is_chosen(r) for r in ("best", "best:pbm", "TopRank@500")] == [True] * 3
    assert [is_chosen(r) for r in ("logged", "lists.csv", "bestseller.csv")] == [False] * 3
    fixed = tmp_path / "lists.csv"
    rows = [f"{f.query},{k + 1},{item}" for f in fitted_queries(models, None, "clicks", None)
            for k, item in enumerate(f.model.items[: f.K].tolist())]  # fmt: skip
    fixed.write_text("\n".join(["query,rank,item", *rows]) + "\n")
    kept = fitted_queries(models, None, "clicks", None)
    asked = Plan(models, treatment=fixed, quiet=True)
    assert rehearsed(asked, models["DCM"], ["clicks"], kept) == {}
    known = Plan(models, draws=0, quiet=True)
    assert rehearsed(known, models["DCM"], ["clicks"], kept) == {}


def test_a_plan_says_what_it_took_off(models):
    asked = {"metric": "clicks", "bandit": None, "quiet": True}
    plain = logeval.plan(models, rehearsals=0, **asked)
    found = logeval.plan(models, rehearsals=3, **asked)
    off = found.row(AB)["flattered"]
    assert found.row(AB)["effect"] == pytest.approx(plain.row(AB)["effect"] - off)
    assert math.isnan(plain.row(AB)["flattered"])
    gain = found.facts["treatment_value"] - found.facts["control_value"]
    assert gain == pytest.approx(found.row(AB)["effect"])
    text = " ".join(found.verdict().text().split())
    way = "many" if off >= 0 else "few"
    said = rf"in 3 rehearsals on simulated logs the plan said [0-9.]+ clicks too {way}; that is"
    assert re.search(said, text)
    assert "comes out too good" not in text
    assert "comes out too good" in " ".join(plain.verdict().text().split())
