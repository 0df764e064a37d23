"""The policies as a plain NumPy loop per step, one replica at a time.

They are what one writes first, the baseline of ``benchmarks.policies``, and an independent
version to test the kernels against: from the same labels, free samples and uniforms they must
recommend the same lists.
"""

from __future__ import annotations

import numpy as np


def kl(p, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(p > 0, p * np.log(p / q), 0.0)
        right = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return left + right


def kl_ucb(p, T, budget, iterations=30):
    """The largest q with T d(p, q) <= budget, by bisection."""
    low, high = p.copy(), np.ones_like(p)
    for _ in range(iterations):
        q = 0.5 * (low + high)
        inside = T * kl(p, q) <= budget
        low, high = np.where(inside, q, low), np.where(inside, high, q)
    return np.where(p >= 1.0, 1.0, low)


def ucb1(p, T, budget, iterations=30):
    return p + np.sqrt(budget / T)


def kl_budget(t):
    return max(0.0, np.log(t) + 3 * np.log(np.log(t))) if t > 1 else 0.0


def ucb1_budget(t):
    return 1.5 * np.log(t - 1) if t > 1 else 0.0


class Cascade:
    """First-click, all-clicks (dcm) or last-click feedback; ``label`` orders equal bounds."""

    def __init__(self, K, free, label, feedback, ucb=kl_ucb, budget=kl_budget, ascending=False):
        self.K, self.label, self.feedback = K, label, feedback
        self.ucb, self.budget, self.ascending = ucb, budget, ascending
        self.S, self.T = free.astype(float), np.ones(len(free))

    def recommend(self, t, iterations=30):
        U = self.ucb(self.S / self.T, self.T, self.budget(t), iterations)
        A = np.lexsort((self.label, -U))[: self.K]
        return A[::-1] if self.ascending else A

    def update(self, A, clicks):
        clicked = np.flatnonzero(clicks)
        counted = np.asarray(clicks, dtype=float)
        end = self.K
        if len(clicked):
            end = (clicked[0] if self.feedback == "first" else clicked[-1]) + 1
            if self.feedback == "last":
                counted = np.zeros(self.K)
                counted[end - 1] = 1.0
        self.T[A[:end]] += 1
        self.S[A[:end]] += counted[:end]


class Ranked:
    """One index bandit per position; on a collision the best free item, or a random one."""

    def __init__(self, K, free, label, ucb=kl_ucb, budget=kl_budget, collision="best"):
        self.K, self.label, self.collision = K, label, collision
        self.ucb, self.budget = ucb, budget
        self.S, self.T = free.astype(float), np.ones(free.shape)

    def recommend(self, t, u=None, iterations=30):
        U = self.ucb(self.S / self.T, self.T, self.budget(t), iterations)
        A, self.chosen = [], []
        for k in range(self.K):
            order = np.lexsort((self.label, -U[k]))
            if self.collision == "best":
                item = next(e for e in order if e not in A)
                self.chosen.append(item)
            else:
                item = order[0]
                self.chosen.append(item)
                if item in A:
                    free = [e for e in np.argsort(self.label) if e not in A]
                    item = free[int(u[k] * len(free))]
            A.append(item)
        return np.array(A)

    def update(self, A, clicks):
        k = np.arange(self.K)
        self.T[k, self.chosen] += 1
        self.S[k, self.chosen] += np.asarray(clicks) * (A == self.chosen)


class RankedExp3:
    """One Exp3 per position."""

    def __init__(self, K, L, gamma, collision="best"):
        self.K, self.L, self.gamma, self.collision = K, L, gamma, collision
        self.W = np.ones((K, L))

    def recommend(self, t, u):
        P = (1 - self.gamma) * self.W / self.W.sum(axis=1, keepdims=True) + self.gamma / self.L
        self.P = P
        taken = np.zeros(self.L, dtype=bool)
        A, self.chosen = [], []
        for k in range(self.K):
            p = np.where(taken, 0.0, P[k]) if self.collision == "best" else P[k]
            cumulative = np.cumsum(p)
            item = int(np.searchsorted(cumulative, u[k] * cumulative[-1], side="right"))
            self.chosen.append(item)
            if taken[item]:
                free = np.flatnonzero(~taken)
                item = int(free[int(u[self.K + k] * len(free))])
            taken[item] = True
            A.append(item)
        return np.array(A)

    def update(self, A, clicks):
        for k in range(self.K):
            if clicks[k] and A[k] == self.chosen[k]:
                self.W[k, A[k]] *= np.exp(self.gamma / (self.L * self.P[k, A[k]]))
        self.W /= self.W.max(axis=1, keepdims=True)
