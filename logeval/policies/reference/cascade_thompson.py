"""CTS and TS-Cascade (Zhong, Cheung, Tan, JMLR 2021)."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv, ndtri


def examined(clicks, feedback="first"):
    """How many positions were examined: up to the first (or last) click, all without one."""
    clicked = np.flatnonzero(clicks)
    if not len(clicked):
        return len(clicks)
    return (clicked[0] if feedback == "first" else clicked[-1]) + 1


class CTS:
    """One replica; ``u`` are L uniforms."""

    def __init__(self, K, L, feedback="first"):
        self.K, self.feedback = K, feedback
        self.S, self.N = np.zeros(L), np.zeros(L)

    def recommend(self, t, u):
        theta = betaincinv(1 + self.S, 1 + self.N - self.S, u[: len(self.S)])
        return np.argsort(-theta, kind="stable")[: self.K]

    def update(self, t, A, clicks):
        end = examined(clicks, self.feedback)
        self.N[A[:end]] += 1
        self.S[A[:end]] += clicks[:end]


class TSCascade:
    """One replica; ``u`` is one uniform."""

    def __init__(self, K, L):
        self.K = K
        self.S, self.N = np.zeros(L), np.zeros(L)

    def recommend(self, t, u):
        Z, log = ndtri(u[0]), np.log(t + 1)
        m = np.divide(self.S, self.N, out=np.zeros_like(self.S), where=self.N > 0)
        sd = np.maximum(np.sqrt(m * (1 - m) * log / (self.N + 1)), log / (self.N + 1))
        return np.argsort(-(m + Z * sd), kind="stable")[: self.K]

    def update(self, t, A, clicks):
        end = examined(clicks)
        self.N[A[:end]] += 1
        self.S[A[:end]] += clicks[:end]
