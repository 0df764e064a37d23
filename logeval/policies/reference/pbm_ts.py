"""PBM-TS (Lagree, Vernade, Cappe, NeurIPS 2016), with tabulated posteriors."""

from __future__ import annotations

from typing import Any

import numpy as np

from logeval.policies.reference.pbm_bandits import PBM
from logeval.policies.reference.replica import Replica
from logeval.running.arrays import Floats, Ints

CELLS, DROP, RISEN = 128, 32.0, 18.0


class PBMTS(PBM):
    """Posterior draws; ``u`` are L uniforms."""

    def __init__(self, replica: Replica, *, kappa: str = "known", lag: int = 1) -> None:
        super().__init__(replica, kappa=kappa, lag=lag)
        self.uniforms = replica.uniforms(self.L)
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

    def fits(self, i: Any) -> Any:
        """Whether the cells cover the density, and not much more."""
        low, high = self.cells[i]
        below = self.tabulated(i) - self.tabulated(i).max()
        if (low > 0 and below[0] > -RISEN) or (high < 1 and below[-1] > -RISEN):
            return False
        return (below > -RISEN).sum() >= CELLS // 2

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
        """Count; new cells where they no longer fit."""
        before = self.kappa
        super().learn(t, A, clicks)
        if self.estimated and self.kappa is not before:
            for i in range(self.L):
                self.lay(i)
        else:
            for i in A:
                if not self.fits(i):
                    self.lay(i)
