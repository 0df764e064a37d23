"""PBM-UCB and PBM-PIE (Lagree, Vernade, Cappe, NeurIPS 2016), BC-MPTS (Komiyama et al., 2015)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaincinv

from logeval.policies.reference.bounds import kl
from logeval.policies.reference.places import Places
from logeval.policies.reference.replica import Replica
from logeval.running.arrays import Floats, Ints


class PBM(Places):
    """Clicks S and views N of items at positions."""

    def __init__(self, replica: Replica, *, kappa: str = "known", lag: int = 1) -> None:
        super().__init__(replica)
        K, L, self.lag, self.estimated = self.K, self.L, lag, kappa == "estimated"
        self.kappa = np.ones(K) if self.estimated else replica.examination()
        self.S, self.N = np.zeros((L, K)), np.zeros((L, K))

    def sums(self) -> Any:
        """S_i, N_i and N~_i."""
        looked = sum(self.kappa[k] * self.N[:, k] for k in range(self.K))
        return self.S.sum(axis=1), self.N.sum(axis=1), looked

    def theta(self) -> Any:
        """S / N~; 0 where unseen."""
        S, _, looked = self.sums()
        return np.divide(S, looked, out=np.zeros(self.L), where=looked > 0)

    def onto_positions(self, items: Any) -> Any:
        """The first item at the most examined position, and so on."""
        A = np.empty(self.K, dtype=int)
        A[np.argsort(-self.kappa, kind="stable")] = items
        return A

    def learn(self, t: int, A: Ints, clicks: Ints) -> Any:
        """Count, and estimate kappa where it is not known."""
        k = np.arange(self.K)
        self.S[A, k] += clicks
        self.N[A, k] += 1
        if self.estimated and (t <= 100 or t % self.lag == 0):
            first = np.abs(np.linalg.svd((self.S + 0.5) / (self.N + 0.5))[2][0])
            self.kappa = np.maximum(np.floor(first / first.max() * 1e9 + 0.5) / 1e9, 1e-9)


class PBMUCB(PBM):
    """The largest upper confidence bounds."""

    def __init__(
        self, replica: Replica, *, kappa: str = "known", lag: int = 1, eps: float = 0.0
    ) -> None:
        super().__init__(replica, kappa=kappa, lag=lag)
        self.eps = eps

    def choose(self, t: int, u: Floats) -> Any:
        """The list that the rule says."""
        _, N, looked = self.sums()
        delta = (1 + self.eps) * np.log(t)
        with np.errstate(divide="ignore", invalid="ignore"):
            # sqrt(N / N~) sqrt(delta / (2 N~))
            width = np.sqrt(0.5 * N) / looked * np.sqrt(delta)
            U = np.where(N > 0, self.theta() + width, np.inf)
        return self.onto_positions(np.argsort(-U, kind="stable")[: self.K])


class PBMPIE(PBM):
    """``u`` are two uniforms: whether to explore, and what."""

    def __init__(
        self, replica: Replica, *, kappa: str = "known", lag: int = 1, eps: float = 0.0
    ) -> None:
        super().__init__(replica, kappa=kappa, lag=lag)
        self.uniforms = replica.uniforms(2)
        self.budget = (1 + eps) * np.log(self.n)

    def better(self, x: Any) -> Any:
        """Whether U_i >= x, for every item."""
        if x <= 0:
            return np.ones(self.L, dtype=bool)
        N, S, seen = np.maximum(self.N, 1), self.S, self.N > 0
        q = self.kappa * x
        with np.errstate(divide="ignore", invalid="ignore"):
            phi = np.where(seen, N * kl(S / N, np.minimum(q, 1.0)), 0.0).sum(axis=1)
            rise = np.where(q < 1, (N - S) * self.kappa / (1 - q), np.where(N > S, np.inf, 0.0))
            slope = np.where(seen, rise - S / x, 0.0).sum(axis=1)
        return (slope <= 0) | (phi <= self.budget)

    def choose(self, t: int, u: Floats) -> Any:
        """The list that the rule says."""
        if t <= self.L:
            return self.onto_positions((t - 1 + np.arange(self.K)) % self.L)
        theta = self.theta()
        D = np.argsort(-theta, kind="stable")[: self.K]
        x = theta[D[-1]]
        if u[0] < 0.5 and x <= 1:
            B = np.setdiff1d(np.flatnonzero(self.better(x)), D)
            if len(B):
                D[-1] = B[int(u[1] * len(B))]
        return self.onto_positions(D)


class BCMPTS(PBM):
    """Beta draws; ``u`` are L uniforms."""

    def __init__(self, replica: Replica, *, kappa: str = "known", lag: int = 1) -> None:
        super().__init__(replica, kappa=kappa, lag=lag)
        self.uniforms = replica.uniforms(self.L)

    def choose(self, t: int, u: Floats) -> Any:
        """The list that the rule says."""
        failures = sum(
            np.maximum(0, self.kappa[k] * self.N[:, k] - self.S[:, k]) for k in range(self.K)
        )
        theta = betaincinv(1 + self.S.sum(axis=1), 1 + failures, u)
        return self.onto_positions(np.argsort(-theta, kind="stable")[: self.K])
