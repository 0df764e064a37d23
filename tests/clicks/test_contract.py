"""What must hold for every click model, whichever users it describes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logeval.clicks.models.browsing import Browsing
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.registry import MODELS, model_names
from logeval.clicks.models.ubm import UBM
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
    assert model.click_probs(A[None])[0] == pytest.approx(p @ patterns, abs=1e-12)
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
    assert clicks.mean(axis=0) == pytest.approx(model.click_probs(A[:1])[0], abs=0.012)


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


@every_model
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, K), edge=st.booleans())
def test_no_list_beats_best_list(name, seed, k, edge):
    rng = np.random.default_rng(seed)
    low, high = (0.0, 1.0) if edge else (0.05, 0.95)
    model = random_model(name, rng, low=low, high=high)
    lists = np.array(list(itertools.permutations(range(L), k)))
    for reward in model.rewards:
        best = model.optimum(k, reward)
        assert best.proven
        assert len(set(best.A.tolist())) == k
        assert best.value == pytest.approx(model.expected_reward(best.A[None], reward)[0])
        assert model.expected_reward(lists, reward).max() <= best.value + 1e-12


def one_spare_item(seed):
    """DCM and UBM with 6 positions and 7 items, where a best list may leave out any of them."""
    rng = np.random.default_rng(seed)
    for _ in range(8):
        w, v, e = rng.beta(0.5, 0.5, 7), rng.beta(0.3, 0.3, 6), rng.beta(0.3, 0.3, (6, 7))
        yield DCM(items=np.arange(7), K=6, w=w, v=v)
        yield UBM(items=np.arange(7), K=6, w=w, e=e)


def test_a_best_list_may_leave_out_an_item_of_the_middle():
    lists = np.array(list(itertools.permutations(range(7), 6)))
    w, v = np.array([0.9, 0.9, 0.8, 0.5, 0.01, 0.01, 0.01]), np.array([1.0, 1, 1, 0, 0, 0])
    e = np.ones((6, 7))
    e[:, 1:4] = 0.0
    dcm = DCM(items=np.arange(7), K=6, w=w, v=v)
    assert dcm.optimum(6, "clicks").value == pytest.approx(2.552, abs=5e-4)
    for model in [dcm, UBM(items=np.arange(7), K=6, w=w, e=e), *one_spare_item(1)]:
        best = model.optimum(6, "clicks")
        assert best.proven
        assert best.value == pytest.approx(model.expected_reward(lists, "clicks").max())


def test_a_strong_tail_makes_a_weak_item_best_at_a_terminating_position():
    """DCM clicks: with v = (1, 0, 0, 0) the least attractive item belongs at position 1."""
    rng = np.random.default_rng(0)
    model = random_model("DCM", rng, low=0.6)
    dcm = type(model)(items=model.items, K=4, w=model.w, v=np.array([1.0, 0.0, 0.0, 0.0]))
    best = dcm.best_list(4, "clicks")
    assert best[0] == dcm.w.argmin()


def test_best_list_of_a_large_ubm_is_proven():
    rng = np.random.default_rng(3)
    K, L = 10, 871
    distance = np.arange(K)[:, None] - np.arange(K + 1)[None] + 1
    e = np.clip(0.95 / np.maximum(distance, 1) ** 0.5 + rng.normal(0, 0.03, (K, K + 1)), 0.02, 1)
    model = UBM(items=np.arange(L), K=K, w=rng.beta(1, 6, L), e=e)
    best = model.optimum()
    assert best.proven
    for _ in range(200):  # no swap of two positions, no replacement, is better
        A = best.A.copy()
        i, j = rng.choice(K, 2, replace=False)
        A[i], A[j] = A[j], A[i]
        if rng.random() < 0.5:
            A[i] = rng.choice(np.setdiff1d(np.arange(L), A))
        assert model.expected_reward(A[None])[0] <= best.value + 1e-12


@every_model
def test_parameters_are_one_row_each(name, rng):
    model = random_model(name, rng)
    table = model.parameters()
    sizes = {"item": L, "position": K, "transition": K * (K + 1) // 2, "scalar": 1}
    assert len(table) == sum(sizes[p.kind] for p in model.PARAMETERS)
    assert table["value"].between(0, 1).all()


def test_pbm_is_a_ubm_whose_examination_ignores_clicks(rng):
    pbm = random_model("PBM", rng)
    assert isinstance(pbm.users, Browsing)
    ubm = UBM(items=pbm.items, K=K, w=pbm.w, e=np.repeat(pbm.e[:, None], K + 1, axis=1))
    A = random_lists(rng, 20, L, K)
    assert np.allclose(ubm.click_probs(A), pbm.click_probs(A))


def test_names_ignore_case_and_all_unknown_ones_are_reported():
    assert model_names(["dcm", "Pbm", "DCM"]) == ["DCM", "PBM"]
    with pytest.raises(LogevalError, match=r"'dmc' \(did you mean DCM.*'xyz'"):
        model_names(["dmc", "pbm", "xyz"])
    assert list(MODELS) == ALL


def test_too_long_a_list_is_refused(rng):
    with pytest.raises(LogevalError, match="4 positions and 6 items"):
        random_model("PBM", rng).best_list(5)
    with pytest.raises(LogevalError, match="unknown reward of PBM"):
        random_model("PBM", rng).best_list(2, "satisfaction")
