"""PB-MHB moves its particle by the posterior."""

import numpy as np
from scipy import stats

from logeval.policies.pb_mhb import kernel


def test_pb_mhb_leaves_the_posterior_as_it_is():
    """One position, S clicks in N views: theta ~ Beta(1 + S, 1 + N - S)."""
    rng, S, N = np.random.default_rng(3), 6, 20
    cells = kernel.cells_of.py_func(0, 1, kernel.no_cells(1, 1, 1))
    cells.S[:], cells.T[:] = S, N
    moved = []
    for _ in range(4000):
        p = kernel.Particle(rng.beta(1 + S, 1 + N - S, 1), np.ones(1))
        kernel.sweep(0.3, rng.random(2), 0.0, cells, p)
        moved.append(p.theta[0])
    assert stats.kstest(moved, stats.beta(1 + S, 1 + N - S).cdf).pvalue > 1e-3
