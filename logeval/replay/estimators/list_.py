"""List: rho = h(A) / p(A), the weight of the whole list (Li et al. 2018; SIPS)."""

from __future__ import annotations

from dataclasses import dataclass

from logeval.replay.estimators.estimator import Estimator, View, ratio
from logeval.running.arrays import Floats


@dataclass(frozen=True)
class List(Estimator):
    """Standard inverse propensity scoring of lists."""

    NAME = "List"
    LEVEL = "list"
    HOLDS = "always, where the logger shows every list of the target"

    def weights(self, view: View) -> Floats:
        """h(A) / p(A)."""
        return ratio(view.h[:, None], view.p)
