"""How often each leader has led, in a table of fixed size.

UniRank and GRAB count the rounds of every leader (a partition of the items, or a list). A
dictionary of all leaders has no bound over millions of steps, so the counts are kept like a
processor's cache: a leader's 64-bit hash belongs to one of ``SETS`` sets of ``WAYS`` places, and a
new leader takes an empty place, or that of the leader of its set that led least. One that was
forgotten starts at 0 again. 64 KB per replica; ``lost`` counts what was forgotten.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from logeval.policies.shared.memory import ints
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_views

SETS, WAYS = 512, 8
SLACK = 1e-12  # more than the rounding of a budget


class Leaders(NamedTuple):
    """The table."""

    key: Any = ints(SETS * WAYS, dtype=np.uint64)  # hashes; 0: empty
    tau: Ints = ints(SETS * WAYS)  # rounds as the leader
    now: Ints = ints(1)  # place of the present leader
    lost: Ints = ints(1)  # leaders forgotten


@njit_views
def hashed(x):
    """64 well mixed bits of a number (splitmix64)."""
    z = np.uint64(x + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit_views
def hash_of(numbers):
    """The hash of a row of numbers below 2^20; never 0."""
    z = np.uint64(0)
    for k in range(numbers.shape[0]):
        z ^= hashed((k << 20) + numbers[k])
    return z | np.uint64(1)


@njit_views
def lead(numbers, leaders):
    """The leader that these numbers describe leads from now on."""
    key = hash_of(numbers)
    first = int((key >> np.uint64(1)) % np.uint64(SETS)) * WAYS
    least = first
    for i in range(first, first + WAYS):
        if leaders.key[i] == key:
            leaders.now[0] = i
            return
        if leaders.tau[i] < leaders.tau[least]:
            least = i
    leaders.lost[0] += leaders.key[least] != 0
    leaders.key[least], leaders.tau[least] = key, 0
    leaders.now[0] = least


@njit_views
def leader_budget(tau):
    """log tau + 3 log log tau; without bound for tau < 3, where the index is 1."""
    return math.log(tau) + 3.0 * math.log(math.log(tau)) if tau >= 3 else math.inf
