"""Lazy selection and the largest Beta draws must never change a list."""

import numpy as np
import pytest
from scipy import special, stats

from logeval.policies import pairs
from logeval.policies.registry import POLICIES
from logeval.policies.shared import topk
from logeval.policies.shared.bounds import BUDGETS, KL, UCB1, kl_budget
from logeval.policies.shared.topk import BLOCK
from logeval.tracks.lists import b_lb
from logeval.tracks.ranking import RankingEnvironment
from tests.policies.running import RANKING, by_bound, lists_of, make, one_replica
from tests.stand_in import large_dcm

INDEX = [
    "CascadeUCB1",
    "CascadeKL-UCB",
    "CascadeKL-UCB(order=ascending)",
    "dcmKL-UCB",
    "dcmKL-UCB(init=sample)",
    "First-Click",
    "Last-Click",
    "RankedUCB1",
    "RankedKL-UCB",
    "RankedKL-UCB(init=sample)",
    "RankedKL-UCB(collision=random)",
]


def expected(policy, t, r, L, A):
    """The list (of a ranked bandit: the choice of each position) by solving all bounds."""
    b = BUDGETS[policy.KIND](t)
    if "Ranked" not in policy.NAME:
        arms = policy.memory.arms
        return by_bound(policy.KIND, arms.S[r, :L], arms.T[r, :L], b)[: len(A)].tolist()
    best = policy.given.collision == "best"
    bandits = zip(policy.memory.bandits.S[r], policy.memory.bandits.T[r], strict=True)
    orders = [by_bound(policy.KIND, S[:L], T[:L], b) for S, T in bandits]
    return [next(e for e in order if not best or e not in A[:k]) for k, order in enumerate(orders)]


def check_lists(name, problems, replicas, horizon):
    users = RankingEnvironment(problems, replicas, seed=5)
    policy, sizes = make(name, users, horizon), [problems[q].size for q, _ in replicas]
    for t in range(1, horizon + 1):
        A = policy.recommend(t)
        for r, L in enumerate(sizes):
            ranked = "Ranked" in name
            if ranked and policy.given.init == "rounds" and t <= L:
                continue
            shown = policy.memory.chosen[r] if ranked else A[r, policy.memory.order[r]]
            assert shown.tolist() == expected(policy, t, r, L, A[r].tolist()), f"step {t}"
        policy.update(t, A, users.step(A))


@pytest.mark.parametrize("name", INDEX)
def test_lists_are_those_of_all_bounds_over_whole_runs(name):
    problems = [large_dcm(L, 4, seed=L) for L in (5, 16, 130)]
    horizon = 600 if "Ranked" in name else 3000
    check_lists(name, problems, [(0, 0), (1, 0), (2, 0), (2, 1)], horizon)


@pytest.mark.parametrize("name", ["dcmKL-UCB", "RankedKL-UCB"])
def test_lists_are_those_of_all_bounds_when_many_items_are_equal(name):
    check_lists(name, [b_lb(L=200, K=5, p=0.2, gap=0.0)], [(0, 0)], 1000)


OF_A_DCM = [name for name in RANKING if {*getattr(POLICIES[name], "NEEDS", ())} <= {"free_samples"}]


@pytest.mark.parametrize("name", OF_A_DCM)
def test_lists_hold_different_items_of_the_replica(name):
    problems = [large_dcm(L, 4, seed=L) for L in (4, 9, 40)]
    lists, _ = lists_of(name, problems, [(0, 0), (1, 0), (2, 0)], 200)
    for r, L in enumerate((4, 9, 40)):
        assert ((lists[:, r] >= 0) & (lists[:, r] < L)).all()
        assert all(len(set(A)) == 4 for A in lists[:, r].tolist())


def test_ties_are_broken_at_random():
    """By label, and labels are random."""
    problem = b_lb(L=40, K=4, p=0.0, gap=0.0)
    replicas = [(0, run) for run in range(60)]
    lists, _ = lists_of("dcmKL-UCB", [problem], replicas, 1)
    assert (lists == np.arange(4)).all()
    items = RankingEnvironment([problem], replicas, seed=5).items(lists[0])
    counts = np.bincount(items.ravel(), minlength=40)
    assert counts.max() <= 20  # 6 expected each; by index the first four would have 60
    assert (counts[4:] > 0).sum() > 30


STEPS = 250


def worlds(L):
    """A generator, and sums and numbers of observations with many ties, of L arms."""
    rng = np.random.default_rng(L)
    T = rng.integers(1, 3, L).astype(float)
    return rng, np.floor(rng.random(L) * (T + 1)), T


@pytest.mark.parametrize("kind", [KL, UCB1])
@pytest.mark.parametrize(("L", "m"), [(3, 3), (9, 1), (2 * BLOCK + 2, 4)])
def test_the_list_is_that_of_sorting_all_bounds(kind, L, m):
    arms, taken = one_replica(topk.Bandit(), L, m), np.zeros(L, dtype=np.bool_)
    rng, arms.S[:], arms.T[:] = worlds(L)
    for t in range(2, STEPS):
        b = kl_budget(t)
        taken[:] = False
        taken[rng.permutation(L)[: rng.integers(0, L - m + 1) if t % 3 == 0 else 0]] = True
        topk.select(kind, b, taken, arms)
        expected = [e for e in by_bound(kind, arms.S, arms.T, b) if not taken[e]][:m]
        assert arms.held.tolist() == expected, f"step {t}"
        for e in {*rng.choice(arms.held, 2), rng.integers(L)}:  # also one that was not shown
            arms.T[e] += 1
            arms.S[e] += rng.random() < 0.9 * e / L
            topk.touch(e, arms)


