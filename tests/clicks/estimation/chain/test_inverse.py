"""Inverses of information matrices."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.information import SMALL, inverse_of, invert_small


def test_small_matrices_are_inverted():
    rng = np.random.default_rng(0)
    for N in (1, 2, 7, 40):
        X = rng.normal(size=(N, N + 3))
        J, inverse = X @ X.T, np.empty((N, N))
        assert invert_small(J, inverse)
        assert inverse == pytest.approx(np.linalg.inv(J), rel=1e-6)
    assert not invert_small(np.array([[1.0, 2.0], [2.0, 1.0]]), np.empty((2, 2)))


@pytest.mark.parametrize("N", [3, SMALL, SMALL + 1])
def test_matrices_of_any_size_are_inverted_along_every_direction(N):
    """Where there is information, by it; where there is none, or less, the variance is huge."""
    rng = np.random.default_rng(N)
    vectors = np.linalg.qr(rng.normal(size=(N, N)))[0]
    values = rng.uniform(1.0, 2.0, N)
    assert inverse_of((vectors * values) @ vectors.T) == pytest.approx(
        (vectors / values) @ vectors.T, abs=1e-7
    )
    values[0] = -1.0
    inverse = inverse_of((vectors * values) @ vectors.T)
    along = np.diag(vectors.T @ inverse @ vectors)
    assert along[0] > 1e8
    assert along[1:] == pytest.approx(1.0 / values[1:], abs=1e-5)
