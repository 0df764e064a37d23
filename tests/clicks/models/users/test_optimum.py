"""No list is better than the one that a model calls its best."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.ubm import UBM
from logeval.clicks.users import optimum
from tests.clicks.examples import ALL, random_model

K, L = 4, 6


PROVEN = [name for name in ALL if name != "Choice"]  # which climbs, as its own tests have it


@pytest.mark.parametrize("name", PROVEN)
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


@pytest.mark.parametrize("way", ["descending", "ascending", "any"])
def test_the_best_list_of_many_positions_is_proven_where_termination_is_in_order(monkeypatch, way):
    """DCM clicks beyond EXACT_K positions: sorted, which is best if termination is monotone."""
    rng = np.random.default_rng(3)
    lists = np.array(list(itertools.permutations(range(6), 4)))
    monkeypatch.setattr(optimum, "EXACT_K", 1)
    for _ in range(20):
        w, v = rng.beta(0.5, 0.5, 6), rng.beta(0.5, 0.5, 4)
        if way != "any":
            v = np.sort(v)[:: -1 if way == "descending" else 1]
        model = DCM(items=np.arange(6), K=4, w=w, v=v)
        best, truth = model.optimum(4, "clicks"), model.expected_reward(lists, "clicks").max()
        assert best.value == pytest.approx(model.expected_reward(best.A[None], "clicks")[0])
        if best.proven:
            assert best.value == pytest.approx(truth)
        assert best.proven or way == "any"
        assert best.value <= truth + 1e-12


def test_a_strong_tail_makes_a_weak_item_best_at_a_terminating_position():
    """DCM clicks: with v = (1, 0, 0, 0) the least attractive item belongs at position 1."""
    rng = np.random.default_rng(0)
    model = random_model("DCM", rng, low=0.6)
    dcm = type(model)(items=model.items, K=4, w=model.w, v=np.array([1.0, 0.0, 0.0, 0.0]))
    best = dcm.best_rows(4, "clicks")
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
