"""What a policy is told before the first step, and what it must offer.

A policy works on all R replicas at once. Its whole interface, also for users' own policies in
plain NumPy, is::

    class MyPolicy:
        def __init__(self, setting): ...
        def recommend(self, t): ...            # lists (R, K) of item numbers below L[r]
        def update(self, t, A, clicks): ...    # the same lists, and their clicks (R, K)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from logeval.arrays import Ints


class Policy(Protocol):
    """The interface of a policy."""

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t = 1, 2, ..."""

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """The clicks (R, K) on the lists A."""


@runtime_checkable
class Eliminating(Protocol):
    """What a policy of the rank-1 track may offer besides."""

    def remaining(self) -> Ints:
        """(R, 2) the rows and columns that are not eliminated."""


@dataclass(frozen=True)
class Setting:
    """The problem as a policy knows it."""

    K: int  # positions
    L: Ints  # (R,) number of items of each replica
    horizon: int  # number of steps
    generators: Sequence[np.random.Generator]  # one per replica, for the policy alone
    free_samples: Callable[[int, int], Ints]  # (r, m): m free clicks on each item, (m, L[r])
    best: Ints  # (R, K) the optimal lists; only the Oracle may look
    track: str = "ranking"  # or rank1: actions are pairs (R, 2), and K the number of columns

    @property
    def R(self) -> int:
        """Number of replicas."""
        return len(self.L)

    def random_labels(self) -> tuple[Ints, Ints]:
        """Item of each label and label of each item, flat: a random relabelling per replica."""
        items = [g.permutation(L) for g, L in zip(self.generators, self.L, strict=True)]
        return np.concatenate(items), np.concatenate([np.argsort(i) for i in items])
