"""A click model with classes of users: each user is of one class, with parameters of its own.

    P(clicks | list) = sum_c share(c) P(clicks | list; parameters of class c)

The classes are click models of one kind, for instance three DCMs, ordered by the clicks that their
users make on the lists of the log: those who hardly click come first. Whatever the kind can do, its
classes can. In a mixture of fitted models (``blend``) they are of several kinds, and can do what
all of these can.
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
from logeval.running.arrays import Floats, Ints

FEWEST = 1e-9  # a share below this is none
BLEND = "Mixture"  # classes of several kinds


@dataclass(frozen=True)
class Classes(ClickModel):
    """The users of one query in classes."""

    share: Floats  # (C,)
    classes: tuple[ClickModel, ...]

    @classmethod
    def of(cls, share: Floats, classes: Sequence[ClickModel]) -> ClickModel:
        """The model of the classes that have a share; of a single one it is that itself.

        Of several kinds all stay, so that what a list can earn is the same for every query.
        """
        several = len({type(one) for one in classes}) > 1
        there = np.flatnonzero((np.asarray(share) > FEWEST) | several).tolist()
        if len(there) == 1:
            return classes[there[0]]
        first = classes[0]
        kept = np.asarray(share, dtype=float)[there]
        return cls(first.items, first.K, kept / kept.sum(), tuple(classes[c] for c in there))

    @property
    def name(self) -> str:  # type: ignore[override]
        """As the papers print it, with the number of classes."""
        (kind, *others) = dict.fromkeys(one.name for one in self.classes)
        return BLEND if others else f"{kind}(classes={len(self.classes)})"

    @property
    def rewards(self) -> tuple[str, ...]:  # type: ignore[override]
        """What a list can earn, whatever class a user is of."""
        every = [one.rewards for one in self.classes]
        return tuple(r for r in every[0] if all(r in rewards for rewards in every))

    @property
    def users(self) -> Mixture:
        """The users, class by class."""
        every: Any = tuple(one.users for one in self.classes)
        return Mixture(self.share, every)

    @classmethod
    def fit(cls, data: Any, options: Any) -> Any:
        """Classes are fitted around a kind of click model (``estimation.classes``)."""
        raise LogevalError("classes are fitted around a click model, as DCM(classes=3)")

    def only(self, rows: Ints) -> ClickModel:
        """The same users, of some of the items."""
        return self.of(self.share, [one.only(rows) for one in self.classes])

    def best(self, K: int, reward: str) -> Optimum:
        """A list of K rows: proven best, or with how far it may be from the best."""
        own = [one.optimum(K, reward) for one in self.classes]
        found = best_of_classes(self.users, K, reward, own)
        value = float(self.users.expected_reward(found.A[None], reward)[0])
        return Optimum(found.A, value, found.gap == 0.0, found.gap)
