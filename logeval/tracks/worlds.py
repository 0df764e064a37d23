"""Where the contexts of the contextual track come from, for all replicas in step.

- ``ItemsInTurn``: fitted queries take turns in blocks of rounds; the context of an item is its own,
  so contexts repeat.
- ``UsersInTurn``: likewise, and every round a user is drawn; the context is that of user and item,
  or of the item alone. In a world with tastes the attraction is the user's own.
- ``Fixed``: contexts drawn once for each run, and attraction mu(theta . x) (gl-cdcm, section
  4.1).
- ``Fresh``: the same with contexts and terminations drawn anew every round, as the paper has it.

Items are stored by frequency, which no policy shall see: the rows of X, and with them the numbers
of arms, are in a random order, and each replica sees the items of a query in its own order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from logeval.features.vectors import ITEM, USER_TIMES_ITEM, dimension, item_contexts, normalised
from logeval.policies.setting import Round
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import dot, njit_views, sigmoid

Rngs = Sequence[np.random.Generator]


@dataclass(frozen=True)
class GroundSet:
    """The items of a fitted query that have features, in a DCM."""

    w_bar: Floats  # (L,) attraction
    v_bar: Floats  # (K,) termination
    vectors: Floats  # (L, D) of the items
    tastes: Floats  # (L, F) factors of the items; F = 0 without tastes

    def relabelled(self, items: Ints) -> GroundSet:
        """The same with its items in another order."""
        w_bar, vectors, tastes = self.w_bar[items], self.vectors[items], self.tastes[items]
        return replace(self, w_bar=w_bar, vectors=vectors, tastes=tastes)


@dataclass(frozen=True)
class People:
    """The users that are drawn."""

    context: str  # item, user+item or user*item
    r: int  # entries of the outer product
    vectors: Floats  # (U, D)
    tastes: Floats  # (U, F)
    beta: float  # strength of the tastes


class World(ABC):
    """The rounds of all replicas."""

    d: int  # length of a context
    M: int  # rows of X
    arms: int  # items of all queries
    widest: int  # items of the largest ground set
    queries: int = 1
    repeat: bool  # whether contexts repeat
    theta: Floats | None = None  # (R, d) the truth, where attraction follows from it

    @abstractmethod
    def start(self, t: int) -> tuple[Round, Floats, Floats, bool]:
        """Round t, attractions (R, L), terminations (R, K); whether any of it is new."""

    def common(self, now: Round, w: Floats) -> Floats:
        """The mean attraction over all users of the items of a round, whose own is w, (R, L)."""
        return w


class ItemsInTurn(World):
    """Queries in turn; the context of an item is its own."""

    repeat = True

    def __init__(self, queries: Sequence[GroundSet], block: int, rngs: Rngs) -> None:
        self.R, self._block = len(rngs), block
        self.queries, self.widest = len(queries), max(len(q.w_bar) for q in queries)
        first = np.cumsum([0, *(len(q.w_bar) for q in queries)])
        self.M = self.arms = int(first[-1])
        self._arm = [
            first[q] + np.stack([rng.permutation(len(query.w_bar)) for rng in rngs])
            for q, query in enumerate(queries)
        ]
        self._w = np.concatenate([q.w_bar for q in queries])
        self._v = [np.tile(q.v_bar, (self.R, 1)) for q in queries]
        self._order = [np.argsort(-v, axis=1, kind="stable") for v in self._v]
        self._X = item_contexts(np.concatenate([q.vectors for q in queries]))[None]
        self.d = self._X.shape[2]
        self._table = np.zeros(self.R, dtype=np.int64)
        self._now: tuple[Round, Floats, Floats] | None = None

    def start(self, t: int) -> tuple[Round, Floats, Floats, bool]:
        """Round t; only a new block brings anything new."""
        block, inside = divmod(t - 1, self._block)
        if inside and self._now is not None:
            return (*self._now, False)
        q = block % self.queries
        arm = self._arm[q]
        now = Round(self._X, self._table, arm, arm, self._order[q], q, block)
        self._now = now, self._w[arm], self._v[q]
        return (*self._now, True)


@njit_views
def fill_contexts(product, user, arm, v, u, q, p, X):
    """(1, v, u) / sqrt 3 or (1, v, p x q) / sqrt 3 of each replica's items."""
    D, r, scale = v.shape[1], q.shape[1], 1.0 / np.sqrt(3.0)
    for i in range(arm.shape[0]):
        for a in range(arm.shape[1]):
            e, x = arm[i, a], X[i, a]
            x[0] = scale
            for j in range(D):
                x[1 + j] = scale * v[e, j]
                if not product:
                    x[1 + D + j] = scale * u[user[i], j]
            if product:
                for j in range(r):
                    for k in range(r):
                        x[1 + D + j * r + k] = scale * q[e, j] * p[user[i], k]


