"""Quantiles of the normal and Beta distributions, and the largest of many draws."""

import numpy as np
import pytest
from scipy import special, stats

from logeval.policies.shared import topk
from tests.policies.running import one_replica


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
