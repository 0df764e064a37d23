"""Moments by brute force, power by simulation, and what a plan says."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import logeval
from benchmarks.power import rows_of
from logeval.cli import app
from logeval.clicks.models.classes import Classes
from logeval.log.queries import Query
from logeval.planning.effects import AB, interleaved, traffic_of
from logeval.planning.power import (
    INTERLEAVINGS,
    Effect,
    TeamDraft,
    credit_moments,
    metric_moments,
    power,
    searches_needed,
)
from logeval.planning.rankers import Shown, best_of_known, impressions, shown_by
from logeval.tracks.fitted import fitted_queries
from tests.clicks.examples import all_patterns, random_model, three_queries

NAMES = ["CM", "DCM", "SDBN", "DBN", "CCM", "PBM", "UBM", "RCTR"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    log = three_queries(tmp_path_factory.mktemp("log"))
    return logeval.fit_models(log, ["dcm", "pbm", "ubm"], quiet=True)


def plan(models, **asked):
    return logeval.plan(models, quiet=True, **{"bandit": None, "rehearsals": 0, **asked})


def random_users(name, seed=1):
    rng = np.random.default_rng(seed)
    if name != "classes":
        return random_model(name, rng)
    return Classes.of(np.array([0.3, 0.7]), [random_model("DCM", rng), random_model("DCM", rng)])


@pytest.mark.parametrize("name", [*NAMES, "classes"])
def test_moments_are_sums_over_all_click_patterns(name):
    model, rng = random_users(name), np.random.default_rng(2)
    A, credit = np.array([2, 0, 5, 1]), rng.normal(size=4)
    patterns = all_patterns(4)
    p = np.exp(model.log_likelihood(np.repeat(A[None], len(patterns), axis=0), patterns))
    for s in (credit, np.ones(4)):
        x = patterns @ s
        first, second = credit_moments(model.users, A[None], s[None])
        assert (first[0], second[0]) == pytest.approx((p @ x, p @ x**2))
    clicks = metric_moments(model.users, A[None], "clicks")
    assert clicks[0][0] == pytest.approx(model.expected_reward(A[None], "clicks")[0])
    some = patterns.any(axis=1)
    assert metric_moments(model.users, A[None], "any-click")[1][0] == pytest.approx(p @ some)


def test_effects_have_the_variance_between_queries():
    traffic = np.array([0.75, 0.25])
    found = Effect.of_ab(
        traffic, (np.array([0.2, 0.6]), np.array([0.2, 0.6])), (np.array([0.4, 0.6]),) * 2
    )
    a, b = 0.3, 0.45  # of 0 or 1, whatever the query
    assert found.mean == pytest.approx(b - a)
    assert found.sd == pytest.approx(math.sqrt(2 * (a * (1 - a) + b * (1 - b))))
    one = Effect.of_interleaving(traffic, np.array([0.1, -0.1]), np.array([0.5, 0.7]))
    assert one.mean == pytest.approx(0.05)
    assert one.sd == pytest.approx(math.sqrt(0.55 - 0.05**2))


def test_searches_are_those_of_the_text_books_formula():
    found = Effect(0.05, 0.8)
    n = searches_needed([found])
    assert n == pytest.approx(((1.959964 + 0.841621) * 0.8 / 0.05) ** 2, abs=1)
    assert power([found], n) >= 0.8 > power([found], n - 1)
    assert searches_needed([Effect(0.0, 1.0)]) == math.inf
    both = [found, Effect(0.0, 0.8)]  # half of the draws have no difference
    assert searches_needed(both) == math.inf
    assert power(both, 1e9) == pytest.approx((1 + 0.025) / 2)


@pytest.mark.parametrize("truth", ["ubm", "DCM(classes=3)"])
def test_predicted_power_is_within_three_points_of_simulated_power(truth):
    # 3,000 repetitions: a standard error of 0.73 points at 80%
    found = pd.DataFrame(rows_of(truth, 3000, levels=(0.8,), seed=9))
    assert len(found) == 4
    assert (found["simulated"] - found["predicted"]).abs().max() < 0.03


def test_many_lists_are_interleaved_as_all_pairs_would_be():
    rng = np.random.default_rng(3)
    model = random_model("PBM", rng, L=8, K=4)

    def shown(n):
        p = rng.random(n)
        return Shown(np.array([rng.permutation(8)[:4] for _ in range(n)]), p / p.sum())

    a, b = shown(30), shown(40)

    def mean(made):
        return made.p @ credit_moments(model.users, made.A, made.credit)[0]

    every = sum(
        a.p[i] * b.p[j] * mean(TeamDraft().lists(a.A[i], b.A[j], rng, 1))
        for i in range(30)
        for j in range(40)
    )
    some = mean(interleaved(TeamDraft(), a, b, rng, 0.05))
    spread = np.std([mean(TeamDraft().lists(a.A[i], b.A[j], rng, 1))
                     for i in range(10) for j in range(10)])  # fmt: skip
    assert some == pytest.approx(every, abs=3 * spread / math.sqrt(400))


def test_rankers_are_what_they_are_called(models, tmp_path):
    queries = fitted_queries(models_of(models, "DCM"), None, "clicks", None)
    logged = shown_by("logged", models, queries, "clicks", 0)
    best = shown_by("best", models, queries, "clicks", 0)
    others = shown_by("best:pbm", models, queries, "clicks", 0)
    for f, one, two, three in zip(queries, logged, best, others, strict=True):
        assert one.p.sum() == pytest.approx(1.0)
        assert np.array_equal(one.A, f.ranker.A)
        assert two.A.tolist() == [np.argsort(-f.model.w)[: f.K].tolist()]
        wanted = models["PBM", f.query].best_list(f.K, "clicks")
        assert f.model.items[three.A[0]].tolist() == wanted.tolist()
    rows = [(f.query, k + 1, item) for f in queries[:2] for k, item in enumerate(range(103, 107))]
    pd.DataFrame(rows, columns=["query", "rank", "item"]).to_csv(tmp_path / "t.csv", index=False)
    table = shown_by(str(tmp_path / "t.csv"), models, queries, "clicks", 0)
    assert queries[0].model.items[table[0].A[0]].tolist() == [103, 104, 105, 106]
    assert table[2] is None
    learned = shown_by("CascadeKL-UCB@400", models, queries, "clicks", 0)
    random = shown_by("Random@1", models, queries, "clicks", 0)

    def value(shown):
        return sum(s.p @ f.model.expected_reward(s.A, "any-click")
                   for f, s in zip(queries, shown, strict=True))  # fmt: skip

    assert value(learned) > value(random)
    assert len(learned[0].p) == 20


def test_best_lists_are_of_items_that_were_shown_often(models):
    queries = fitted_queries(models_of(models, "UBM"), None, "clicks", None)
    for f in queries:
        shown = impressions(models, f)
        log = logeval.load(models.manifest["log_folder"])
        serps = log.serps(columns=["query_id", "items"]).to_pylist()
        mine = [s["items"] for s in serps if s["query_id"] == int(f.query)]
        assert shown.tolist() == [sum(i in items for items in mine) for i in f.model.items.tolist()]
        least = int(np.sort(shown)[-5])  # five items
        often = np.flatnonzero(shown >= least)
        values = f.model.expected_reward(
            np.array(list(itertools.permutations(often, f.K))), "clicks"
        )
        best = best_of_known(f, shown, least, "clicks")
        assert f.model.expected_reward(best[None], "clicks")[0] == pytest.approx(values.max())
        assert set(best) <= set(often)
        few = best_of_known(f, shown, 10**6, "clicks")  # no item: the most shown
        assert set(few) == set(np.argsort(-shown, kind="stable")[: f.K])


def test_a_plan_keeps_to_what_was_shown_often_and_says_what_was_not(models, monkeypatch):
    queries = fitted_queries(models_of(models, "DCM"), None, "clicks", None)
    shown = [impressions(models, f) for f in queries]
    least = int(max(np.sort(n)[-5] for n in shown))  # five items at most
    wanted = [best_of_known(f, n, least, "clicks") for f, n in zip(queries, shown, strict=True)]
    found = plan(models, metric="clicks", draws=0, traffic="equal", min_shown=least)
    gains = [
        f.model.expected_reward(best[None], "clicks")[0]
        - f.ranker.p @ f.model.expected_reward(f.ranker.A, "clicks")
        for f, best in zip(queries, wanted, strict=True)
    ]
    assert found.row(AB)["effect"] == pytest.approx(np.mean(gains))
    every = plan(models, metric="clicks", draws=0, traffic="equal", min_shown=0)
    assert every.row(AB)["effect"] > found.row(AB)["effect"]
    monkeypatch.setattr("logeval.planning.experiment.RARE", least)
    back = plan(models, control="best", treatment="logged", draws=0, traffic="equal", min_shown=0)
    rare = [f.ranker.p @ (n[f.ranker.A] < least).mean(axis=1)
            for f, n in zip(queries, shown, strict=True)]  # fmt: skip
    assert back.facts["rare"] == pytest.approx(np.mean(rare))
    assert 0 < back.facts["rare"] < 1


def models_of(models, name):
    return replace(models, fitted={name: models.fitted[name]})


def test_an_effect_is_what_the_models_say_by_hand(models):
    found = plan(models, metric="clicks", draws=0, traffic="equal")
    dcm = models["DCM"]
    queries = fitted_queries(models_of(models, "DCM"), None, "clicks", None)
    wanted = np.mean([
        f.model.expected_reward(np.argsort(-f.model.w)[None, : f.K], "clicks")[0]
        - f.ranker.p @ f.model.expected_reward(f.ranker.A, "clicks")
        for f in queries
    ])  # fmt: skip
    assert found.row(AB)["effect"] == pytest.approx(wanted)
    assert math.isnan(found.row(AB)["low"])
    by_serps = plan(models, metric="clicks", draws=0)
    assert by_serps.row(AB)["effect"] != pytest.approx(wanted)
    assert np.allclose(traffic_of(queries, "logged"), dcm.serps / dcm.serps.sum())
    back = plan(models, metric="clicks", draws=0, control="best", treatment="logged")
    assert back.row(AB)["effect"] == pytest.approx(-by_serps.row(AB)["effect"])
    assert back.row(AB)["searches"] == by_serps.row(AB)["searches"]


def test_draws_give_the_interval_of_the_effect(models):
    found = plan(models, metric="clicks").row(AB)
    dcm = models["DCM"]
    queries = fitted_queries(models_of(models, "DCM"), None, "clicks", None)
    effects = []
    for draw in range(1, dcm.n_draws + 1):
        own = [dcm.drawn(draw).of(Query.of(f.query)) for f in queries]
        each = [
            model.expected_reward(np.argsort(-f.model.w)[None, : f.K], "clicks")[0]
            - f.ranker.p @ model.expected_reward(f.ranker.A, "clicks")
            for f, model in zip(queries, own, strict=True)
        ]
        effects.append(np.average(each, weights=dcm.serps))
    assert found["effect"] == pytest.approx(np.mean(effects))
    assert found["high"] - found["effect"] == pytest.approx(1.96 * np.std(effects, ddof=1))


@pytest.mark.parametrize("traffic", ["equal", "logged"])
def test_what_a_policy_is_ahead_is_what_evaluate_says(models, traffic):
    """It learns from the users who judge it, and not from the fitted values."""
    asked = {"metric": "clicks", "traffic": traffic, "draws": 6}
    found = plan(models, treatment="CascadeKL-UCB@300", **asked)
    runs = logeval.evaluate(
        models_of(models, "DCM"), policies=["CascadeKL-UCB"], horizon=300, draws=6, runs=1,
        reward="clicks", quiet=True,
    )  # fmt: skip
    queries = fitted_queries(models_of(models, "DCM"), None, "clicks", None)
    share = dict(zip([f.query for f in queries], traffic_of(queries, traffic), strict=True))
    row = runs.against_ranker(traffic=share).iloc[0]
    table = found.row(AB)
    assert table[["effect", "low", "high"]].tolist() == pytest.approx(
        row[["ahead", "ahead_low", "ahead_high"]].tolist()
    )
    plain = runs.against_ranker().iloc[0][["ahead_low", "break_even_high", "reward", "cost"]]
    same = plain.tolist() == pytest.approx(row[plain.index].tolist())
    assert same == (traffic == "equal")
    each = runs.against_ranker(by_query=True).set_index("query")["ahead"]
    assert row["ahead"] == pytest.approx(sum(share[query] * x for query, x in each.items()))
    back = plan(models, control="CascadeKL-UCB@300", treatment="logged", **asked).row(AB)
    assert (back["effect"], back["low"]) == pytest.approx((-table["effect"], -table["high"]))
    assert back["searches"] == pytest.approx(table["searches"], rel=0.01)


def test_interleaving_needs_fewer_searches_than_an_ab_test(models):
    found = plan(models, model="pbm")
    n = {design: found.row(design)["searches"] for design in
         (AB, *(way.name for way in INTERLEAVINGS))}  # fmt: skip
    assert max(n[way.name] for way in INTERLEAVINGS) < n[AB]
    curve = found.curve[found.curve["metric"] == "clicks"]
    at = np.interp(n[AB], curve["searches"], curve["power"])
    assert at == pytest.approx(0.8, abs=0.01)


def test_a_bandit_in_the_same_traffic_is_counted_against_the_control(models):
    asked = {"metric": "clicks", "model": "pbm", "draws": 0}
    oracle = plan(models, bandit="Oracle", **asked)
    n, ab = oracle.bandit["searches"], oracle.row(AB)
    assert ab["searches"] <= n <= ab["searches"] + 3
    assert oracle.bandit["earned"] == pytest.approx(ab["effect"] * n, rel=0.02)
    assert oracle.bandit["lowest"] == 0
    random = plan(models, bandit="Random", **asked)
    assert random.bandit["lowest"] < 0
    assert "behind" in random.verdict().text()
    assert "never behind" in oracle.verdict().text()


def test_the_words(models):
    found = plan(models, model="pbm", metric="clicks")
    text = " ".join(found.verdict().text().split())
    ab, draft = found.row(AB), found.row(TeamDraft.name)
    assert f"an A/B test takes {ab['searches']:,.0f} searches" in text
    assert f"team-draft interleaving {draft['searches']:,.0f}" in text
    assert re.search(r"would have [0-9.]+ clicks per search more \([0-9]+%\) with best than", text)
    assert "with 80% power" in text
    assert "With each searched as often as in the log, of these 3 queries an A/B test" in text
    times = ab["searches"] / draft["searches"]
    assert f"interleave by team draft ({times:.1f} times fewer searches)" in text
    even = replace(found, facts={**found.facts, "traffic": "equal"}).verdict().answer
    assert "With each searched equally often, of" in even
    back = plan(models, model="pbm", metric="clicks", control="best", treatment="logged")
    assert "fewer" in back.verdict().answer
    unsure = replace(found, table=found.table.assign(low=-1.0, high=1.0))
    assert unsure.verdict().answer.startswith("The log does not say whether best has more clicks")
    never = replace(found, table=found.table.assign(searches=math.nan))
    assert "takes no number of searches, team-draft interleaving none," in never.verdict().answer
    same = replace(found, table=found.table.assign(effect=0.0)).verdict().answer
    assert same.startswith("Users like PBM's have as many clicks with best as with logged")
    wrong = found.table.assign(effect=np.where(found.table["design"] == AB, 0.1, -0.1))
    told = replace(found, table=wrong).verdict()
    assert any("is in favour of logged" in line for line in told.limits)
    assert told.next[0] == "run the A/B test: interleaving is no shortcut"
    assert not any("interleav" in line for line in unsure.verdict().next)
    assert not any("is in favour" in line for line in found.verdict().limits)
    assert any("is chosen by the clicks" in line for line in found.verdict().limits)
    plain = replace(found, facts={**found.facts, "chosen": []})
    assert not any("is chosen by the clicks" in line for line in plain.verdict().limits)


def test_the_command_keeps_its_plan_and_draws_it(models, tmp_path):
    models.write(tmp_path / "m")

    def run(*arguments):
        done = CliRunner().invoke(app, ["plan", str(tmp_path / "m"), *map(str, arguments)])
        assert done.exit_code == 0, done.output
        return done.stdout

    text = run("-q", "--out", tmp_path / "p", "--metric", "clicks", "--rehearsals", 3)
    assert "team-draft" in text
    assert (tmp_path / "p" / "power.png").read_bytes().startswith(b"\x89PNG")
    again = ("-q", "--out", tmp_path / "p", "--metric", "clicks", "--rehearsals", 3)
    assert run(*again) == text  # read again
    assert "in 3 rehearsals on simulated logs the plan said" in " ".join(text.split())
    asked = ("--metric", "clicks", "--bandit", "none", "--rehearsals", 0, "--json")
    found = json.loads(run("-q", *asked))
    assert found["bandit"] is None
    assert {"design", "searches", "effect"} <= set(found["rows"][0])
    assert len(found["curve"]) > 100
    assert "80% power" in " ".join(found["verdict"].split())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"control": "best"}, "control and treatment are both best"),
        ({"treatment": "nonsense"}, "a ranker is logged, best"),
        ({"treatment": "Nonsense@5"}, "unknown policy"),
        ({"treatment": "best:dbm"}, "unknown"),
        ({"metric": "revenue"}, "metric='revenue'"),
        ({"model": "pbm", "metric": "satisfaction"}, "satisfaction"),
        ({"bandit": "Nobody"}, "unknown policy"),
        ({"rehearsals": 2}, "ask for at least 3, or for 0"),
    ],
)
def test_what_cannot_be_planned_is_refused(models, asked, said):
    with pytest.raises(logeval.LogevalError, match=said):
        plan(models, **asked)


def test_models_without_lists_have_no_logged_ranker(models):
    with pytest.raises(logeval.LogevalError, match="have no lists of a log"):
        plan(replace(models, lists=None))
