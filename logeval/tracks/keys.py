"""What problems and their runs are called, in tables, manifests and seeds.

Random labels: what a policy calls the items of its replica.

Synthetic problems have their best items first, fitted models their most frequent ones. Every
environment therefore gives the items of every replica random labels, and speaks to policies in
labels only: no policy, built in or a user's, can gain from the order in which items are stored,
and a tie that is broken by label is broken at random. The labels depend on seed, simulator, query
and run, so all policies meet the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from logeval.errors import LogevalError, unknown_names
from logeval.running.arrays import Ints
from logeval.running.names import parse_call

LARGEST = 1_000_000  # items, positions, ... of a synthetic problem


class Panel(NamedTuple):
    """A simulator in one of its tracks: regrets of two tracks do not compare."""

    simulator: str
    track: str

    def __str__(self) -> str:
        return f"{self.simulator} ({self.track})"


class ProblemKey(NamedTuple):
    """One query of a simulator in one of its tracks, or a draw of its parameters."""

    simulator: str
    track: str
    query: str
    draw: int = 0  # 0: the fitted values

    @property
    def drawn_query(self) -> str:
        """The query, with the number of the draw unless it is of the fitted values."""
        return f"{self.query}#{self.draw}" if self.draw else self.query

    def path(self, run: int) -> tuple[str, str, int]:
        """What the random numbers of a run are named after."""
        return self.simulator, self.drawn_query, run

    def __str__(self) -> str:
        return f"{self.simulator} {self.drawn_query} ({self.track})"


class ReplicaKey(NamedTuple):
    """One run of a policy on a problem: the columns that name it in the runs table."""

    simulator: str
    track: str
    policy: str
    query: str
    draw: int
    run: int


def numbers(text: str, kinds: dict[str, type], optional: Sequence[str] = ()) -> dict[str, Any]:
    """The parameters of a synthetic problem; their names are matched without regard to case."""
    name, given = parse_call(text)
    by_lower = {key.lower(): key for key in kinds}
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key.lower() not in by_lower:
            raise unknown_names(f"parameter of {name}", [key], kinds)
        key = by_lower[key.lower()]
        try:
            values[key] = kinds[key](value)
        except ValueError:
            raise LogevalError(f"{text}: {key}={value} is not a number") from None
        if kinds[key] is int and values[key] > LARGEST:
            raise LogevalError(f"{text}: {key}={value} is too many; at most {LARGEST:,}")
    missing = [key for key in kinds if key not in values and key not in optional]
    if missing:
        raise LogevalError(f"{text}: {missing[0]} is missing; {name} needs {', '.join(kinds)}")
    return values


class Labels:
    """The labels of R replicas, replica r with ``sizes[r]`` items, drawn from its generator."""

    def __init__(self, generators: Sequence[np.random.Generator], sizes: Ints) -> None:
        drawn = [g.permutation(n) for g, n in zip(generators, sizes, strict=True)]
        self.item = np.concatenate(drawn).astype(np.int64)  # of each label, replica after replica
        self._label = np.concatenate([np.argsort(items) for items in drawn])
        self.start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)  # of each replica

    def items_of(self, r: int) -> Ints:
        """The item of each label of replica r."""
        return self.item[self.start[r] : self.start[r + 1]]

    def labels_of(self, r: int, items: Ints) -> Ints:
        """The labels of some items of replica r."""
        labels: Ints = self._label[self.start[r] + items]
        return labels

    def items(self, labels: Ints) -> Ints:
        """The items behind the labels (R, W) of all replicas."""
        items: Ints = self.item[self.start[:-1, None] + labels]
        return items

    def labels(self, items: Ints) -> Ints:
        """The labels (R, W) of the items of all replicas."""
        labels: Ints = self._label[self.start[:-1, None] + items]
        return labels
