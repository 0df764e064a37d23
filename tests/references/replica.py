"""One replica: what a reference is told, the random numbers it draws, and R of them as one policy.

A reference takes the same random numbers as its kernel, in the same order: first what it draws when
it is made, then a fixed number of uniforms per step. So the actions of the two are identical, step
by step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol

import numpy as np

from logeval.policies.setting import Setting
from logeval.running.arrays import Floats, Ints
from logeval.running.seeds import Uniforms

Action = Sequence[int] | Ints


class Replica:
    """The problem of one replica, in the symbols of the papers."""

    def __init__(self, setting: Setting, r: int, given: Any) -> None:
        self.setting, self.r, self.n = setting, r, setting.horizon
        self.given = given  # the parameters of the policy, by name
        self.K, self.L = setting.K, int(setting.L[r])  # positions of a list, items
        self.rows, self.columns = self.L, int(setting.limits[r, -1])  # to choose a pair from
        self.generator = setting.generators[r]  # for the policy alone

    def free_samples(self, m: int) -> Ints:
        """(m, L) clicks on each item alone."""
        samples: Ints = self.setting.ask("free_samples")(self.r, m)
        return samples

    def ask(self, name: str) -> Any:
        """This replica's row of a capability (``policies.setting.CAPABILITIES``)."""
        return self.setting.ask(name)[self.r]

    def uniforms(self, width: int) -> Uniforms:
        """``width`` uniforms per step."""
        return Uniforms([self.generator], width)


class Reference(Protocol):
    """The interface of a reference: a policy for one replica."""

    def __init__(self, replica: Replica) -> None: ...

    def recommend(self, t: int) -> Action:
        """The list, or pair, of step t = 1, 2, ..."""

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """The clicks on A."""


class OneByOne:
    """R replicas of a reference as one policy, one after the other.

    It has ``remaining`` if the reference has: (R, 2) the rows and columns not eliminated.
    """

    def __init__(self, setting: Setting, reference: type[Reference], given: Any) -> None:
        self.replicas: list[Any] = [reference(Replica(setting, r, given)) for r in range(setting.R)]
        if hasattr(reference, "remaining"):
            self.remaining = lambda: np.array([replica.remaining() for replica in self.replicas])

    def recommend(self, t: int) -> Ints:
        """The actions (R, W) of step t."""
        return np.array([replica.recommend(t) for replica in self.replicas], dtype=np.int64)

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """The clicks on the actions A."""
        for r, replica in enumerate(self.replicas):
            replica.update(t, A[r], clicks[r])


class Stepwise:
    """A reference written as an algorithm: ``run`` yields actions, and is sent their clicks."""

    run: Callable[[], Generator[tuple[int, int], int, None]]

    def begin(self) -> None:
        """Up to the first action."""
        self.algorithm = self.run()
        self.pair = next(self.algorithm)

    def recommend(self, t: int) -> tuple[int, int]:
        """The row and column of step t."""
        return self.pair

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Go on with the click."""
        self.pair = self.algorithm.send(int(clicks[0]))


def largest(values: Floats) -> Ints:
    """Labels from the largest value down; ties go to the smaller label."""
    return np.argsort(-values, kind="stable")
