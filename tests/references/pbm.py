"""PBM-UCB, PBM-PIE, PBM-TS (Lagree et al., NeurIPS 2016), BC-MPTS (Komiyama et al., ICML 2015)."""

from __future__ import annotations

from typing import Any

import numpy as np

from logeval.running.arrays import Floats, Ints
from tests.references.bounds import kl
from tests.references.draws import betas
from tests.references.lists import Cells
from tests.references.replica import Replica

CELLS, DROP = 128, 32.0  # of PBM-TS


class PBM(Cells):
    """What they share: the examination kappa, and N~."""

    def __init__(self, replica: Replica, uniforms: int = 0) -> None:
        super().__init__(replica, uniforms)
        self.estimated = self.given.kappa == "estimated"
        self.kappa = np.ones(self.K) if self.estimated else replica.ask("examination")

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
        super().learn(t, A, clicks)
        if self.estimated and (t <= 100 or t % self.given.lag == 0):
            first = np.abs(np.linalg.svd((self.S + 0.5) / (self.N + 0.5))[2][0])
            self.kappa = np.maximum(np.floor(first / first.max() * 1e9 + 0.5) / 1e9, 1e-9)


class PBMUCB(PBM):
    """The largest upper confidence bounds."""

    def choose(self, t: int, u: Floats) -> Any:
        """The list that the rule says."""
        _, N, looked = self.sums()
        delta = np.log(t)
        with np.errstate(divide="ignore", invalid="ignore"):
            # sqrt(N / N~) sqrt(delta / (2 N~))
            width = np.sqrt(0.5 * N) / looked * np.sqrt(delta)
            U = np.where(N > 0, self.theta() + width, np.inf)
        return self.onto_positions(np.argsort(-U, kind="stable")[: self.K])


class PBMPIE(PBM):
    """``u`` are two uniforms: whether to explore, and what."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica, uniforms=2)
        self.budget = np.log(self.n)

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


class PBMTS(PBM):
    """Draws from tabulated posteriors; ``u`` are L uniforms."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica, uniforms=replica.L)
        self.cells = [(0.0, 1.0)] * self.L

    def log_density(self, i: Any, x: Any) -> Any:
        """Of theta_i, up to a constant."""
        S, missed = self.S[i].sum(), self.N[i] - self.S[i]
        x = np.atleast_1d(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = S * np.log(x) if S > 0 else np.zeros_like(x)
            for k in np.flatnonzero(missed):
                value = value + missed[k] * np.log(np.maximum(1 - self.kappa[k] * x, 0.0))
        return value

    def lay(self, i: Any) -> Any:
        """Between the points where the density is e^-32 of that at its mode, or 0 and 1."""
        S, missed = self.S[i].sum(), self.N[i] - self.S[i]
        low, high = 0.0, 1.0
        for _ in range(50):
            x = 0.5 * (low + high)
            if S / x - (missed * self.kappa / (1 - self.kappa * x)).sum() > 0:
                low = x
            else:
                high = x
        top = 0.5 * (low + high)
        level = self.log_density(i, top) - DROP
        inside, outside = np.array([top, top]), np.array([0.0, 1.0])
        for _ in range(40):
            x = 0.5 * (inside + outside)
            above = self.log_density(i, x) >= level
            inside, outside = np.where(above, x, inside), np.where(above, outside, x)
        self.cells[i] = (outside[0], outside[1])

    def tabulated(self, i: Any) -> Any:
        """The log density in the middle of each cell."""
        low, high = self.cells[i]
        return self.log_density(i, low + (np.arange(CELLS) + 0.5) * (high - low) / CELLS)

    def choose(self, t: int, u: Floats) -> Any:
        """The K largest draws."""
        theta = np.empty(self.L)
        for i in range(self.L):
            low, high = self.cells[i]
            log = self.tabulated(i)
            mass = np.concatenate([[0.0], np.cumsum(np.exp(log - log.max()))])
            theta[i] = low + np.interp(u[i] * mass[-1], mass, np.arange(CELLS + 1)) / CELLS * (
                high - low
            )
        return self.onto_positions(np.argsort(-theta, kind="stable")[: self.K])

    def learn(self, t: int, A: Ints, clicks: Ints) -> Any:
        """Count; new cells for what was shown, for all items if kappa is another one."""
        before = self.kappa
        super().learn(t, A, clicks)
        for i in range(self.L) if self.kappa is not before else A:
            self.lay(i)


class BCMPTS(PBM):
    """Beta draws; ``u`` is one uniform."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica, uniforms=1)

    def choose(self, t: int, u: Floats) -> Any:
        """The list that the rule says."""
        failures = sum(
            np.maximum(0, self.kappa[k] * self.N[:, k] - self.S[:, k]) for k in range(self.K)
        )
        theta = betas(u[0], 1 + self.S.sum(axis=1), 1.0 + failures)
        return self.onto_positions(np.argsort(np.negative(theta), kind="stable")[: self.K])
