"""IP, item-position: rho = h(a_k, k) / p(a_k, k) (Li et al. 2018; IIPS).

With the frequencies of the log and no clip it is sum_{a,k} h(a, k) CTR(a, k).
"""

from __future__ import annotations

from dataclasses import dataclass

from logeval.replay.estimators.estimator import Estimator


@dataclass(frozen=True)
class IP(Estimator):
    """Inverse propensity scoring of items at positions.

    Unbiased if a click depends on the item and its position.
    """

    NAME = "IP"
    ASSUMES = "a click depends on the item and its position alone"
    STRENGTH = 1
    LEVEL = "item-position"
