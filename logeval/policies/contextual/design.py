"""V = lambda I + sum of x x' over the observed rows: widths ||x||_{V^-1}, least squares, log det.

Two forms, which agree (tests compare both with the direct inverse over a whole run):

- ``Inverse`` keeps V^-1 and adds the C rows of a round by Woodbury's identity (gl-cdcm, equation
  16, with V of the round before on its right), row by row, which needs no inverse of a C by C
  matrix: O(C d^2), and O(L d^2) for the widths.
- ``Gram`` keeps G = X V^-1 X', (M, M), where contexts repeat: a row a changes it by
  -g g' / (1 + G_aa), g = G[:, a]. The squared widths are its diagonal, whatever d is. The
  predictions m = X V^-1 sum y x of least squares follow by m += g (y - m_a) / (1 + G_aa).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numba import njit

from logeval.arrays import Floats, Ints
from logeval.policies.contextual.rounds import FAST, Contexts, Round, dot, inner_rows


class Design(Protocol):
    """What both forms offer."""

    log_det: Floats  # (R,) log det(V / lambda)

    def widths(self, now: Round) -> Floats:
        """||x||_{V^-1} of the items of the round, (R, L)."""

    def means(self, now: Round) -> Floats:
        """theta . x of the items, (R, L), where theta = V^-1 sum y x."""

    def sample(self, now: Round, sigma: float, rngs: list[np.random.Generator]) -> Floats:
        """theta . x of the items, (R, L), for theta ~ N(V^-1 sum y x, sigma^2 V^-1)."""

    def add(self, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Add the first C rows of the lists A with their clicks."""


def design(contexts: Contexts, R: int, lam: float) -> Design:
    """The form that costs less: Gram where contexts repeat and the rows are few."""
    if contexts.repeat and contexts.M <= 2 * contexts.d:
        return Gram(contexts, R, lam)
    return Inverse(contexts, R, lam)


@njit(cache=True, nogil=True, fastmath=FAST)
def add_to_gram(G, m, a, y):
    """One observation y of row a; returns its share of log det V."""
    M = G.shape[0]
    s = 1.0 / (1.0 + G[a, a])
    g = G[a].copy()  # symmetric: row and column are equal
    gain = (y - m[a]) * s
    for i in range(M):
        c = g[i] * s
        if c != 0.0:
            for j in range(M):
                G[i, j] -= c * g[j]
        m[i] += g[i] * gain
    return -np.log(s)


@njit(cache=True, nogil=True)
def add_rows_to_gram(G, m, row, A, clicks, C, log_det):
    """The observed rows of each replica."""
    for r in range(A.shape[0]):
        for k in range(C[r]):
            log_det[r] += add_to_gram(G[r], m[r], row[r, A[r, k]], clicks[r, k])


@njit(cache=True, nogil=True)
def gram_widths(G, row, out):
    """The square roots of the diagonal."""
    for r in range(row.shape[0]):
        for a in range(row.shape[1]):
            out[r, a] = np.sqrt(max(G[r, row[r, a], row[r, a]], 0.0))


