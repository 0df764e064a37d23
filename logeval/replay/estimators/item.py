"""Item: rho = h(a_k) / p(a_k), shown at any position (Li et al. 2018, "document-based")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.replay.estimators.estimator import Estimator, View, ratio
from logeval.running.arrays import Bools, Floats


@dataclass(frozen=True)
class Item(Estimator):
    """Inverse propensity scoring of items."""

    NAME = "Item"
    LEVEL = "item-position"
    HOLDS = "a click depends on the item alone"

    def weights(self, view: View) -> Floats:
        """The same at all positions of an item."""
        wanted = view.h.reshape(-1, view.K).sum(axis=1)
        return np.repeat(ratio(wanted[:, None], _shown(view)), view.K, axis=0)

    def supported(self, view: View) -> Bools:
        """Items that were shown anywhere."""
        return np.repeat(_shown(view) > 0, view.K, axis=0)


def _shown(view: View) -> Floats:
    shown: Floats = view.p.reshape(-1, view.K, view.p.shape[1]).sum(axis=1)
    return shown
