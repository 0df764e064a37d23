"""Resampled logs: every session gets a Poisson(1) weight, drawn in the space of counts.

m sessions of the same type have together a Poisson(m) weight, so one number per type is drawn
instead of one per session. Sessions with one SERP are as many types as there are patterns;
those with several keep their SERPs together (``Logged.clusters``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import pdtr

from logeval.replay.logged import Logged
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit

SMALL = 16  # up to this mean a draw is the inverse of the distribution function
BLOCK_BYTES = 48e6  # of the drawn numbers held at once


@njit(cache=True, nogil=True)
def invert_rows(u, mean, below, out):
    """Poisson numbers from uniforms: the smallest x with u < P(X <= x), row by row."""
    for i in range(u.shape[0]):
        table = below[mean[i]]
        for j in range(u.shape[1]):
            x = 0
            while u[i, j] >= table[x]:
                x += 1
            out[i, j] = x


def draw(mean: Ints, rounds: int, rng: np.random.Generator) -> Floats:
    """Poisson numbers (n, rounds) of means (n,), as float32, exact up to 2^24."""
    out = np.zeros((len(mean), rounds), dtype=np.float32)
    top = np.arange(64)
    below = pdtr(top, np.arange(SMALL + 1)[:, None])  # P(X <= x)
    below[:, -1] = 2.0
    small = np.flatnonzero((mean > 0) & (mean <= SMALL))
    drawn = np.empty((len(small), rounds), dtype=np.float32)
    invert_rows(rng.random((len(small), rounds)), mean[small], below, drawn)
    out[small] = drawn
    large = np.flatnonzero(mean > SMALL)
    out[large] = rng.poisson(mean[large, None], (len(large), rounds))
    return out  # type: ignore[return-value]


def resampled(logged: Logged, rounds: int, seed: int) -> Iterator[Floats]:
    """Numbers of SERPs of every pattern (P, b) in ``rounds`` resampled logs, block by block."""
    rng = seeds.generator(seed, "replay", "bootstrap")
    size = len(logged.alone) + len(logged.sessions)
    block = int(np.clip(BLOCK_BYTES / (12 * size), 1, 64))
    for first in range(0, rounds, block):
        b = min(block, rounds - first)
        W = draw(logged.alone, b, rng)
        if len(logged.sessions):
            W += logged.clusters @ draw(logged.sessions, b, rng)
        yield W


def thinned(logged: Logged, share: float, seed: int) -> Floats:
    """Numbers of SERPs of every pattern (P,) in a share of the sessions, drawn at random."""
    rng = seeds.generator(seed, "replay", "held out")
    alone = rng.binomial(logged.alone, share)
    several = logged.clusters @ rng.binomial(logged.sessions, share)
    found: Floats = (alone + np.asarray(several)).astype(np.float64)
    return found
