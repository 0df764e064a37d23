"""Inverses of small matrices."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.inverse import invert_small


def test_small_matrices_are_inverted():
    rng = np.random.default_rng(0)
    for N in (1, 2, 7, 40):
        X = rng.normal(size=(N, N + 3))
        J, inverse = X @ X.T, np.empty((N, N))
        assert invert_small(J, inverse)
        assert inverse == pytest.approx(np.linalg.inv(J), rel=1e-6)
    assert not invert_small(np.array([[1.0, 2.0], [2.0, 1.0]]), np.empty((2, 2)))
