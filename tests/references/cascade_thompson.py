"""CTS and TS-Cascade (Zhong, Cheung, Tan, JMLR 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from logeval.running.arrays import Floats, Ints
from tests.references.draws import betas
from tests.references.lists import Places
from tests.references.replica import Replica


def examined(clicks: Ints, feedback: str) -> Any:
    """How many positions were examined: up to the first (or last) click, all without one."""
    clicked = np.flatnonzero(clicks)
    if not len(clicked):
        return len(clicks)
    return (clicked[0] if feedback == "first" else clicked[-1]) + 1


class CTS(Places):
    """Beta posteriors; ``u`` is one uniform."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica, uniforms=1)
        self.S, self.N = np.zeros(self.L), np.zeros(self.L)

    def choose(self, t: int, u: Floats) -> Any:
        """The K largest draws."""
        theta = betas(u[0], 1 + self.S, 1 + self.N - self.S)
        return np.argsort(np.negative(theta), kind="stable")[: self.K]

    def learn(self, t: int, A: Ints, clicks: Ints) -> Any:
        """Count what was examined."""
        end = examined(clicks, getattr(self.given, "feedback", "first"))
        self.N[A[:end]] += 1
        self.S[A[:end]] += clicks[:end]


class TSCascade(CTS):
    """One Gaussian for all items; ``u`` is one uniform."""

    def choose(self, t: int, u: Floats) -> Any:
        """The K largest draws."""
        Z, log = ndtri(u[0]), np.log(t + 1)
        m = np.divide(self.S, self.N, out=np.zeros_like(self.S), where=self.N > 0)
        sd = np.maximum(np.sqrt(m * (1 - m) * log / (self.N + 1)), log / (self.N + 1))
        return np.argsort(-(m + Z * sd), kind="stable")[: self.K]
