"""INTERPOL: between IP (window 0) and PBM (window K - 1), Buchholz, London, Di Benedetto,
Joachims, "Off-policy evaluation for learning-to-rank via interpolating the item-position model
and the position-based model" (2022).

An item that the target shows at j may lend clicks from positions k with |j - k| <= window:

    rho(a, k) = sum_{j: |j-k| <= window} h(a, j) e_j / sum_{l: |l-j| <= window} e_l p(a, l)

The window is around the target's position j, so that under a PBM every h(a, j) gets exactly
e_j w(a) whatever the window; a window around k in both sums would not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from logeval.errors import LogevalError
from logeval.replay.estimators.estimator import Estimator, View, ratio
from logeval.running.arrays import Bools, Floats


@dataclass(frozen=True)
class Interpol(Estimator):
    """PBM weights from positions near the target's.

    Unbiased if a click has probability e(k) w(a) among positions at most `window` apart.
    """

    window: int = 1

    NAME = "INTERPOL"
    ASSUMES = "users follow a position-based model among near positions"
    STRENGTH = 2
    LEVEL = "item-position"
    EXAMINATION = True
    PARAMETERS: ClassVar[dict[str, type]] = {"window": int}

    def __post_init__(self) -> None:
        if self.window < 0:
            raise LogevalError(f"INTERPOL: window={self.window} must be 0 or more")

    def weights(self, view: View) -> Floats:
        """Sums over the target's positions near k."""
        assert view.e is not None
        near = self._near(view.K)
        lent = ratio((view.e * view.h).reshape(-1, view.K, 1), self._examined(view))
        return np.einsum("kj,ijb->ikb", near, lent).reshape(view.p.shape)

    def supported(self, view: View) -> Bools:
        """Items that were examined near the target's position."""
        return (self._examined(view) > 0).reshape(view.p.shape)

    def _examined(self, view: View) -> Floats:
        assert view.e is not None
        p = (view.e[:, None] * view.p).reshape(-1, view.K, view.p.shape[1])
        return np.einsum("jl,ilb->ijb", self._near(view.K), p)

    def _near(self, K: int) -> Floats:
        k = np.arange(K)
        return (np.abs(k[:, None] - k) <= self.window).astype(np.float64)

    def _arguments(self) -> list[str]:
        return [f"window={self.window}", *super()._arguments()]
