"""Users in classes: probabilities by brute force, sampling, rewards, and the best list."""

import itertools

import numpy as np
import pytest

from logeval.clicks.models.ccm import CCM
from logeval.clicks.models.classes import Classes
from logeval.clicks.models.dbn import DBN
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.pbm import PBM
from logeval.clicks.models.ubm import UBM

L, K = 5, 3
ITEMS = np.arange(10, 10 + L)


def member(kind, rng):
    w = rng.uniform(0.05, 0.95, L)
    if kind is DCM:
        return DCM(ITEMS, K, w, rng.uniform(0.1, 0.9, K))
    if kind is DBN:
        return DBN(ITEMS, K, w, rng.uniform(0.1, 0.9, L), 0.8)
    if kind is CCM:
        return CCM(ITEMS, K, w, 0.9, 0.7, 0.3)
    if kind is PBM:
        return PBM(ITEMS, K, w, rng.uniform(0.2, 1.0, K))
    return UBM(ITEMS, K, w, np.tril(rng.uniform(0.2, 1.0, (K, K + 1))))


def classes(kind, C=3, seed=0):
    rng = np.random.default_rng(seed)
    return Classes(ITEMS, K, rng.dirichlet(np.ones(C)), tuple(member(kind, rng) for _ in range(C)))


KINDS = [DCM, DBN, CCM, PBM, UBM]
PATTERNS = np.array(list(itertools.product([0, 1], repeat=K)))
LISTS = np.array(list(itertools.permutations(range(L), K)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_probability_of_clicks_is_the_mean_over_classes(kind):
    model = classes(kind)
    A = np.tile([3, 0, 4], (len(PATTERNS), 1))
    found = np.exp(model.log_likelihood(A, PATTERNS))
    each = [np.exp(one.log_likelihood(A, PATTERNS)) for one in model.classes]
    assert found == pytest.approx(model.share @ np.array(each))
    assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_marginals_follow_from_all_click_patterns(kind):
    model = classes(kind)
    A = np.tile([1, 2, 0], (len(PATTERNS), 1))
    p = np.exp(model.log_likelihood(A, PATTERNS))
    assert model.click_probs_of_rows(A[:1])[0] == pytest.approx(p @ PATTERNS)
    assert model.expected_reward(A[:1], "clicks")[0] == pytest.approx(p @ PATTERNS.sum(axis=1))
    assert model.expected_reward(A[:1], "any-click")[0] == pytest.approx(1.0 - p[0])


@pytest.mark.parametrize("kind", KINDS)
def test_conditionals_are_ratios_of_prefixes(kind):
    model = classes(kind)
    A = np.tile([4, 1, 3], (len(PATTERNS), 1))
    p = np.exp(model.log_likelihood(A, PATTERNS))
    found = model.conditional_click_probs(A, PATTERNS)
    for row, c in enumerate(PATTERNS):
        for k in range(K):
            same = (PATTERNS[:, :k] == c[:k]).all(axis=1)
            clicked = same & (PATTERNS[:, k] == 1)
            assert found[row, k] == pytest.approx(p[clicked].sum() / p[same].sum())


def test_clicks_that_cannot_happen_leave_no_nan():
    one = DCM(ITEMS, K, np.zeros(L), np.full(K, 0.5))
    model = Classes(ITEMS, K, np.array([0.5, 0.5]), (one, one))
    p = model.conditional_click_probs(np.array([[0, 1, 2]]), np.array([[1, 0, 0]]))
    assert np.isfinite(p).all()
    assert model.log_likelihood(np.array([[0, 1, 2]]), np.array([[1, 0, 0]]))[0] == -np.inf


@pytest.mark.parametrize("kind", KINDS)
def test_sampled_clicks_have_the_probabilities_of_the_model(kind):
    model, n = classes(kind), 40_000
    A = np.tile([3, 0, 4], (n, 1))
    clicks = model.sample(A, np.random.default_rng(1).random((n, K)))
    code = clicks @ (1 << np.arange(K)[::-1])
    p = np.exp(model.log_likelihood(A[: len(PATTERNS)], PATTERNS))
    share = np.bincount(code, minlength=len(PATTERNS)) / n
    assert (np.abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / n) + 1e-9).all()


def test_one_class_with_all_users_is_that_model():
    one = classes(DCM).classes[0]
    assert Classes.of(np.array([0.0, 1.0]), [classes(DCM, seed=2).classes[0], one]) is one
    model = Classes.of(np.array([0.3, 0.0, 0.7]), classes(DCM).classes)
    assert model.share == pytest.approx([0.3, 0.7])
    assert model.name == "DCM(classes=2)"


# -- the best list -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", KINDS)
def test_a_proven_list_is_best_and_a_gap_holds(kind, seed):
    model = classes(kind, C=2 + seed % 2, seed=seed)
    for reward in model.rewards:
        best = model.expected_reward(LISTS, reward).max()
        found = model.optimum(K, reward)
        assert found.value <= best + 1e-12
        assert found.value + found.gap >= best - 1e-9
        if found.proven:
            assert found.value == pytest.approx(best)


def rival(kind, items, rng):
    """Users of a class who want few of the items, and look at few of 4 positions."""
    w = rng.beta(0.3, 0.3, len(items))
    if kind is DBN:
        return DBN(items, 4, w, rng.beta(0.3, 0.3, len(items)), 0.9)
    if kind is CCM:
        return CCM(items, 4, w, *rng.beta(0.5, 0.5, 3))
    return kind(items, 4, w, rng.beta(0.3, 0.3, (4, 5) if kind is UBM else 4))


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_finds_the_best_list_where_classes_want_different_ones(kind):
    """All lists of 4 of 7 items, of classes that differ as much as they can."""
    lists, items = np.array(list(itertools.permutations(range(7), 4))), np.arange(7)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        each = tuple(rival(kind, items, rng) for _ in range(2 + seed % 2))
        model = Classes(items, 4, np.full(len(each), 1 / len(each)), each)
        for reward in model.rewards:
            best = model.expected_reward(lists, reward).max()
            assert model.optimum(4, reward).value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("kind", [DCM, PBM])
def test_what_can_be_proven_is(kind):
    reward = {DCM: "satisfaction", PBM: "clicks"}[kind]
    assert all(classes(kind, seed=s).optimum(K, reward).proven for s in range(12))


def test_sorting_by_mean_attraction_is_not_enough():
    """Two kinds of users with one favourite each, and an item that both like a little."""
    items = np.arange(3)
    a = DCM(items, 2, np.array([0.9, 0.0, 0.5]), np.ones(2))
    b = DCM(items, 2, np.array([0.0, 0.9, 0.5]), np.ones(2))
    model = Classes(items, 2, np.array([0.5, 0.5]), (a, b))
    assert model.users.w == pytest.approx([0.45, 0.45, 0.5])
    assert sorted(model.best_list().tolist()) == [0, 1]


def test_items_beaten_in_one_class_only_stay():
    rng = np.random.default_rng(4)
    n = 40
    items = np.arange(n)
    w = np.stack([np.linspace(0.0, 0.9, n), np.linspace(0.9, 0.0, n)])
    one, other = (DCM(items, 2, x, np.array([0.7, 0.4])) for x in w)
    model = Classes(items, 2, np.array([0.5, 0.5]), (one, other))
    every = np.array(list(itertools.permutations(range(n), 2)))
    found = model.optimum()
    assert found.value == pytest.approx(model.expected_reward(every).max())
    assert found.proven
    assert rng is not None
