"""From places to positions, for policies that fill a list place by place.

Place 0 is for the item that a policy thinks best; ``order[k]`` is the position of place k, 0 to
K - 1 unless the user says otherwise (``order=2>1>3``). Items are the labels that the environment
has given them at random, so that ties by label are ties at random.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from logeval.policies.setting import Setting
from logeval.policies.shared.kernel_policy import KernelPolicy, ints
from logeval.policies.shared.options import positions
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_views


class Places(NamedTuple):
    """The places of a list, one replica at a time."""

    order: Ints = ints("K", shared=True)  # position of each place
    held: Ints = ints("K", shared=True)  # the item there
    c: Ints = ints("K", shared=True)  # and the click on it


class ByPlaces(KernelPolicy):
    """A policy with ``places`` in its memory; ``order`` lists their positions."""

    PARAMETERS: ClassVar[dict[str, Any]] = {"order": "descending"}

    def __init__(self, setting: Setting, given: dict[str, Any], uniforms: int | Ints = 0) -> None:
        super().__init__(setting, given, uniforms=uniforms)
        order = getattr(self.given, "order", "descending")
        self.memory.places.order[:] = positions(order, setting.K)


@njit_views
def show(held, order, A):
    """Put the item at each place onto its position."""
    for k in range(A.shape[0]):
        A[order[k]] = held[k]


@njit_views
def read(A, clicks, places):
    """The item and the click at each place of the list A."""
    for k in range(A.shape[0]):
        places.held[k], places.c[k] = A[places.order[k]], clicks[places.order[k]]


@njit_views
def copy(source, target):
    """The first of the source into all of the target (``target[:] = source`` would allocate)."""
    for k in range(target.shape[0]):
        target[k] = source[k]


@njit_views
def sort_by(value, items):
    """The items from the largest value down, equal ones by label."""
    for k in range(items.shape[0]):
        i, j = items[k], k
        while j > 0:
            other = items[j - 1]
            if value[other] > value[i] or (value[other] == value[i] and other < i):
                break
            items[j] = other
            j -= 1
        items[j] = i


@njit_views
def shuffle_first(pool, u):
    """Put a random item of the pool at its front, then a random one of the rest, and so on."""
    m = pool.shape[0]
    for k in range(min(m, u.shape[0])):
        j = min(k + int(u[k] * (m - k)), m - 1)
        pool[k], pool[j] = pool[j], pool[k]


@njit_views
def insert_best(held, value, size, e, x):
    """Insert label e with value x into the list of the largest values; equal ones by label.

    Labels must come in increasing order. Returns the new size.
    """
    m = held.shape[0]
    if size == m and x <= value[m - 1]:
        return size
    j = min(size, m - 1)
    while j > 0 and x > value[j - 1]:
        held[j], value[j] = held[j - 1], value[j - 1]
        j -= 1
    held[j], value[j] = e, x
    return min(size + 1, m)
