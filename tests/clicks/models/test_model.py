"""What must hold for every click model, whichever users it describes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from logeval.clicks.models.ubm import UBM
from logeval.clicks.users.browsing import Browsing
from logeval.errors import LogevalError
from tests.clicks.examples import ALL, all_patterns, random_lists, random_model

K, L = 4, 6
every_model = pytest.mark.parametrize("name", ALL)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@every_model
def test_probabilities_of_all_click_patterns_sum_to_one(name, rng):
    model, patterns = random_model(name, rng), all_patterns(K)
    for A in random_lists(rng, 5, L, K):
        total = np.exp(model.log_likelihood(np.tile(A, (len(patterns), 1)), patterns)).sum()
        assert total == pytest.approx(1.0, abs=1e-12)


@every_model
def test_marginal_and_conditional_probabilities_agree_with_the_patterns(name, rng):
    model, patterns = random_model(name, rng), all_patterns(K)
    A = random_lists(rng, 1, L, K)[0]
    lists = np.tile(A, (len(patterns), 1))
    p = np.exp(model.log_likelihood(lists, patterns))
    assert model.click_probs(model.items[A]) == pytest.approx(p @ patterns, abs=1e-12)
    conditional = model.conditional_click_probs(lists, patterns)
    for row, c in enumerate(patterns):
        for k in range(K):
            same = (patterns[:, :k] == c[:k]).all(axis=1)
            if p[same].sum() > 0:
                expected = p[same] @ patterns[same, k] / p[same].sum()
                assert conditional[row, k] == pytest.approx(expected, abs=1e-9)


@every_model
def test_sampled_frequencies_agree_with_click_probs(name, rng):
    model = random_model(name, rng)
    A = np.tile(random_lists(rng, 1, L, K), (40_000, 1))
    clicks = model.sample(A, rng.random(A.shape))
    assert clicks.mean(axis=0) == pytest.approx(model.click_probs(model.items[A[0]]), abs=0.012)


@every_model
def test_rewards_are_expectations_over_click_patterns(name, rng):
    model, patterns = random_model(name, rng), all_patterns(K)
    A = random_lists(rng, 1, L, K)
    p = np.exp(model.log_likelihood(np.tile(A, (len(patterns), 1)), patterns))
    assert model.expected_reward(A, "clicks")[0] == pytest.approx(p @ patterns.sum(axis=1))
    assert model.expected_reward(A, "any-click")[0] == pytest.approx(p @ patterns.any(axis=1))
    assert model.rewards[0] == ("satisfaction" if "satisfaction" in model.rewards else "clicks")


def test_satisfaction_is_as_the_papers_write_it(rng):
    A = random_lists(rng, 1, L, K)
    dcm = random_model("DCM", rng)
    assert dcm.expected_reward(A)[0] == pytest.approx(1 - np.prod(1 - dcm.v * dcm.w[A[0]]))
    cm = random_model("CM", rng)
    assert cm.expected_reward(A)[0] == pytest.approx(1 - np.prod(1 - cm.w[A[0]]))
    dbn = random_model("DBN", rng)
    q = (dbn.w * dbn.s)[A[0]]
    above = np.concatenate([[1.0], np.cumprod(1 - q)[:-1]])
    expected = (dbn.gamma ** np.arange(K) * q * above).sum()
    assert dbn.expected_reward(A)[0] == pytest.approx(expected)


def test_pbm_is_a_ubm_whose_examination_ignores_clicks(rng):
    pbm = random_model("PBM", rng)
    assert isinstance(pbm.users, Browsing)
    ubm = UBM(items=pbm.items, K=K, w=pbm.w, e=np.repeat(pbm.e[:, None], K + 1, axis=1))
    A = random_lists(rng, 20, L, K)
    assert np.allclose(ubm.click_probs_of_rows(A), pbm.click_probs_of_rows(A))


def test_too_long_a_list_is_refused(rng):
    with pytest.raises(LogevalError, match="4 positions and 6 items"):
        random_model("PBM", rng).best_list(5)
    with pytest.raises(LogevalError, match="unknown reward of PBM"):
        random_model("PBM", rng).best_list(2, "satisfaction")


def test_lists_are_given_and_returned_as_item_ids(rng):
    model = random_model("DCM", rng, L=6, K=4)
    best = model.best_list()
    assert set(best) <= set(model.items)
    assert best.tolist() == model.items[model.best_rows()].tolist()
    assert model.click_probs(best.tolist()).shape == (4,)
    shuffled = replace(model, items=np.array([9, 3, 12, 5, 8, 1]))
    A = np.array([[3, 0, 5], [2, 1, 4]])
    assert np.array_equal(shuffled.click_probs(shuffled.items[A]), shuffled.click_probs_of_rows(A))


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([100, 7], "there is no item 7; it has 100, 101"),
        ([100, 700], "there is no item 700; it has 100, 101"),
        ([100, 101, 100], "item 100 is twice in a list"),
        ([100, 101, 102, 103, 104], "a list of 5 items; it has 4 positions"),
        (np.zeros((2, 0), dtype=int), "a list of 0 items; it has 4 positions"),
        ([0.5], "a list holds item ids"),
        ([[100], [100, 101]], "a list holds item ids"),
        ([], "a list holds item ids"),
        (100, "a list holds item ids"),
    ],
)
def test_lists_that_cannot_be_shown_are_errors(rng, items, message):
    with pytest.raises(LogevalError, match=message):
        random_model("PBM", rng).click_probs(items)


@every_model
def test_simulated_users_click_as_the_model_says(name, rng):
    """Each position is a mean of n independent users: 4 standard errors of it at most."""
    model, n = random_model(name, rng), 20_000
    items = model.items[random_lists(rng, 1, L, 3)[0]]
    clicks = model.simulate(items, n, seed=3)
    assert clicks.shape == (n, 3)
    assert set(np.unique(clicks)) <= {0, 1}
    p = model.click_probs(items)
    assert np.abs(clicks.mean(axis=0) - p).max() <= 4 * np.sqrt(0.25 / n)
    assert np.array_equal(clicks, model.simulate(items.tolist(), n, seed=3))
    assert not np.array_equal(clicks, model.simulate(items, n, seed=4))
    assert model.simulate(items, 0).shape == (0, 3)


@pytest.mark.parametrize(
    ("items", "n", "more", "message"),
    [
        ([100, 101], -1, {}, "must be 0 or more"),
        ([[100, 101], [101, 100]], 5, {}, "takes one list"),
        ([100, 999], 5, {}, "there is no item 999"),
        ([100, 100], 5, {}, "item 100 is twice"),
        ("x", 5, {}, "a list holds item ids"),
        (None, 5, {}, "a list holds item ids"),
    ],
)
def test_what_cannot_be_simulated_is_an_error(rng, items, n, more, message):
    with pytest.raises(LogevalError, match=message):
        random_model("DCM", rng).simulate(items, n, **more)


def test_a_notebook_shows_the_parameters(rng):
    shown = random_model("DCM", rng)._repr_html_()
    assert "DCM of one query: 6 items, 4 positions" in shown
    assert shown.count("<table") == 2
    assert "100" in shown
