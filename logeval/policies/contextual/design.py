"""V = lambda I + sum of x x' over the observed rows: widths ||x||_{V^-1}, least squares, log det.

Two forms, which agree (tests compare both with the direct inverse over a whole run):

- ``Inverse`` keeps V^-1 and adds the C rows of a round by Woodbury's identity (gl-cdcm, equation
  16, with V of the round before on its right), row by row, which needs no inverse of a C by C
  matrix: O(C d^2), and O(L d^2) for the widths.
- ``Gram`` keeps G = X V^-1 X', (M, M), where contexts repeat: a row a changes it by
  -g g' / (1 + G_aa), g = G[:, a]. The squared widths are its diagonal, whatever d is. The
  predictions z = X V^-1 sum y x of least squares follow by z += g (y - z_a) / (1 + G_aa).

``scores`` are theta . x of the items, theta = V^-1 sum y x, ``log_det`` is log det(V / lambda).
Where rows count with weights (the Hessian of logistic regression) the same holds with
w x x' in place of x x'.
"""

from __future__ import annotations

import numpy as np

from logeval.policies.contextual.scores import Generators, Rows, Theta, few_rows
from logeval.policies.setting import Contexts, Round
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import dot, njit_sums, njit_views


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
def observe_in_gram(G, z, a, y, g):
    """One observation y of row a; returns the growth of log det V."""
    growth = add_to_gram(G, a, 1.0, g)
    gain = (y - z[a]) / growth
    for i in range(z.shape[0]):
        z[i] += g[i] * gain
    return np.log(growth)


@njit_views
def add_rows_to_gram(G, z, n, row, A, clicks, C, log_det, g):
    """The observed rows of each replica."""
    for r in range(A.shape[0]):
        for k in range(C[r]):
            e = row[r, A[r, k]]
            n[r, e] += 1.0
            log_det[r] += observe_in_gram(G[r], z[r], e, clicks[r, k], g)


@njit_views
def gram_widths(G, row, out):
    """The square roots of the diagonal."""
    for r in range(row.shape[0]):
        for a in range(row.shape[1]):
            out[r, a] = np.sqrt(max(G[r, row[r, a], row[r, a]], 0.0))


class Gram(Rows):
    """G = X V^-1 X' and the predictions of least squares, for contexts that repeat."""

    def __init__(self, contexts: Contexts, R: int, lam: float) -> None:
        super().__init__(contexts, R)
        self.lam, self.G = lam, self.products(lam)[self._table]
        self._n = np.zeros((R, contexts.M))  # observations of each row
        self.log_det = np.zeros(R)
        self._widths, self._g = np.empty((R, contexts.widest)), np.empty(contexts.M)

    def widths(self, now: Round) -> Floats:
        """||x||_{V^-1} of the items of the round, (R, L)."""
        out = self._widths[:, : now.row.shape[1]]
        gram_widths(self.G, now.row, out)
        return out

    def sample(self, now: Round, sigma: float, rngs: Generators) -> Floats:
        """theta . x for theta ~ N(V^-1 sum y x, sigma^2 V^-1)."""
        return self.draw(now, sigma, self.lam, self.G, self._n, rngs)

    def add(self, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Add the first C rows of the lists A with their clicks."""
        add_rows_to_gram(
            self.G, self.z, self._n, now.row, A, clicks, C, self.log_det, self._g
        )  # fmt: skip


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


class Inverse(Theta):
    """V^-1 itself, (d, d)."""

    def __init__(self, contexts: Contexts, R: int, lam: float) -> None:
        super().__init__(contexts, R)
        d = contexts.d
        self.V_inv = np.tile(np.eye(d) / lam, (R, 1, 1))
        self._b, self._u, self.log_det = np.zeros((R, d)), np.empty(d), np.zeros(R)

    def widths(self, now: Round) -> Floats:
        """||x||_{V^-1} of the items of the round, (R, L)."""
        x = now.X[now.table[:, None], now.row]  # (R, L, d)
        squares: Floats = ((x @ self.V_inv) * x).sum(axis=2)
        return np.sqrt(np.maximum(squares, 0.0))

    def sample(self, now: Round, sigma: float, rngs: Generators) -> Floats:
        """theta . x for theta ~ N(V^-1 sum y x, sigma^2 V^-1)."""
        return self.draw(now, sigma, self.V_inv, rngs)

    def add(self, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Add the first C rows of the lists A with their clicks."""
        add_rows_to_inverse(
            self.V_inv, self._b, self.theta, now.X, now.table, now.row, A, clicks, C,
            self.log_det, self._u,
        )  # fmt: skip


def design(contexts: Contexts, R: int, lam: float) -> Gram | Inverse:
    """The form that costs less."""
    return Gram(contexts, R, lam) if few_rows(contexts) else Inverse(contexts, R, lam)
