"""PB-MHB moves its particle by the posterior."""

import numpy as np
import pytest
from scipy import special, stats

from logeval.policies import pb_mhb
from tests.policies.running import one_replica


def test_pb_mhb_leaves_the_posterior_as_it_is():
    """One position, S clicks in N views: theta ~ Beta(1 + S, 1 + N - S)."""
    rng, S, N = np.random.default_rng(3), 6, 20
    p = one_replica(pb_mhb.Particle(), 1)
    p.cells.S[:], p.cells.T[:] = S, N
    moved = []
    for _ in range(4000):
        p.theta[0] = rng.beta(1 + S, 1 + N - S)
        pb_mhb.sweep(0.3, rng.random(2), p)
        moved.append(p.theta[0])
    assert stats.kstest(moved, stats.beta(1 + S, 1 + N - S).cdf).pvalue > 1e-3


def test_quantiles_of_the_normal_distribution():
    p = np.concatenate([np.linspace(0.001, 0.999, 301), [1e-300, 1e-12, 1 - 1e-12]])
    ours = np.array([pb_mhb.normal_quantile(x) for x in p])
    assert ours == pytest.approx(special.ndtri(p), rel=1e-12, abs=1e-13)
