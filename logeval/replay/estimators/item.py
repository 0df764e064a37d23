"""Item: rho = h(a_k) / p(a_k), shown at any position (Li et al. 2018, "document-based")."""

from __future__ import annotations

from dataclasses import dataclass

from logeval.replay.estimators.estimator import OfItems


@dataclass(frozen=True)
class Item(OfItems):
    """Inverse propensity scoring of items; unbiased if a click depends on the item alone."""

    NAME = "Item"
    ASSUMES = "the position of an item does not matter"
    STRENGTH = 3
    LEVEL = "item-position"
