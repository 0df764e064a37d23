"""The log as an environment: a logged SERP answers when it shows what the policy wants.

Li, Chu, Langford, Wang, "Unbiased offline evaluation of contextual-bandit-based news article
recommendation algorithms" (WSDM 2011), policy evaluator (Algorithm 2), for lists. Every replica
(query x shuffle) has a queue of its query's SERPs, in random order or by day, and a clock of
its own: a step goes on in the queue to the next SERP whose first K items are the list of the
policy, and what lies between is passed over. When there is none, the queue is exhausted and the
replica stops.

A list waits for its SERP instead of being drawn anew at each one. For a policy that does not
randomise this is the same; one that does keeps its own distribution of lists, also where the
logger prefers some of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from logeval.clicks.estimation.patterns import Patterns
from logeval.policies.setting import Policy
from logeval.running import seeds
from logeval.running.arrays import Bools, Ints
from logeval.tracks.labels import Labels
from logeval.tracks.meters import Columns, Meter


@dataclass(frozen=True)
class QueryStream:
    """The SERPs of one query, folded: lists of K local item numbers, clicks, counts."""

    query: str
    item_ids: Ints  # (L,)
    lists: Ints  # (P, K) local numbers; -1 where an item is not a candidate
    clicks: Bools  # (P, K)
    count: Ints  # (P,)
    day: Ints  # (P,) 0 for all where days are shuffled

    @property
    def serps(self) -> int:
        """Length of the queue."""
        return int(self.count.sum())

    @cached_property
    def number(self) -> dict[tuple[int, ...], int]:
        """The number of each list that the log shows."""
        return {tuple(a): i for i, a in enumerate(np.unique(self.lists, axis=0).tolist())}


def streams_of(patterns: Patterns, items: int | None, day: Ints | None = None) -> list[QueryStream]:
    """The queues of all queries; candidates are the items shown, or the ``items`` most shown.

    With the ``day`` of each pattern the queues are in the order of days.
    """
    day = np.zeros(patterns.P, dtype=np.int64) if day is None else day
    found = []
    for q, query in enumerate(patterns.queries):
        rows = np.flatnonzero((patterns.query == q) & (patterns.length == patterns.K))
        lists = patterns.items[rows]
        shown = np.bincount(
            (lists - patterns.offsets[q]).ravel(),
            np.repeat(patterns.count[rows], lists.shape[1]),
            minlength=int(np.diff(patterns.offsets)[q]),
        )
        order = np.argsort(-shown, kind="stable")
        order = order[shown[order] > 0][:items]
        local = np.full(len(shown), -1, dtype=np.int64)
        local[order] = np.arange(len(order))
        found.append(
            QueryStream(
                str(query),
                patterns.item_ids[patterns.offsets[q] + order],
                local[lists - patterns.offsets[q]],
                patterns.clicks[rows],
                patterns.count[rows].astype(np.int64),
                day[rows],
            )
        )
    return found


class ReplayEnvironment:
    """R replicas of queues; it offers none of what only a simulator knows.

    Policies see random labels (``tracks.labels``): candidates are stored by frequency.
    """

    distinct = True
    offers: Mapping[str, Any] = {}

    def __init__(
        self, streams: Sequence[QueryStream], replicas: Sequence[tuple[int, int]], seed: int
    ) -> None:
        self.streams, self.replicas = list(streams), list(replicas)
        self.K = streams[0].lists.shape[1]
        L = np.array([len(streams[q].item_ids) for q, _ in replicas], dtype=np.int64)
        self.limits = np.repeat(L[:, None], self.K, axis=1)
        self.labels = Labels(
            [
                seeds.generator(seed, "labels", "replay", streams[q].query, run)
                for q, run in replicas
            ],
            L,
        )
        self.queues = [
            _Queue(streams[q], seeds.generator(seed, "replay", "shuffle", streams[q].query, run))
            for q, run in replicas
        ]
        R = len(replicas)
        self.clock = np.zeros(R, dtype=np.int64)  # SERPs passed, the accepted ones included
        self.alive = np.ones(R, dtype=np.bool_)
        self.steps = np.zeros(R, dtype=np.int64)  # SERPs accepted
        self.last = np.zeros((R, self.K), dtype=np.int64)  # the items of the last of them
        self._clicks = np.zeros((R, self.K), dtype=np.int8)

    def step(self, A: Ints) -> Ints:
        """The clicks of the next SERP that shows A; none where the queue is exhausted."""
        self._clicks[:] = 0
        items = self.labels.items(A)
        for r in np.flatnonzero(self.alive):
            found = self.queues[r].next(tuple(items[r].tolist()), int(self.clock[r]))
            if found is None:
                self.alive[r] = False
                self.clock[r] = len(self.queues[r].pattern)
            else:
                self.clock[r] = found + 1
                self._clicks[r] = self.queues[r].clicks(found)
                self.steps[r] += 1
                self.last[r] = items[r]
        return self._clicks


class _Queue:
    """The SERPs of a query, those of a day in random order, with the places of each list."""

    def __init__(self, stream: QueryStream, rng: np.random.Generator) -> None:
        self._stream = stream
        shuffled = rng.permutation(np.repeat(np.arange(len(stream.count)), stream.count))
        self.pattern = shuffled[np.argsort(stream.day[shuffled], kind="stable")]
        number = np.array([stream.number[tuple(a)] for a in stream.lists.tolist()])
        of_serp = number[self.pattern]
        order = np.argsort(of_serp, kind="stable")
        cuts = np.searchsorted(of_serp[order], np.arange(len(stream.number) + 1))
        self._places = [order[i:j].tolist() for i, j in pairwise(cuts.tolist())]

    def next(self, A: tuple[int, ...], clock: int) -> int | None:
        """The first place from ``clock`` on whose SERP shows A."""
        number = self._stream.number.get(A)
        if number is None:
            return None
        places = self._places[number]
        i = bisect_right(places, clock - 1)
        return places[i] if i < len(places) else None

    def clicks(self, place: int) -> Bools:
        """The clicks of a SERP."""
        return self._stream.clicks[self.pattern[place]]


class Accepted(Meter):
    """Clicks on accepted SERPs; nan once the queue is exhausted."""

    def __init__(self, environment: ReplayEnvironment, policy: Policy) -> None:
        super().__init__(environment, policy)
        self._clicks, self._any = np.zeros((2, len(environment.replicas)))

    def add(self, t: int, A: Ints, clicks: Ints) -> None:
        """Step t."""
        self._clicks += clicks.sum(axis=1)
        self._any += clicks.any(axis=1)

    def columns(self, t: int) -> Columns:
        """Clicks, and SERPs with a click."""
        found = {"clicks": self._clicks, "any_click": self._any}
        return {name: np.where(self.environment.alive, x, np.nan) for name, x in found.items()}
