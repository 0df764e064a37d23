"""List: rho = h(A) / p(A), the weight of the whole list (Li et al. 2018; SIPS)."""

from __future__ import annotations

from dataclasses import dataclass

from logeval.replay.estimators.estimator import Estimator


@dataclass(frozen=True)
class List(Estimator):
    """Standard inverse propensity scoring of lists.

    Unbiased always, where the logger shows every list of the target.
    """

    NAME = "List"
    ASSUMES = "nothing about users"
    STRENGTH = 0
    LEVEL = "list"
