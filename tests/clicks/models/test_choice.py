"""The choice model: its probabilities, its fit in classes, and what it is for."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from logeval.clicks.estimation import classes as general
from logeval.clicks.estimation.choice import ChoiceFit, parameters
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.choice import Choice
from logeval.clicks.models.classes import Classes
from logeval.clicks.quality.value import cross_fitted, of_list
from logeval.decision.power import credit_moments
from logeval.running.arrays import sum_by
from tests.clicks.examples import all_patterns, random_lists, random_model, statistics_of

OPTIONS = Options("map", draws=0, intervals=False)


def by_the_formulas(model, items, clicks):
    """P(clicks) of a list, click by click, as the module of the users says."""

    def odds(p):
        return p / (1 - p)

    w, b, n = model.w[items], model.b, len(items)
    at = [0, *(np.flatnonzero(clicks) + 1)]
    p = 1.0
    for j, r in enumerate(at):
        if r == n:
            break
        offered = [w[k] * b[k, r] for k in range(r, n)]
        x = odds(model.more[j]) * odds(model.depth[r]) * sum(offered) ** model.response
        x /= odds(model.s[items[r - 1]]) if r else 1.0
        if j + 1 == len(at):
            p /= 1 + x
        else:
            p *= x / (1 + x) * offered[at[j + 1] - 1 - r] / sum(offered)
    return p


@pytest.mark.parametrize("K", [1, 2, 4])
def test_probabilities_are_those_of_the_formulas_and_sum_to_one(K):
    rng = np.random.default_rng(0)
    model, every = random_model("Choice", rng, L=6, K=4), all_patterns(K)
    for A in random_lists(rng, 5, 6, K):
        p = np.array([by_the_formulas(model, A, c) for c in every])
        same = np.tile(A, (len(every), 1))
        assert p.sum() == pytest.approx(1.0)
        assert np.exp(model.log_likelihood(same, every)) == pytest.approx(p)
        assert model.click_probs_of_rows(A[None])[0] == pytest.approx(p @ every)
        assert model.expected_reward(A[None])[0] == pytest.approx(p @ every.sum(axis=1))
        assert model.expected_reward(A[None], "any-click")[0] == pytest.approx(1 - p[0])


def test_sampled_clicks_have_these_probabilities():
    model, every = random_model("Choice", np.random.default_rng(1), K=3), all_patterns(3)
    clicks = model.simulate(model.items[[4, 0, 2]], 40_000, seed=2)
    seen = np.bincount(clicks @ (1 << np.arange(3)), minlength=8) / 40_000
    p = np.array([by_the_formulas(model, np.array([4, 0, 2]), c) for c in every])
    assert seen == pytest.approx(p, abs=0.01)


def test_credits_of_interleaved_clicks():
    rng, every = np.random.default_rng(2), all_patterns(4)
    model, credit = random_model("Choice", rng), rng.choice([-1.0, 1.0], (1, 4))
    A = np.array([[3, 0, 5, 1]])
    p = np.array([by_the_formulas(model, A[0], c) for c in every])
    first, second = credit_moments(model.users, A, credit)
    total = every @ credit[0]
    assert (first[0], second[0]) == (pytest.approx(p @ total), pytest.approx(p @ total**2))


@pytest.mark.parametrize("reward", ["clicks", "any-click"])
def test_the_best_list_is_the_best_of_all(reward):
    rng, lost = np.random.default_rng(3), []
    every = np.array(list(itertools.permutations(range(6), 3)))
    for _ in range(40):
        model = random_model("Choice", rng, L=6, K=3)
        values, found = model.expected_reward(every, reward), model.optimum(3, reward)
        assert found.value == pytest.approx(model.expected_reward(found.A[None], reward)[0])
        assert found.proven is (reward == "any-click")
        lost.append(values.max() - found.value)
    assert max(lost) < (1e-9 if reward == "any-click" else 0.01)
    assert np.mean(np.array(lost) < 1e-9) > 0.9


def two_classes(n, seed=4, queries=4):
    """Searches of users of two classes, on lists that mix."""
    rng = np.random.default_rng(seed)
    models = []
    for _ in range(queries):
        one = random_model("Choice", rng, L=8, K=4, low=0.2, high=0.8)
        other = random_model("Choice", rng, L=8, K=4, low=0.2, high=0.8)
        one.more[:], other.more[:] = 0.3, 0.9
        models.append(Classes.of(np.array([0.6, 0.4]), [one, other]))
    return models, patterns_of(statistics_of(models, n, rng, spread=1.5))


@pytest.mark.parametrize("shared", [False, True])
def test_the_gradient_is_that_of_finite_differences(shared):
    _, data = two_classes(50)
    fit, rng = ChoiceFit(data, 2, shared), np.random.default_rng(5)
    at = fit.packed({f: rng.uniform(0.1, 0.5, x.shape) for f, x in fit.zero.items()})
    _, gradient = fit.objective(at, data, fit.mean)
    fields = np.repeat(fit.free, [fit.zero[f].size for f in fit.free])
    for f in fit.free:
        step = np.zeros(len(at))
        step[rng.choice(np.flatnonzero(fields == f))] = 1e-5
        up, down = (fit.objective(at + s, data, fit.mean)[0] for s in (step, -step))
        assert gradient @ step == pytest.approx((up - down) / 2, rel=1e-4, abs=1e-7), f


def test_the_likelihood_is_that_of_the_parameters():
    """On the scale of probabilities, with the largest attraction 1."""
    _, data = two_classes(200)
    fit = ChoiceFit(data, 2)
    fit.fit()
    alone = {"response": "clicks"}
    fitted = fit_one("Choice", data, replace(OPTIONS, classes=2, chosen=alone))
    found, own = np.empty(data.P), fit.log_likelihood(data)
    for q, query in enumerate(data.queries):
        rows = data.query == q
        A, model = data.items[rows] - data.offsets[q], fitted.of(query)
        found[rows] = model.log_likelihood(A, data.clicks[rows])
        assert all(one.w.max() == pytest.approx(1.0) for one in model.classes)
    assert found == pytest.approx(own, abs=1e-6)


def test_no_step_lowers_the_penalised_likelihood():
    _, data = two_classes(100)
    fit = ChoiceFit(data, 2)
    x, values = fit.start(), []
    for _ in range(25):
        x = fit.unpacked(fit.climb(x, 1, data, fit.mean).x)
        values.append(-fit.objective(fit.packed(x), data, fit.mean)[0])
    assert (np.diff(values) >= -1e-9).all()
    assert values[-1] > values[0] + 1.0


def test_it_finds_the_users_of_a_log():
    models, data = two_classes(3000, queries=3)
    fitted = fit_one("Choice", data, replace(OPTIONS, classes=2))
    rng = np.random.default_rng(6)
    for q, query in enumerate(data.queries):
        truth, model, A = models[query.query_id], fitted.of(query), random_lists(rng, 50, 8, 4)
        ids = truth.items[A]
        off = np.abs(model.click_probs(ids) - truth.click_probs(ids))
        assert off.mean() < 0.02, q
        assert off.max() < 0.08, q


def test_draws_spread_as_far_as_fits_to_other_logs():
    """What lists earn: its standard deviation over draws, and over 12 logs of the same users."""
    models, _ = two_classes(1, queries=1)
    A, rng, values = random_lists(np.random.default_rng(7), 12, 8, 4), np.random.default_rng(8), []
    for _ in range(12):
        data = patterns_of(statistics_of(models, 1500, rng, spread=1.5))
        fit = ChoiceFit(data, 1)
        fit.fit()
        order = np.searchsorted(data.item_ids, models[0].items, sorter=np.argsort(data.item_ids))
        rows = np.argsort(data.item_ids)[order]

        def earned(x, fit=fit, rows=rows, data=data):
            p = parameters(fit, x, data.Q)
            one = [p[f][0][rows] for f in ("w", "s")] + [p[f][0, 0] for f in ("b", "more", "depth")]
            return Choice(models[0].items, 4, *one, float(p["response"][0, 0])).expected_reward(A)

        values.append(earned(fit.x))
    spread = np.std([earned(x) for x in fit.draws(30)], axis=0).mean()
    assert 0.6 < spread / np.std(values, axis=0, ddof=1).mean() < 1.7


def competing(n, seed=9):
    """Users with an appetite that no list changes: one click or two, on results by their weight."""
    rng = np.random.default_rng(seed)
    models = []
    for _ in range(3):
        model = random_model("Choice", rng, L=9, K=4, low=0.2, high=0.8)
        model.s[:], model.b[:], model.depth[:] = 0.5, 1.0, 0.5
        model.more[:] = [0.7, 0.4, 0.3, 0.3]
        models.append(
            Choice(model.items, 4, model.w, model.s, model.b, model.more, model.depth, 0.0)
        )
    return patterns_of(statistics_of(models, n, rng, spread=2.0))


def test_a_log_whose_results_compete_faults_the_pbm_and_says_so_by_the_response():
    data = competing(5000)
    pbm = of_list(
        cross_fitted(
            lambda part: fit_one("PBM", part, Options("em", draws=0, intervals=False)), data
        )
    )
    assert pbm.passes is False
    assert pbm.high < 0.5
    fitted = fit_one("Choice", data, OPTIONS)
    assert fitted.estimates["response"].value.max() < 0.15


def test_the_response_is_told_by_the_value_check():
    """Its mean and error are those of slope x response, put together with the prior."""
    _, data = two_classes(1500)
    asked = replace(OPTIONS, chosen={"response": "clicks"})
    fits = []

    def fit(part):
        fits.append(fit_one("Choice", part, asked))
        return fits[-1]

    slope = of_list(cross_fitted(fit, data))
    response = np.mean([one.estimates["response"].value.mean() for one in fits])
    mean, error = response * slope.slope, response * (slope.high - slope.low) / 3.92
    precision = np.array([1 / error**2, 1 / 0.5**2])
    told = Choice.told(data, 1, OPTIONS)
    assert told == pytest.approx(
        (precision @ [mean, 0.5] / precision.sum(), precision.sum() ** -0.5)
    )
    fitted = fit_one("Choice", data, Options("map", draws=20))
    x = fitted.estimates["response"]
    assert x.value == pytest.approx(np.full(4, min(told[0], 1.0)))
    assert 0.4 * told[1] < x.draws[:, 0].std() < 1.6 * told[1]
    assert Choice.told(data, 1, asked) is None


def test_queries_may_share_everything_but_their_items():
    _, data = two_classes(300)
    pooled = fit_one("Choice", data, Options("map", "pooled", draws=3))
    assert pooled.estimates["depth"].value.shape == (1, data.K)
    assert pooled.estimates["w"].draws.shape == (3, data.I)
    alone = fit_one("Choice", data, Options("map", "per-query", draws=0, intervals=False))
    assert any("queries share" in note for note in alone.report["notes"])


def test_the_number_of_classes_is_chosen_and_the_first_clicks_least(monkeypatch):
    monkeypatch.setattr(general, "MOST", 3)
    _, data = two_classes(1500, queries=2)
    options = Options("map", draws=0, intervals=False, classes="auto")
    found = Choice.fit_classes(data, options, "auto")
    clicks = [one["clicks"] for one in found.behaviour]
    assert found.number == 2
    assert clicks == sorted(clicks)
    assert found.share.value.sum(axis=1) == pytest.approx(np.ones(data.Q))
    n = sum_by(data.query, data.count, data.Q)
    assert found.share.value.T @ n / n.sum() == pytest.approx([0.6, 0.4], abs=0.15)
