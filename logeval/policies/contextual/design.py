"""V = lambda I + sum of x x' over the observed rows: widths ||x||_{V^-1}, least squares, log det.

Two forms, which agree (tests compare both with the direct inverse over a whole run):

- ``Inverse`` keeps V^-1 and adds the C rows of a round by Woodbury's identity (gl-cdcm, equation
  16, with V of the round before on its right), row by row, which needs no inverse of a C by C
  matrix: O(C d^2), and O(L d^2) for the widths.
- ``Gram`` keeps G = X V^-1 X', (M, M), where contexts repeat: a row a changes it by
  -g g' / (1 + G_aa), g = G[:, a]. The squared widths are its diagonal, whatever d is. The
  predictions m = X V^-1 sum y x of least squares follow by m += g (y - m_a) / (1 + G_aa).

Where rows count with weights (the Hessian of logistic regression) the same holds with
w x x' in place of x x'.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from logeval.policies.contextual.rounds import inner_rows, take_rows
from logeval.policies.setting import Contexts, Round
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views
from logeval.running.vectors import dot, njit_sums


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


def few_rows(contexts: Contexts) -> bool:
    """Whether matrices of rows by rows cost less than of d by d: contexts repeat, and are few."""
    return contexts.repeat and contexts.M <= 2 * contexts.d


def design(contexts: Contexts, R: int, lam: float) -> Design:
    """The form that costs less."""
    return Gram(contexts, R, lam) if few_rows(contexts) else Inverse(contexts, R, lam)


@njit_sums
def add_to_gram(G, a, weight, g):
    """X (V + weight x_a x_a')^-1 X'; g becomes the row a before. Returns 1 + weight G_aa."""
    M = G.shape[0]
    for i in range(M):
        g[i] = G[a, i]  # symmetric: row and column are equal
    growth = 1.0 + weight * g[a]
    for i in range(M):
        c = weight * g[i] / growth
        if c != 0.0:
            for j in range(M):
                G[i, j] -= c * g[j]
    return growth


@njit_sums
def observe_in_gram(G, m, a, y, g):
    """One observation y of row a; returns the growth of log det V."""
    growth = add_to_gram(G, a, 1.0, g)
    gain = (y - m[a]) / growth
    for i in range(m.shape[0]):
        m[i] += g[i] * gain
    return np.log(growth)


@njit_views
def add_rows_to_gram(G, m, row, A, clicks, C, log_det, g):
    """The observed rows of each replica."""
    for r in range(A.shape[0]):
        for k in range(C[r]):
            log_det[r] += observe_in_gram(G[r], m[r], row[r, A[r, k]], clicks[r, k], g)


@njit_views
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
        self._out, self._means = np.empty((2, R, contexts.widest))
        self._g = np.empty(contexts.M)

    def widths(self, now: Round) -> Floats:
        """||x||_{V^-1} of the items of the round, (R, L)."""
        out = self._out[:, : now.row.shape[1]]
        gram_widths(self.G, now.row, out)
        return out

    def means(self, now: Round) -> Floats:
        """theta . x of the items, (R, L)."""
        return take_rows(self._m, now.row, self._means)

    def sample(self, now: Round, sigma: float, rngs: list[np.random.Generator]) -> Floats:
        """theta . x for theta ~ N(V^-1 sum y x, sigma^2 V^-1)."""
        out = self._out[:, : now.row.shape[1]]
        for r, rng in enumerate(rngs):
            X, rows = self._X[self._table[r]], now.row[r]
            drawn = centred_draw(X, self.lam, self.G[r], self._n[r], rows, rng)
            out[r] = self._m[r, rows] + sigma * drawn
        return out

    def add(self, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Add the first C rows of the lists A with their clicks."""
        count_rows(self._n, now.row, A, C)
        add_rows_to_gram(self.G, self._m, now.row, A, clicks, C, self.log_det, self._g)


def centred_draw(
    X: Floats, lam: float, G: Floats, weight: Floats, rows: Ints, rng: np.random.Generator
) -> Floats:
    """x . theta of some rows, theta ~ N(0, (lam I + sum w x x')^-1), without a factorisation.

    f = X zeta / sqrt(lam) is a draw from the prior of all rows; given an observation of each
    row with precision w it becomes f + G (sqrt(w) xi - w f) (Matheron's rule), with standard
    normal zeta and xi.
    """
    M, d = X.shape
    draw = rng.standard_normal(d + M)
    f = X @ draw[:d] / np.sqrt(lam)
    drawn: Floats = f[rows] + G[rows] @ (np.sqrt(weight) * draw[d:] - weight * f)
    return drawn


@njit_views
def count_rows(n, row, A, C):
    """Count the observed rows."""
    for r in range(A.shape[0]):
        for k in range(C[r]):
            n[r, row[r, A[r, k]]] += 1.0


@njit_sums
def add_to_inverse(V_inv, x, weight, u):
    """(V + weight x x')^-1, by Sherman and Morrison; returns the growth of log det V."""
    d = x.shape[0]
    for i in range(d):
        u[i] = dot(V_inv[i], x)
    growth = 1.0 + weight * dot(u, x)
    c = weight / growth
    for i in range(d):
        ci = c * u[i]
        for j in range(d):
            V_inv[i, j] -= ci * u[j]
    return np.log(growth)


@njit_views
def add_rows_to_inverse(V_inv, b, theta, X, table, row, A, clicks, C, log_det, u):
    """The observed rows of each replica, and theta = V^-1 b."""
    for r in range(A.shape[0]):
        for k in range(C[r]):
            x = X[table[r], row[r, A[r, k]]]
            log_det[r] += add_to_inverse(V_inv[r], x, 1.0, u)
            if clicks[r, k]:
                for i in range(x.shape[0]):
                    b[r, i] += x[i]
        for i in range(theta.shape[1]):
            theta[r, i] = dot(V_inv[r, i], b[r])


class Inverse:
    """V^-1 itself, (d, d)."""

    def __init__(self, contexts: Contexts, R: int, lam: float) -> None:
        d = contexts.d
        self.V_inv = np.tile(np.eye(d) / lam, (R, 1, 1))
        self._b, self._theta, self._u = np.zeros((R, d)), np.zeros((R, d)), np.empty(d)
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
            self.V_inv, self._b, self._theta, now.X, now.table, now.row, A, clicks, C,
            self.log_det, self._u,
        )  # fmt: skip

    def _products(self, now: Round, theta: Floats) -> Floats:
        out = self._out[:, : now.row.shape[1]]
        inner_rows(now.X, now.table, now.row, theta, out)
        return out