class Gram:
    """G = X V^-1 X' and the predictions of least squares, for contexts that repeat."""

    def __init__(self, contexts: Contexts, R: int, lam: float) -> None:
        first = contexts.at(1)
        self._X, self._table, self.lam = first.X, first.table, lam
        start = np.array([X @ X.T / lam for X in first.X])
        self.G = start[first.table].copy()
        self._m = np.zeros((R, contexts.M))
        self._n = np.zeros((R, contexts.M))
        self.log_det = np.zeros(R)
        self._out = np.empty((R, contexts.widest))

    def widths(self, now: Round) -> Floats:
        """||x||_{V^-1} of the items of the round, (R, L)."""
        out = self._out[:, : now.row.shape[1]]
        gram_widths(self.G, now.row, out)
        return out

    def means(self, now: Round) -> Floats:
        """theta . x of the items, (R, L)."""
        return np.take_along_axis(self._m, now.row, axis=1)

    def sample(self, now: Round, sigma: float, rngs: list[np.random.Generator]) -> Floats:
        """theta . x for theta ~ N(V^-1 sum y x, sigma^2 V^-1), without a factorisation.

        f = X zeta / sqrt(lambda) is a draw from the prior of all rows; conditioned on n_e noisy
        observations of each row it becomes m + sigma (f + G (sqrt(n) xi - n f)) (Matheron's
        rule), with standard normal zeta and xi.
        """
        M, d = self._X.shape[1:]
        out = self._out[:, : now.row.shape[1]]
        for r, rng in enumerate(rngs):
            draw = rng.standard_normal(d + M)
            f = self._X[self._table[r]] @ draw[:d] / np.sqrt(self.lam)
            residual = np.sqrt(self._n[r]) * draw[d:] - self._n[r] * f
            a = now.row[r]
            out[r] = self._m[r, a] + sigma * (f[a] + self.G[r, a] @ residual)
        return out

    def add(self, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Add the first C rows of the lists A with their clicks."""
        count_rows(self._n, now.row, A, C)
        add_rows_to_gram(self.G, self._m, now.row, A, clicks, C, self.log_det)


@njit(cache=True, nogil=True)
def count_rows(n, row, A, C):
    """Count the observed rows."""
    for r in range(A.shape[0]):
        for k in range(C[r]):
            n[r, row[r, A[r, k]]] += 1.0


@njit(cache=True, nogil=True, fastmath=FAST)
def add_to_inverse(V_inv, x, weight):
    """(V + weight x x')^-1, by Sherman and Morrison; returns the growth of log det V."""
    d = x.shape[0]
    u = np.empty(d)
    for i in range(d):
        u[i] = dot(V_inv[i], x)
    growth = 1.0 + weight * dot(u, x)
    c = weight / growth
    for i in range(d):
        ci = c * u[i]
        for j in range(d):
            V_inv[i, j] -= ci * u[j]
    return np.log(growth)


@njit(cache=True, nogil=True)
def add_rows_to_inverse(V_inv, b, theta, X, table, row, A, clicks, C, log_det):
    """The observed rows of each replica, and theta = V^-1 b."""
    for r in range(A.shape[0]):
        for k in range(C[r]):
            x = X[table[r], row[r, A[r, k]]]
            log_det[r] += add_to_inverse(V_inv[r], x, 1.0)
            if clicks[r, k]:
                b[r] += x
        for i in range(theta.shape[1]):
            theta[r, i] = dot(V_inv[r, i], b[r])


class Inverse:
    """V^-1 itself, (d, d)."""

    def __init__(self, contexts: Contexts, R: int, lam: float) -> None:
        d = contexts.d
        self.V_inv = np.tile(np.eye(d) / lam, (R, 1, 1))
        self._b, self._theta = np.zeros((R, d)), np.zeros((R, d))
        self.log_det = np.zeros(R)
        self._out = np.empty((R, contexts.widest))

    def widths(self, now: Round) -> Floats:
        """||x||_{V^-1} of the items of the round, (R, L)."""
        x = now.X[now.table[:, None], now.row]  # (R, L, d)
        squares: Floats = ((x @ self.V_inv) * x).sum(axis=2)
        return np.sqrt(np.maximum(squares, 0.0))

    def means(self, now: Round) -> Floats:
        """theta . x of the items, (R, L)."""
        return self._products(now, self._theta)

    def sample(self, now: Round, sigma: float, rngs: list[np.random.Generator]) -> Floats:
        """theta . x for theta ~ N(V^-1 sum y x, sigma^2 V^-1)."""
        d = self._b.shape[1]
        noise = np.stack([rng.standard_normal(d) for rng in rngs])
        root = np.linalg.cholesky(self.V_inv)
        theta = self._theta + sigma * np.einsum("rij,rj->ri", root, noise)
        return self._products(now, theta)

    def add(self, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Add the first C rows of the lists A with their clicks."""
        add_rows_to_inverse(
            self.V_inv, self._b, self._theta, now.X, now.table, now.row, A, clicks, C, self.log_det
        )

    def _products(self, now: Round, theta: Floats) -> Floats:
        out = self._out[:, : now.row.shape[1]]
        inner_rows(now.X, now.table, now.row, theta, out)
        return out
