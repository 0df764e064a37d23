"""theta . x of the items of a round, for estimates of two forms.

- ``Theta`` keeps theta itself.
- ``Rows`` keeps z = X theta of all rows, for contexts that repeat and are few: then nothing of
  length d is needed.

Both draw theta . x for a normal theta.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from logeval.policies.setting import Contexts, Round
from logeval.running.arrays import Floats
from logeval.running.kernels import dot, njit_views

Generators = Sequence[np.random.Generator]


def few_rows(contexts: Contexts) -> bool:
    """Whether matrices of rows by rows cost less than of d by d: contexts repeat, and are few."""
    return contexts.repeat and contexts.M <= 2 * contexts.d


@njit_views
def inner_rows(X, table, row, theta, z):
    """z[r, a] = theta_r . x_a."""
    for r in range(z.shape[0]):
        for a in range(z.shape[1]):
            z[r, a] = dot(X[table[r], row[r, a]], theta[r])


@njit_views
def take_rows(values, row, out):
    """out[r, a] = values[r, row[r, a]]."""
    for r in range(row.shape[0]):
        for a in range(row.shape[1]):
            out[r, a] = values[r, row[r, a]]


class Theta:
    """theta, (R, d)."""

    def __init__(self, contexts: Contexts, R: int) -> None:
        self.theta = np.zeros((R, contexts.d))
        self._out = np.empty((R, contexts.widest))

    def scores(self, now: Round, theta: Floats | None = None) -> Floats:
        """theta . x of the items of the round, (R, L)."""
        out = self._out[:, : now.row.shape[1]]
        inner_rows(now.X, now.table, now.row, self.theta if theta is None else theta, out)
        return out

    def draw(self, now: Round, scale: float, inverse: Floats, rngs: Generators) -> Floats:
        """The same for a draw of N(theta, scale^2 inverse)."""
        noise = np.stack([rng.standard_normal(self.theta.shape[1]) for rng in rngs])
        root = np.linalg.cholesky(inverse)
        return self.scores(now, self.theta + scale * np.einsum("rij,rj->ri", root, noise))


class Rows:
    """z = X theta, (R, M)."""

    def __init__(self, contexts: Contexts, R: int) -> None:
        first = contexts.at(1)
        self._X, self._table = first.X, first.table
        self.z = np.zeros((R, contexts.M))
        self._out = np.empty((R, contexts.widest))

    def products(self, lam: float) -> Floats:
        """X X' / lam of every table, (tables, M, M)."""
        return np.array([X @ X.T / lam for X in self._X])

    def scores(self, now: Round) -> Floats:
        """theta . x of the items of the round, (R, L)."""
        out = self._out[:, : now.row.shape[1]]
        take_rows(self.z, now.row, out)
        return out

    def combined(self, alpha: Floats) -> Floats:
        """theta = X' alpha, (R, d)."""
        return np.stack([a @ self._X[i] for a, i in zip(alpha, self._table, strict=True)])

    def draw(
        self, now: Round, scale: float, lam: float, G: Floats, weight: Floats, rngs: Generators
    ) -> Floats:
        """The same for a draw of N(theta, scale^2 V^-1), V = lam I + sum w x x', G = X V^-1 X'.

        f = X zeta / sqrt(lam) is a draw from the prior of all rows; given an observation of each
        row with precision w it becomes f + G (sqrt(w) xi - w f) (Matheron's rule), with standard
        normal zeta and xi: no factorisation.
        """
        out = self._out[:, : now.row.shape[1]]
        for r, rng in enumerate(rngs):
            X, rows = self._X[self._table[r]], now.row[r]
            (M, d), w = X.shape, weight[r]
            normal = rng.standard_normal(d + M)
            f = X @ normal[:d] / np.sqrt(lam)
            drawn = f[rows] + G[r, rows] @ (np.sqrt(w) * normal[d:] - w * f)
            out[r] = self.z[r, rows] + scale * drawn
        return out
