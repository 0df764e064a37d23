"""Interleaving: one list from two rankers, whose clicks are credited to either.

Team draft: Radlinski, Kurup, Joachims, How does clickthrough data reflect retrieval quality?
(CIKM 2008). Before each pair of picks a coin says who picks first; each ranker adds its best item
that is not there yet to its team, and a click counts for the team of the item.

Probabilistic interleaving: Hofmann, Whiteson, de Rijke, A probabilistic method for inferring
preferences from clicks (CIKM 2011). At each position a coin chooses the ranker, and the item is
drawn from its softmax over ranks, P(item) ~ 1 / rank^3. Whose item it was is averaged out: a click
counts for each ranker by the probability that the item came from it.

The credit of a search is the difference of its clicks; both papers keep only its sign.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from logeval.running.arrays import Floats, Ints

TAU = 3.0  # of the softmax over ranks


class Interleaved(NamedTuple):
    """Lists that an interleaving may show, and what a click on each position says."""

    A: Ints  # (n, K) items
    credit: Floats  # (n, K) of a click: 1 is for the second ranker, -1 for the first
    p: Floats  # (n,) how likely each list is


class Interleaving(Protocol):
    """A way to interleave."""

    name: ClassVar[str]

    def lists(self, a: Ints, b: Ints, rng: np.random.Generator, n: int) -> Interleaved:
        """The lists made of the lists a and b, (K,) each: all of them, or n that are drawn."""


class TeamDraft:
    """Both rankers pick in turn; all outcomes of the coins are listed."""

    name: ClassVar[str] = "team-draft interleaving"

    def lists(self, a: Ints, b: Ints, rng: np.random.Generator, n: int) -> Interleaved:
        """One list for each sequence of coins, 2^(K/2) of them; equal ones are one."""
        found: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        rankers = {-1: [int(item) for item in a], 1: [int(item) for item in b]}

        def draft(shown: tuple[int, ...], teams: tuple[int, ...], p: float) -> None:
            if len(shown) == len(a):
                found[shown, teams] = found.get((shown, teams), 0.0) + p
                return
            ahead = sum(teams)
            turns = [-1, 1] if ahead == 0 else [-1 if ahead > 0 else 1]
            for team in turns:
                pick = next(item for item in rankers[team] if item not in shown)
                draft((*shown, pick), (*teams, team), p / len(turns))

        draft((), (), 1.0)
        A, credit = (np.array(column) for column in zip(*found, strict=True))
        return Interleaved(A, credit.astype(float), np.array(list(found.values())))


class Probabilistic:
    """Items drawn from the softmax of either ranker; lists are drawn, credits are exact."""

    name: ClassVar[str] = "probabilistic interleaving"

    def lists(self, a: Ints, b: Ints, rng: np.random.Generator, n: int) -> Interleaved:
        """n lists; an item that one ranker does not have comes after those that it has."""
        items = np.array(list(dict.fromkeys([*a.tolist(), *b.tolist()])))
        chances = np.stack([softmax(items, own) for own in (a, b)])  # (2, U)
        K, every = len(a), np.arange(n)
        left = np.ones((n, len(items)))
        A, credit = np.empty((n, K), dtype=np.int64), np.empty((n, K))
        for k in range(K):
            p = chances[:, None] * left  # (2, n, U)
            p /= p.sum(axis=2, keepdims=True)
            either = p.mean(axis=0)
            u = ((rng.permutation(n) + rng.random(n)) / n)[:, None]  # even over [0, 1)
            drawn = np.minimum((np.cumsum(either, axis=1) < u).sum(axis=1), len(items) - 1)
            A[:, k] = items[drawn]
            first, second = p[:, every, drawn]
            credit[:, k] = (second - first) / (second + first)
            left[every, drawn] = 0.0
        return Interleaved(A, credit, np.full(n, 1.0 / n))


def softmax(items: Ints, ranker: Ints) -> Floats:
    """P(item) ~ 1 / rank^3 of all items, those first that the ranker has."""
    order = [*ranker.tolist(), *(i for i in items.tolist() if i not in ranker)]
    rank = np.array([order.index(item) + 1 for item in items.tolist()], dtype=float)
    p: Floats = rank**-TAU
    return p / p.sum()


INTERLEAVINGS: tuple[Interleaving, ...] = (TeamDraft(), Probabilistic())
