"""RCTR: rho = 1. The logger's own value, whatever the target: what any estimate must beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.replay.estimators.estimator import Estimator, View
from logeval.running.arrays import Bools, Floats


@dataclass(frozen=True)
class RCTR(Estimator):
    """The mean of the log; a click depends on the position alone.

    Unbiased if the ranking does not matter.
    """

    NAME = "RCTR"
    ASSUMES = "the ranking does not matter"
    STRENGTH = 4
    LEVEL = "position"

    def weights(self, view: View) -> Floats:
        """1."""
        return np.ones(view.p.shape)

    def supported(self, view: View) -> Bools:
        """Everything."""
        return np.ones(view.p.shape, dtype=np.bool_)
