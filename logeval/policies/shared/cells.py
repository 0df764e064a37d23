"""Clicks and views of every item at every position."""

from __future__ import annotations

from typing import NamedTuple

from logeval.policies.shared.memory import floats, ints
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views


class ItemPositions(NamedTuple):
    """Clicks and views of items at positions."""

    S: Ints = ints("L", "K")
    T: Ints = ints("L", "K")
    value: Floats = floats("L", "K")  # rho, or its upper bound


@njit_views
def count(held, c, cells):
    """Count the views and clicks of a list."""
    for k in range(held.shape[0]):
        cells.T[held[k], k] += 1
        cells.S[held[k], k] += c[k]
