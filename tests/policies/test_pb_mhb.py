"""PB-MHB moves its particle by the posterior."""

import numpy as np
from scipy import stats

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
        pb_mhb.sweep(0.3, rng.random(2), 0.0, p)
        moved.append(p.theta[0])
    assert stats.kstest(moved, stats.beta(1 + S, 1 + N - S).cdf).pvalue > 1e-3
