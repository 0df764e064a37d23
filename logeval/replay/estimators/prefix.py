"""Prefix: rho = h(a_1..a_k) / p(a_1..a_k).

A click at k depends on the items up to k only, as with users who read from the top (RIPS:
McInerney et al., "Counterfactual evaluation of slate recommendations with sequential reward
interactions", KDD 2020).
"""

from __future__ import annotations

from dataclasses import dataclass

from logeval.replay.estimators.estimator import Estimator, View, ratio
from logeval.running.arrays import Floats


@dataclass(frozen=True)
class Prefix(Estimator):
    """Inverse propensity scoring of prefixes."""

    NAME = "Prefix"
    LEVEL = "prefix"
    HOLDS = "a click depends on the items down to it"

    def weights(self, view: View) -> Floats:
        """h(a_1..a_k) / p(a_1..a_k)."""
        return ratio(view.h[:, None], view.p)
