"""What all policies of the contextual track share: a round, its scores, and what was observed.

Scores are theta . x of the items of a round. The design of the observed rows, V = lambda I + sum of
x x', gives widths ||x||_{V^-1}, least squares theta = V^-1 sum y x, and ``log_det`` =
log det(V / lambda). Where rows count with weights w (the Hessian of logistic regression) the same
holds with w x x' in place of x x'.
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

FEEDBACK = ("dcm", "first")
DCM, FIRST = range(2)
# What every policy that learns may be told.
LEARNING: dict[str, Any] = {"feedback": FEEDBACK, "order": ("told", "assumed")}
TERMINATION = "order of termination"  # what they must know
FEATURES = f"features, {TERMINATION}"


@njit_views
def observed_one(feedback, clicks):
    """C, the number of positions to learn from.

    ``dcm``: up to the last click (as dcmKL-UCB); ``first``: up to the first (as CascadeLinUCB); all
    K without a click.
    """
    C = clicks.shape[0]
    for k in range(C):
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


@njit_views
def inner_rows(X, table, row, theta, z):
    """z[r, a] = theta_r . x_a."""
    for r in range(z.shape[0]):
        for a in range(z.shape[1]):
            z[r, a] = dot(X[table[r], row[r, a]], theta[r])


class Theta:
    """theta, (R, d), and draws of theta . x for a normal theta."""

    def __init__(self, contexts: Contexts, R: int) -> None:
        self.theta, self._repeat = np.zeros((R, contexts.d)), contexts.repeat
        self._out = np.empty((R, contexts.widest))

    def scores(self, now: Round, theta: Floats | None = None) -> Floats:
        """theta . x of the items of the round, (R, L)."""
        out = self._out[:, : now.row.shape[1]]
        inner_rows(now.X, now.table, now.row, self.theta if theta is None else theta, out)
        return out

    def draw(
        self, now: Round, scale: float, V_inv: Floats, lam: float, w: Floats, rngs: Generators
    ) -> Floats:
        """theta . x for theta ~ N(theta, scale^2 V^-1), V = lam I + sum w x x'.

        Where contexts repeat, V^-1 (sqrt(lam) zeta + sum sqrt(w) xi x) has the covariance V^-1 for
        standard normal zeta and xi: no factorisation.
        """
        d, drawn = self.theta.shape[1], np.empty_like(self.theta)
        for r, rng in enumerate(rngs):
            if self._repeat:
                rows = np.flatnonzero(w[r])
                normal = rng.standard_normal(d + len(rows))
                b = (np.sqrt(w[r, rows]) * normal[d:]) @ now.X[now.table[r]][rows]
                noise = V_inv[r] @ (b + np.sqrt(lam) * normal[:d])
            else:
                noise = np.linalg.cholesky(V_inv[r]) @ rng.standard_normal(d)
            drawn[r] = self.theta[r] + scale * noise
        return self.scores(now, drawn)


@njit_sums
def add_to_inverse(V_inv, x, weight, u):
    """(V + weight x x')^-1 (Sherman and Morrison), u = V^-1 x; returns the growth of det V."""
    d = x.shape[0]
    for i in range(d):
        u[i] = dot(V_inv[i], x)
    growth = 1.0 + weight * dot(u, x)
    c = weight / growth
    for i in range(d):
        ci = c * u[i]
        for j in range(d):
            V_inv[i, j] -= ci * u[j]
    return growth


@njit_views
def add_rows(V_inv, n, square, b, theta, X, table, row, A, clicks, C, log_det, u):
    """The observed rows of each replica, and theta = V^-1 b."""
    for r in range(A.shape[0]):
        for k in range(C[r]):
            e = row[r, A[r, k]]
            x = X[table[r], e]
            n[r, e] += 1.0
            growth = add_to_inverse(V_inv[r], x, 1.0, u)
            log_det[r] += np.log(growth)
            for i in range(square.shape[1]):
                square[r, i] -= dot(X[table[r], i], u) ** 2 / growth
            if clicks[r, k]:
                for i in range(x.shape[0]):
                    b[r, i] += x[i]
        for i in range(theta.shape[1]):
            theta[r, i] = dot(V_inv[r, i], b[r])


class Design(Theta):
    """V^-1, (R, d, d), and least squares.

    The C rows of a round are added by Woodbury's identity (gl-cdcm, equation 16, with V of the
    round before on its right), row by row, which needs no inverse of a C by C matrix: O(C d^2).
    Widths cost O(L d^2); where contexts repeat and are few, a row changes the squares of all M.
    """

    def __init__(self, contexts: Contexts, R: int, lam: float) -> None:
        super().__init__(contexts, R)
        d, self.lam = contexts.d, lam
        self._square = np.empty((R, 0))
        if contexts.repeat and contexts.M <= 2 * d:
            now = contexts.at(1)
            self._square = ((now.X**2).sum(axis=2) / lam)[now.table]
        self.V_inv = np.tile(np.eye(d) / lam, (R, 1, 1))
        self._n = np.zeros((R, contexts.M))  # observations of each row
        self._b, self._u, self.log_det = np.zeros((R, d)), np.empty(d), np.zeros(R)

    def widths(self, now: Round) -> Floats:
        """||x||_{V^-1} of the items of the round, (R, L)."""
        if self._square.size:
            squares = np.take_along_axis(self._square, now.row, axis=1)
        else:
            x = now.X[now.table[:, None], now.row]  # (R, L, d)
            squares = ((x @ self.V_inv) * x).sum(axis=2)
        return np.sqrt(np.maximum(squares, 0.0))

    def sample(self, now: Round, sigma: float, rngs: Generators) -> Floats:
        """theta . x for theta ~ N(V^-1 sum y x, sigma^2 V^-1)."""
        return self.draw(now, sigma, self.V_inv, self.lam, self._n, rngs)

    def add(self, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Add the first C rows of the lists A with their clicks."""
        add_rows(
            self.V_inv, self._n, self._square, self._b, self.theta, now.X, now.table, now.row, A,
            clicks, C, self.log_det, self._u,
        )  # fmt: skip
