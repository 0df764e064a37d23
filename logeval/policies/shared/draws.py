"""Random numbers in kernels: a stream made of one uniform of the step, and Beta draws from it."""

from __future__ import annotations

import math

import numpy as np

from logeval.policies.shared.places import insert_best
from logeval.running.kernels import ZERO, njit_views


@njit_views
def hashed(x):
    """64 well mixed bits of a number (splitmix64)."""
    z = np.uint64(x + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit_views
def stream(u):
    """The stream of the uniform u."""
    return int(u * 9007199254740992.0)  # its 53 bits


@njit_views
def uniform(bits, k):
    """The k-th uniform of a stream, below 1."""
    return float(hashed(bits + k) >> np.uint64(11)) / 9007199254740992.0


@njit_views
def gamma(bits, k, a):
    """A draw of Gamma(a), a >= 1, from the k-th uniform on, and the first that is left.

    Marsaglia and Tsang: A simple method for generating gamma variables (2000).
    """
    d = a - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = math.sqrt(-2.0 * math.log1p(-uniform(bits, k)))
        x *= math.cos(2.0 * math.pi * uniform(bits, k + 1))
        v, w = (1.0 + c * x) ** 3, uniform(bits, k + 2)
        k += 3
        if v <= 0.0:
            continue
        if w < 1.0 - 0.0331 * x**4 or math.log(w) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            return d * v, k


@njit_views
def top_betas(u, a, b, held, value):
    """The labels of the K largest draws theta_i ~ Beta(a_i, b_i), a, b >= 1, in ``held``."""
    bits, k, size = stream(u), ZERO, ZERO
    for i in range(a.shape[0]):
        x, k = gamma(bits, k, a[i])
        y, k = gamma(bits, k, b[i])
        size = insert_best(held, value, size, i, x / (x + y))