@njit_views
def fill_attractions(beta, user, arm, base, of_user, of_item, w):
    """mu(logit w + beta user . item)."""
    for i in range(arm.shape[0]):
        for a in range(arm.shape[1]):
            e = arm[i, a]
            w[i, a] = sigmoid(base[e] + beta * dot(of_user[user[i]], of_item[e]))


class UsersInTurn(World):
    """Queries in turn, and a user drawn every round."""

    def __init__(
        self, queries: Sequence[GroundSet], people: People, block: int, rngs: Rngs
    ) -> None:
        self._items = ItemsInTurn(queries, block, rngs)
        self._people, self._rngs = people, rngs
        self.R, self.queries, self.widest = len(rngs), len(queries), self._items.widest
        self.repeat = people.context == ITEM
        self.arms, self.M = self._items.arms, self._items.M if self.repeat else self.widest
        self._v = np.concatenate([q.vectors for q in queries])
        self._q = normalised(self._v[:, : people.r])
        self._p = normalised(people.vectors[:, : people.r])
        self._tastes = np.concatenate([q.tastes for q in queries])
        w = np.concatenate([q.w_bar for q in queries])
        self._base = logit(np.clip(w, 1e-12, 1 - 1e-12))
        self.d = dimension(people.context, self._v.shape[1], people.r)
        self._X = np.empty((0 if self.repeat else self.R, self.widest, self.d))
        self._w = np.empty((self.R, self.widest))
        self._table, self._row = np.arange(self.R), np.tile(np.arange(self.widest), (self.R, 1))
        self._common: Floats | None = None

    def start(self, t: int) -> tuple[Round, Floats, Floats, bool]:
        """Round t."""
        now, w, v, _ = self._items.start(t)
        people, arm = self._people, now.arm
        user = np.array([rng.integers(len(people.vectors)) for rng in self._rngs])
        if people.beta:
            w = self._w[:, : arm.shape[1]]
            fill_attractions(people.beta, user, arm, self._base, people.tastes, self._tastes, w)
        if self.repeat:
            return now, w, v, True
        fill_contexts(
            people.context == USER_TIMES_ITEM, user, arm, self._v, people.vectors, self._q,
            self._p, self._X,
        )  # fmt: skip
        row = self._row[:, : arm.shape[1]]
        return now._replace(X=self._X, table=self._table, row=row), w, v, True

    def common(self, now: Round, w: Floats) -> Floats:
        """The mean of mu(logit w + beta user . item) over all users."""
        people = self._people
        if self._common is None:
            z = self._base + people.beta * (people.tastes @ self._tastes.T)
            self._common = expit(z).mean(axis=0)
        found: Floats = self._common[now.arm]
        return found


def _directions(rng: np.random.Generator, L: int, d: int) -> Floats:
    """L vectors, uniform on the sphere."""
    return normalised(rng.standard_normal((L, d)))


class Synthetic(World):
    """One query whose attraction is mu(theta . x), theta with the given norm.

    Contexts are random, and need no other order of ``rows``.
    """

    def __init__(
        self, L: int, K: int, d: int, norm: float, rngs: Rngs, rows: np.random.Generator
    ) -> None:
        R = len(rngs)
        self.d, self.M, self.arms, self.widest, self._rngs = d, L, L, L, rngs
        self.theta: Floats = norm * np.concatenate([_directions(rng, 1, d) for rng in rngs])
        row, order = np.tile(np.arange(L), (R, 1)), np.tile(np.arange(K), (R, 1))
        self._now = Round(np.empty((R, L, d)), np.arange(R), row, row, order, 0, 0)
        self._w, self._v = np.empty((R, L)), np.empty((R, K))

    def _draw(self) -> None:
        """New contexts, and new terminations."""
        for r, rng in enumerate(self._rngs):
            self._now.X[r] = _directions(rng, *self._now.X.shape[1:])
            self._v[r] = np.sort(rng.random(self._v.shape[1]))[::-1]


class Fixed(Synthetic):
    """Contexts drawn once for each run."""

    repeat = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._draw()
        self._w = expit(np.einsum("rld,rd->rl", self._now.X, self.theta))

    def start(self, t: int) -> tuple[Round, Floats, Floats, bool]:
        """Round t: always the same."""
        return self._now, self._w, self._v, t == 1


class Fresh(Synthetic):
    """Contexts and terminations drawn anew every round."""

    repeat = False

    def start(self, t: int) -> tuple[Round, Floats, Floats, bool]:
        """Round t."""
        self._draw()
        for r, theta in enumerate(self.theta):
            self._w[r] = expit(self._now.X[r] @ theta)
        return self._now, self._w, self._v, True
