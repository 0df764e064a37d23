"""PBM: rho = sum_j e_j h(a_k, j) / sum_j e_j p(a_k, j) (Li et al. 2018).

The weight is that of the item's expected examination under the target and under the logger, so
clicks on an item count wherever it was shown. e is that of a PBM fitted to the log.
"""

from __future__ import annotations

from dataclasses import dataclass

from logeval.replay.estimators.estimator import OfItems


@dataclass(frozen=True)
class PBM(OfItems):
    """Inverse propensity scoring of examinations; unbiased if a click has probability e(k) w(a)."""

    NAME = "PBM"
    ASSUMES = "users follow a position-based model (PBM)"
    STRENGTH = 2
    LEVEL = "item-position"
    EXAMINATION = True
