"""Quantiles of the normal and Beta distributions, and the largest of many draws."""

import numpy as np
import pytest
from scipy import special, stats

from logeval.policies import normal
from logeval.policies.ranking import top_betas


def test_quantiles_of_the_normal_distribution():
    p = np.concatenate([np.linspace(0.001, 0.999, 301), [1e-300, 1e-12, 1 - 1e-12]])
    ours = np.array([normal.quantile(x) for x in p])
    assert ours == pytest.approx(special.ndtri(p), rel=1e-12, abs=1e-13)


def test_quantiles_of_the_beta_distribution():
    rng = np.random.default_rng(4)
    for most in (0, 2, 30, 1000, 100_000):
        N = rng.integers(0, most + 1, 200)
        S = rng.integers(0, N + 1)
        u = rng.random(200)
        a, b = 1.0 + S, 1.0 + N - S
        log_B = special.betaln(a, b)
        start = [top_betas.near_quantile(*given) for given in zip(a, b, u, strict=True)]
        ours = [top_betas.quantile(*given) for given in zip(a, b, log_B, u, start, strict=True)]
        exact = special.betaincinv(a, b, u)
        error = np.abs(ours - exact)
        assert (error < 1e-8 * stats.beta(a, b).std()).all()
        near = [
            top_betas.solve(*given, top_betas.CLOSE)
            for given in zip(a, b, log_B, u, start, strict=True)
        ]
        x, bound = np.array(near).T
        assert (np.abs(x - exact) <= bound + 1e-12).all()
        assert (bound < 0.01 * stats.beta(a, b).std()).all()


@pytest.mark.parametrize("level", [0.0, 0.1, 0.45, 0.9])
def test_the_largest_draws_do_not_depend_on_the_level(level):
    rng, L, K = np.random.default_rng(5), 60, 4
    betas = top_betas.betas_of.py_func(0, L, top_betas.uniform_betas(1, L))
    held, theta = np.empty(K, dtype=np.int64), np.empty(K)
    betas.level[0] = level
    for i in range(L):
        top_betas.set_beta(i, 1.0 + rng.integers(0, 20), 1.0 + rng.integers(0, 40), betas)
    for _ in range(50):
        u = rng.random(L)
        top_betas.top_draws(u, betas, held, theta)
        drawn = special.betaincinv(betas.a, betas.b, u)
        assert held.tolist() == np.argsort(-drawn)[:K].tolist()