@pytest.mark.parametrize("kind", [KL, UCB1])
@pytest.mark.parametrize("L", [1, BLOCK, 3 * BLOCK + 2])
@pytest.mark.parametrize("ahead", [0.01, 4.0])  # keys far ahead are in another order than bounds
def test_the_arm_is_the_first_of_sorting_all_bounds(kind, L, ahead):
    arms = one_replica(pairs.KeyedArms(), L)
    rng, arms.S[:], arms.T[:] = worlds(L)
    arms.state[:] = pairs.BEGIN
    arms.state[pairs.AHEAD] = ahead
    for t in range(2, STEPS):
        b = kl_budget(t)
        found = pairs.select_first(kind, b, arms)
        assert found == by_bound(kind, arms.S, arms.T, b)[0], f"step {t}"
        for e in (found, rng.integers(L)):
            arms.T[e] += 1
            arms.S[e] += rng.random() < 0.9 * e / L
            pairs.touch_first(kind, e, arms)


def test_quantiles_of_the_normal_distribution():
    p = np.concatenate([np.linspace(0.001, 0.999, 301), [1e-300, 1e-12, 1 - 1e-12]])
    ours = np.array([topk.normal_quantile(x) for x in p])
    assert ours == pytest.approx(special.ndtri(p), rel=1e-12, abs=1e-13)


def test_quantiles_of_the_beta_distribution():
    rng = np.random.default_rng(4)
    for most in (0, 2, 30, 1000, 100_000):
        N = rng.integers(0, most + 1, 200)
        S = rng.integers(0, N + 1)
        u = rng.random(200)
        a, b = 1.0 + S, 1.0 + N - S
        start = [topk.near_beta_quantile(*given)[0] for given in zip(a, b, u, strict=True)]
        ours = [topk.beta_quantile(*given) for given in zip(a, b, u, start, strict=True)]
        error = np.abs(ours - special.betaincinv(a, b, u))
        assert (error < 1e-8 * stats.beta(a, b).std()).all()


def test_near_quantiles_are_as_near_as_they_say():
    rng, n = np.random.default_rng(6), 20_000
    a, b = np.exp(rng.uniform(0.0, np.log(1e5), (2, n)))
    for value in (1.0, 2.0):  # the smallest are the worst
        some = rng.random((2, n)) < 0.1
        a[some[0]], b[some[1]] = value, value
    u = special.ndtr(rng.uniform(-5.0, 5.0, n))
    near = [topk.near_beta_quantile(*given) for given in zip(a, b, u, strict=True)]
    x, bound = np.array(near).T
    exact = special.betaincinv(a, b, u)
    assert (np.abs(x - exact) <= bound + 1e-12 * exact).all()
    usual = (np.minimum(a, b) >= 20.0) & (np.abs(special.ndtri(u)) < 3.0)
    assert (bound[usual] < 0.02 * stats.beta(a, b).std()[usual]).all()


def at_level(L, level=0.0):
    betas = one_replica(topk.Betas(), L)
    betas.level[0] = level
    return betas


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_counting_changes_the_distribution_as_setting_does(level):
    rng, betas = np.random.default_rng(7), at_level(2, level)
    topk.set_beta(0, 1.0, 1.0, betas)
    topk.set_beta(1, 1.0, 1.0, betas)
    for _ in range(3000):
        for i, w in enumerate((0.5, 0.05)):
            topk.count_beta(i, int(rng.random() < w), betas)
    exact = special.betainc(betas.a, betas.b, level)
    assert betas.a + betas.b == pytest.approx([3002.0, 3002.0])
    assert betas.F == pytest.approx(exact, abs=1e-12)


def most_attractive(u, betas, K):
    return np.argsort(-special.betaincinv(betas.a, betas.b, u))[:K].tolist()


@pytest.mark.parametrize("level", [0.0, 0.1, 0.45, 0.9])
def test_the_largest_draws_do_not_depend_on_the_level(level):
    rng, L, K = np.random.default_rng(5), 60, 4
    betas, held = at_level(L, level), np.empty(K, dtype=np.int64)
    for i in range(L):
        topk.set_beta(i, 1.0 + rng.integers(0, 20), 1.0 + rng.integers(0, 40), betas)
    for _ in range(50):
        u = rng.random(L)
        topk.top_draws(u, betas, held)
        assert held.tolist() == most_attractive(u, betas, K)


def test_most_draws_are_ruled_out_by_the_level():
    rng, L, K = np.random.default_rng(8), 200, 5
    betas, held = at_level(L), np.empty(K, dtype=np.int64)
    w, above = np.linspace(0.6, 0.1, L), []
    for _ in range(400):
        u = rng.random(L)
        topk.top_draws(u, betas, held)
        assert held.tolist() == most_attractive(u, betas, K)
        for i in held:
            topk.count_beta(i, int(rng.random() < w[i]), betas)
        above.append((u > betas.F).sum())
    assert np.mean(above) < 25
