"""BubbleRank (Li et al., UAI 2019), Algorithm 1."""

from __future__ import annotations

import numpy as np


class BubbleRank:
    """One replica; ``u`` are K uniforms, that of a pair is the one at its upper place."""

    def __init__(self, base, horizon):
        self.base = list(base)
        self.log_delta = 4 * np.log(horizon)  # log(1 / delta)
        L = max(self.base) + 1
        self.s, self.m = np.zeros((L, L)), np.zeros((L, L))

    def sure(self, i, j):
        return self.s[i, j] > 2 * np.sqrt(self.m[i, j] * self.log_delta)

    def pairs(self, t):
        return range(t % 2, len(self.base) - 1, 2)

    def recommend(self, t, u):
        A = list(self.base)
        for k in self.pairs(t):
            if not self.sure(A[k], A[k + 1]) and u[k] < 0.5:
                A[k], A[k + 1] = A[k + 1], A[k]
        return np.array(A)

    def update(self, t, A, clicks):
        for k in self.pairs(t):
            i, j, gain = A[k], A[k + 1], int(clicks[k]) - int(clicks[k + 1])
            self.s[i, j] += gain
            self.s[j, i] -= gain
            self.m[i, j] += abs(gain)
            self.m[j, i] += abs(gain)
        R = self.base
        for k in range(len(R) - 1):
            if self.sure(R[k + 1], R[k]):
                R[k], R[k + 1] = R[k + 1], R[k]
