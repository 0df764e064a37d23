"""What all policies of the contextual track share: a round, its scores, and what was observed.

Scores are theta . x of the items of a round. An estimate keeps theta itself (``Theta``) or, where
contexts repeat and are few, z = X theta of all rows (``Rows``). The design of the observed rows,
V = lambda I + sum of x x', gives widths ||x||_{V^-1}, least squares theta = V^-1 sum y x, and
``log_det`` = log det(V / lambda), in two forms that agree (``Inverse`` and ``Gram``). Where rows
count with weights (the Hessian of logistic regression) the same holds with w x x' in place of x x'.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from logeval.policies.setting import Contexts, Round, Setting
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import best_first_rows, dot, njit_sums, njit_views
from logeval.running.names import given_to
from logeval.running.seeds import Uniforms

FEEDBACK = ("dcm", "literal", "first")
DCM, LITERAL, FIRST = range(3)
# What every policy that learns may be told.
LEARNING: dict[str, Any] = {"feedback": FEEDBACK, "order": ("told", "assumed")}
TERMINATION = "order of termination"  # what they must know
FEATURES = f"features, {TERMINATION}"


@njit_views
def observed_one(feedback, clicks):
    """C, the number of positions to learn from.

    ``dcm``: up to the last click, all K without one (as dcmKL-UCB); ``literal``: up to the last
    click, none without one (gl-cdcm, Algorithm 1 as printed); ``first``: up to the first click,
    all K without one (CascadeLinUCB).
    """
    K = clicks.shape[0]
    C = 0 if feedback == LITERAL else K
    for k in range(K):
        if clicks[k]:
            C = k + 1
            if feedback == FIRST:
                break
    return C


@njit_views
def observed_rows(feedback, clicks, C):
    """``observed_one`` for each replica."""
    for r in range(C.shape[0]):
        C[r] = observed_one(feedback, clicks[r])


class ContextualPolicy(ABC):
    """Shows the items with the largest scores, and learns from the rows surely examined.

    ``feedback`` says which these are (``observed_one``). ``order`` is "told": the order of
    the positions by termination is known, as the paper assumes; or "assumed": 1, 2, ..., K.
    """

    KNOWS, READS = FEATURES, "up to the last click"
    TRACK = "contextual"
    NEEDS: ClassVar = ("contexts",)

    def __init__(self, setting: Setting, given: dict[str, Any]) -> None:
        self.given, R, K = given_to(type(self), given), setting.R, setting.K
        self._contexts: Contexts = setting.ask("contexts")
        self._now: Round
        self._rngs = setting.generators
        self._uniforms = Uniforms(self._rngs, self._contexts.widest)
        assumed = getattr(self.given, "order", "told") == "assumed"
        self._assumed = np.tile(np.arange(K), (R, 1)) if assumed else None
        self._feedback = FEEDBACK.index(getattr(self.given, "feedback", "dcm"))
        self._C, self._top = np.empty(R, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        self._now = self._contexts.at(t)
        order = self._now.order if self._assumed is None else self._assumed
        best_first_rows(self._scores(t), self._uniforms.at(t), order, self._top, self._A)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        observed_rows(self._feedback, clicks, self._C)
        self._learn(t, A, clicks, self._C)

    @abstractmethod
    def _scores(self, t: int) -> Floats:
        """The scores (R, L) of the items of the round."""

    @abstractmethod
    def _learn(self, t: int, A: Ints, clicks: Ints, C: Ints) -> None:
        """Learn from the first C rows of the lists A."""


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
    """theta, (R, d), and draws of theta . x for a normal theta."""

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
    """z = X theta, (R, M), and draws of it for a normal theta: nothing of length d is needed."""

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
    """G = X V^-1 X', (M, M), and the predictions of least squares, for contexts that repeat.

    A row a changes G by -g g' / (1 + G_aa), g = G[:, a]. The squared widths are its diagonal,
    whatever d is. The predictions z = X V^-1 sum y x follow by z += g (y - z_a) / (1 + G_aa).
    """

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
    """V^-1 itself, (d, d).

    The C rows of a round are added by Woodbury's identity (gl-cdcm, equation 16, with V of the
    round before on its right), row by row, which needs no inverse of a C by C matrix: O(C d^2), and
    O(L d^2) for the widths.
    """

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
