"""Prefix: rho = h(a_1..a_k) / p(a_1..a_k).

A click at k depends on the items up to k only, as with users who read from the top (RIPS:
McInerney et al., "Counterfactual evaluation of slate recommendations with sequential reward
interactions", KDD 2020).
"""

from __future__ import annotations

from dataclasses import dataclass

from logeval.replay.estimators.estimator import Estimator


@dataclass(frozen=True)
class Prefix(Estimator):
    """Inverse propensity scoring of prefixes.

    Unbiased if a click depends on the items down to it.
    """

    NAME = "Prefix"
    ASSUMES = "users read from the top, so a click depends on the items down to it"
    STRENGTH = 1
    LEVEL = "prefix"
