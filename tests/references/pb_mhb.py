"""PB-MHB (Gauthier, Gaudel, Fromont, IDA 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from logeval.running.arrays import Floats
from tests.references.lists import Cells
from tests.references.replica import Replica


class PBMHB(Cells):
    """A particle; ``u`` are 2 (K - 1) uniforms for kappa, then 2 L for theta."""

    def __init__(self, replica: Replica) -> None:
        K, L, first = replica.K, replica.L, replica.given.first - 1
        super().__init__(replica, uniforms=2 * (L + K - 1))
        self.positions = np.array([first, *(k for k in range(K) if k != first)])
        self.theta = replica.generator.random(L)
        self.kappa = np.concatenate([[1.0], replica.generator.random(K - 1)])

    def move(self, x: Any, sd: Any, u: Floats, other: Any, S: Any, N: Any) -> Any:
        """One step of Metropolis-Hastings."""
        low, high = ndtr(-x / sd), ndtr((1 - x) / sd)
        y = np.clip(x + sd * ndtri(low + u[0] * (high - low)), 1e-12, 1 - 1e-12)
        a, b = S, N - S
        log_ratio = np.log((high - low) / (ndtr((1 - y) / sd) - ndtr(-y / sd)))
        log_ratio += a.sum() * np.log(y / x)
        log_ratio += b @ np.log(np.where(b > 0, (1 - y * other) / (1 - x * other), 1.0))
        return y if np.log(u[1]) < log_ratio else x

    def choose(self, t: int, u: Floats) -> Any:
        """A sweep; the largest theta onto the largest kappa."""
        sd = self.given.c / np.sqrt(t)
        for i in range(self.L):
            v = u[2 * (self.K - 1) + 2 * i :]
            self.theta[i] = self.move(self.theta[i], sd, v, self.kappa, self.S[i], self.N[i])
        for k in range(1, self.K):
            v = u[2 * (k - 1) :]
            self.kappa[k] = self.move(self.kappa[k], sd, v, self.theta, self.S[:, k], self.N[:, k])
        A = np.empty(self.K, dtype=int)
        largest = np.argsort(-self.theta, kind="stable")[: self.K]
        A[np.argsort(-self.kappa, kind="stable")] = largest
        return A
