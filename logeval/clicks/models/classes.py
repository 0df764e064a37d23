"""A click model with classes of users: each user is of one class, with parameters of its own.

    P(clicks | list) = sum_c share(c) P(clicks | list; parameters of class c)

The classes are click models of one kind, for instance three DCMs, ordered by the clicks that their
users make on the lists of the log: those who hardly click come first. Whatever the kind can do, its
classes can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from logeval.clicks.models.model import ClickModel
from logeval.clicks.users.mixture import Mixture, best_of_classes
from logeval.clicks.users.optimum import Optimum
from logeval.errors import LogevalError
from logeval.running.arrays import Floats

FEWEST = 1e-9  # a share below this is none


@dataclass(frozen=True)
class Classes(ClickModel):
    """The users of one query in classes."""

    share: Floats  # (C,)
    classes: tuple[ClickModel, ...]

    @classmethod
    def of(cls, share: Floats, classes: Sequence[ClickModel]) -> ClickModel:
        """The model of the classes that have a share; of a single one it is that itself."""
        there = np.flatnonzero(np.asarray(share) > FEWEST).tolist()
        if len(there) == 1:
            return classes[there[0]]
        first = classes[0]
        kept = np.asarray(share, dtype=float)[there]
        return cls(first.items, first.K, kept / kept.sum(), tuple(classes[c] for c in there))

    @property
    def kind(self) -> type[ClickModel]:
        """The class of the click models."""
        return type(self.classes[0])

    @property
    def name(self) -> str:  # type: ignore[override]
        """As the papers print it, with the number of classes."""
        return f"{self.kind.name}(classes={len(self.classes)})"

    @property
    def rewards(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a list can earn."""
        return self.kind.rewards

    @property
    def users(self) -> Mixture:
        """The users, class by class."""
        every: Any = tuple(one.users for one in self.classes)
        return Mixture(self.share, every)

    @classmethod
    def fit(cls, data: Any, options: Any) -> Any:
        """Classes are fitted around a kind of click model (``estimation.classes``)."""
        raise LogevalError("classes are fitted around a click model, as DCM(classes=3)")

    def best(self, K: int, reward: str) -> Optimum:
        """A list of K rows: proven best, or with how far it may be from the best."""
        own = [one.optimum(K, reward) for one in self.classes]
        found = best_of_classes(self.users, K, reward, own)
        value = float(self.users.expected_reward(found.A[None], reward)[0])
        return Optimum(found.A, value, found.gap == 0.0, found.gap)
