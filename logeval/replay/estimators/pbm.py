"""PBM: rho = sum_j e_j h(a_k, j) / sum_j e_j p(a_k, j) (Li et al. 2018).

The weight is that of the item's expected examination under the target and under the logger, so
clicks on an item count wherever it was shown. e is that of a PBM fitted to the log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.replay.estimators.estimator import Estimator, View, ratio
from logeval.running.arrays import Bools, Floats


@dataclass(frozen=True)
class PBM(Estimator):
    """Inverse propensity scoring of examinations."""

    NAME = "PBM"
    LEVEL = "item-position"
    HOLDS = "a click has probability e(k) w(a)"
    EXAMINATION = True

    def weights(self, view: View) -> Floats:
        """The same at all positions of an item."""
        assert view.e is not None
        wanted = (view.e * view.h).reshape(-1, view.K).sum(axis=1)
        return np.repeat(ratio(wanted[:, None], _examined(view)), view.K, axis=0)

    def supported(self, view: View) -> Bools:
        """Items that were examined anywhere."""
        return np.repeat(_examined(view) > 0, view.K, axis=0)


def _examined(view: View) -> Floats:
    assert view.e is not None
    examined: Floats = (view.e[:, None] * view.p).reshape(-1, view.K, view.p.shape[1]).sum(axis=1)
    return examined
