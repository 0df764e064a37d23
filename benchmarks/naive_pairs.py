"""The policies of the rank-1 track as a plain NumPy loop per step, one replica at a time."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.naive import kl_budget, kl_ucb


class Index:
    """An upper bound, or a posterior draw, for every pair at every step."""

    def __init__(self, L, K, n, score):
        self.K, self.score = K, score
        self.S, self.T = np.zeros(L * K), np.zeros(L * K)

    def recommend(self, t, rng):
        unseen = np.flatnonzero(self.T == 0)
        if self.score != "TS" and len(unseen):
            return divmod(int(unseen[0]), self.K)
        if self.score == "TS":
            U = rng.beta(1.0 + self.S, 1.0 + self.T - self.S)
        elif self.score == "KL-UCB":
            U = kl_ucb(self.S / self.T, self.T, kl_budget(t))
        else:
            U = self.S / self.T + np.sqrt(2.0 * np.log(t) / self.T)
        return divmod(int(np.argmax(U)), self.K)

    def update(self, pair, click):
        i = pair[0] * self.K + pair[1]
        self.T[i] += 1
        self.S[i] += click


class Rank1Elimination:
    """A generator of pairs that follows the pseudocode; the clicks are sent in."""

    def __init__(self, L, K, n, name):
        self.steps = self.run(L, K, n, name == "Rank1ElimKL", np.random.default_rng(0))
        self.pair = next(self.steps)

    def recommend(self, t, rng):
        return self.pair

    def update(self, pair, click):
        self.pair = self.steps.send(click)

    def run(self, L, K, n, use_kl, rng):
        log_n = math.log(n)
        budget = log_n + 3.0 * math.log(log_n)
        C, h = [np.zeros(L), np.zeros(K)], [np.arange(L), np.arange(K)]
        stage, before = 0, 0
        while True:
            n_l = math.ceil((16 if use_kl else 4) * 4**stage * log_n)
            for _ in range(n_l - before):
                j = h[1][rng.integers(K)]
                for i in np.unique(h[0]):
                    C[0][i] += yield int(i), int(j)
                i = h[0][rng.integers(L)]
                for j in np.unique(h[1]):
                    C[1][j] += yield int(i), int(j)
            for side in range(2):
                mean = C[side] / n_l
                if use_kl:
                    T = np.full(len(mean), float(n_l))
                    high, low = kl_ucb(mean, T, budget), 1.0 - kl_ucb(1.0 - mean, T, budget)
                else:
                    radius = math.sqrt(log_n / n_l)
                    high, low = mean + radius, mean - radius
                left = np.unique(h[side])
                winner = left[np.argmax(low[left])]
                h[side] = np.where(high[h[side]] <= low[winner], winner, h[side])
            stage, before = stage + 1, n_l


class UCB1Elim:
    """Likewise, on pairs."""

    def __init__(self, L, K, n, name):
        self.steps = self.run(L * K, K, n)
        self.pair = next(self.steps)

    recommend, update = Rank1Elimination.recommend, Rank1Elimination.update

    def run(self, N, K, n):
        S, left, stage, before = np.zeros(N), np.arange(N), 0, 0
        while True:
            D2 = 4.0**-stage
            n_m = math.ceil(2.0 * math.log(n * D2) / D2)
            for _ in range(n_m - before):
                for i in left:
                    S[i] += yield divmod(int(i), K)
            mean, radius = S / n_m, math.sqrt(math.log(n * D2) / (2.0 * n_m))
            left = left[mean[left] + radius >= mean[left].max() - radius]
            stage, before = stage + 1, n_m


PLAIN = {
    "Rank1ElimKL": Rank1Elimination,
    "Rank1Elim": Rank1Elimination,
    "UCB1Elim": UCB1Elim,
    "UCB1": Index,
    "KL-UCB": Index,
    "TS": Index,
}
