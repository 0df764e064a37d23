"""Targets: the rankers whose value is asked for, as distributions over lists or over marginals.

The items of all queries are numbered as in the log's patterns; items that the log never showed
come after them. A target may be known by its lists, by its marginals alone (a table with
probabilities per rank), or by a formula (random).

A target is read in two steps. The first needs no log: it says which queries it has and which
SERPs may not be used to estimate it (the day that is the target). The second numbers its items
as the log does.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.models.registry import model_names
from logeval.errors import LogevalError
from logeval.log.log import Log, load
from logeval.log.queries import Query
from logeval.replay.logged import Logged, prefix_numbers, read_logged
from logeval.replay.models import fit
from logeval.replay.target_tables import read_target_table, target_rows
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints, sum_by


def last_of(node: Ints) -> Ints:
    """The last position of each row (n, K) that is no hole, from 0."""
    found: Ints = np.where(node >= 0, np.arange(node.shape[1]), -1).max(axis=1, initial=-1)
    return found


def _tree(items: Ints, query: Ints) -> tuple[Ints, Ints, Ints]:
    """The number of every prefix (n, K), and query and depth of each number."""
    node = prefix_numbers(items)
    owner, depth = np.empty((2, int(node.max()) + 1), dtype=np.int64)
    p, k = np.nonzero(node >= 0)
    owner[node[p, k]], depth[node[p, k]] = query[p], k
    return node, owner, depth


@dataclass(frozen=True)
class Target(ABC):
    """A ranker of Q queries, cut to K positions; a subclass says how its lists are drawn."""

    name: str
    Q: int
    K: int
    item_query: Ints  # (I,) the query of every item, those the log never showed at the end
    item_ids: Ints  # (I,)
    serps: Floats | None = field(default=None, kw_only=True)  # (Q,) weight of each query
    clicks: Floats | None = field(default=None, kw_only=True)  # (Q,) true clicks per SERP
    noise: Floats | None = field(default=None, kw_only=True)  # (Q,) variance of these

    @abstractmethod
    def item_positions(self) -> Floats:
        """h(a, k), (I, K)."""

    @abstractmethod
    def prefixes(self, items: Ints, query: Ints, whole: bool) -> tuple[Ints, Floats, Ints, Ints]:
        """Prefixes of the log's lists (P, K) by number, and h, query and depth of each number.

        h is that of lists that begin so, or with ``whole`` of those that are no longer.
        """

    @abstractmethod
    def lists(self) -> tuple[Ints, Ints, Floats]:
        """Query (n,), items (n, K) and probability (n,): for the value under a click model."""

    def mass(self) -> Floats:
        """The probability that a list has a position, (Q, K)."""
        h = self.item_positions()
        return np.stack([sum_by(self.item_query, h[:, k], self.Q) for k in range(self.K)], axis=1)


@dataclass(frozen=True)
class ListTarget(Target):
    """A distribution over lists; the probabilities of a query add up to 1."""

    query: Ints  # (n,)
    items: Ints  # (n, K), -1 beyond the end
    probability: Floats  # (n,)

    def item_positions(self) -> Floats:
        """h(a, k), the sum over the lists with item a at position k."""
        n, k = np.nonzero(self.items >= 0)
        size = len(self.item_query) * self.K
        cell = self.items[n, k] * self.K + k
        return sum_by(cell, self.probability[n], size).reshape(-1, self.K)

    def prefixes(self, items: Ints, query: Ints, whole: bool) -> tuple[Ints, Floats, Ints, Ints]:
        """One tree for the lists of the log and of the target."""
        node, owner, depth = _tree(
            np.concatenate([items, self.items]), np.concatenate([query, self.query])
        )
        own = node[len(items) :]
        at, k = np.nonzero(own >= 0)
        if whole:
            last = k == last_of(own)[at]
            at, k = at[last], k[last]
        h = sum_by(own[at, k], self.probability[at], len(owner))
        return node[: len(items)], h, owner, depth

    def lists(self) -> tuple[Ints, Ints, Floats]:
        """As given."""
        return self.query, self.items, self.probability


@dataclass(frozen=True)
class MarginalTarget(Target):
    """A ranker known by h(a, k) alone."""

    h: Floats  # (I, K)

    def item_positions(self) -> Floats:
        """As given."""
        return self.h

    def prefixes(self, items: Ints, query: Ints, whole: bool) -> tuple[Ints, Floats, Ints, Ints]:
        """Not known."""
        raise LogevalError(
            f"target {self.name}: it gives probabilities per rank, and "
            f"{'List' if whole else 'Prefix and Cascade-DR'} needs those of whole lists; add a "
            "column `list` that numbers the lists, or choose IP, PBM, Item or DR"
        )

    def lists(self) -> tuple[Ints, Ints, Floats]:
        """One list of one item at its place, for models whose clicks do not depend on the rest."""
        i, k = np.nonzero(self.h)
        items = np.full((len(i), self.K), -1, dtype=np.int64)
        items[np.arange(len(i)), k] = i
        return self.item_query[i], items, self.h[i, k]


@dataclass(frozen=True)
class RandomTarget(Target):
    """Every list of K different items of the query is equally likely; none where it has fewer."""

    query: Ints  # (n,)
    items: Ints  # (n, K) a sample of its lists, for click models

    def _h(self) -> Floats:
        """h of a prefix of k items, 1 / (L (L - 1) ... (L - k + 1)), (Q, K)."""
        L = np.bincount(self.item_query, minlength=self.Q)
        left = L[:, None] - np.arange(self.K)
        h = np.cumprod(1.0 / np.maximum(left, 1), axis=1)
        return np.where(L[:, None] >= self.K, h, 0.0)

    def item_positions(self) -> Floats:
        """1 / L."""
        return np.repeat(self._h()[self.item_query, :1], self.K, axis=1)

    def prefixes(self, items: Ints, query: Ints, whole: bool) -> tuple[Ints, Floats, Ints, Ints]:
        """Lists of the log that are shorter than K are never drawn."""
        node, owner, depth = _tree(items, query)
        h = self._h()[owner, depth]
        return node, np.where(depth == self.K - 1, h, 0.0) if whole else h, owner, depth

    def lists(self) -> tuple[Ints, Ints, Floats]:
        """The sample."""
        share = 1.0 / np.maximum(np.bincount(self.query, minlength=self.Q), 1)
        return self.query, self.items, share[self.query]


BUILT_IN = ("logged", "random", "by-ctr")
RANDOM_LISTS = 256  # drawn per query, for the value of random under a click model


@dataclass(frozen=True)
class TargetSource:
    """A target before it meets the log: a table, SERPs, or a built-in ranker."""

    name: str
    table: pd.DataFrame | None = None
    patterns: Patterns | None = None
    excluded: str = "false"  # SQL: SERPs that are the target itself


def check_target(text: str) -> tuple[str, str]:
    """The kind of a target and the rest of its name; an error if there is none of that name."""
    kind, _, rest = text.partition(":")
    if kind == "log" and rest:
        load(rest)
    elif kind == "day" and rest:
        if not re.fullmatch(r"[0-9]{1,9}", rest):
            raise LogevalError(f"target {text}: write a day of the log, as day:27")
    elif kind == "best" and rest:
        model_names([rest])
    elif text in BUILT_IN:
        return text, ""
    elif Path(text).is_file():
        return "table", text
    else:
        raise LogevalError(
            f"target {text}: there is no such file; a target is a table (Parquet or CSV), "
            f"log:FOLDER, day:NUMBER, {', '.join(BUILT_IN)}, best:MODEL"
        )
    return kind, rest


def is_learned(name: str) -> bool:
    """Whether a target is made from the clicks of the log by which it is judged."""
    return name.startswith("best:") or name == "by-ctr"


def read_source(text: str, log: Log, frame: pd.DataFrame | None = None) -> TargetSource:
    """The target of that name, or of that frame."""
    placed = log.holds == "placements"
    if frame is not None:
        return TargetSource(text, target_rows(frame, text, log.names, placed))
    kind, rest = check_target(text)
    if kind == "table":
        return TargetSource(text, read_target_table(Path(rest), log.names, placed))
    if kind not in ("log", "day"):
        return TargetSource(f"best:{rest.lower()}" if kind == "best" else text)
    if kind == "day":
        patterns = read_logged(log, where=f"day = {rest}").patterns
        return TargetSource(text, patterns=patterns, excluded=f"day = {rest}")
    other = load(rest)
    if other.holds != log.holds:
        raise LogevalError(
            f"{text}: it holds {other.holds} and the log {log.holds}, whose values do not compare; "
            "give its lists as a table"
        )
    return TargetSource(text, patterns=read_logged(other).patterns)


def bind(source: TargetSource, logged: Logged, K: int, scope: str, seed: int) -> Target:
    """The target on the items of a log, cut to K positions.

    On a log of single placements it chooses the item, and the position is as often each of them as
    in the log; those of a target that is a log are its own.
    """
    patterns, name = logged.patterns, source.name
    if source.patterns is not None:
        return _of_log(name, source.patterns, patterns, K)
    if name == "logged":
        share = patterns.count / patterns.serps[patterns.query]
        ours = (name, patterns.Q, K, patterns.item_query, patterns.item_ids)
        return ListTarget(*ours, patterns.query, patterns.items[:, :K], share)
    target = (
        _of_table(name, source.table, patterns, K)
        if source.table is not None
        else _built_in(name, logged, K, scope, seed)
    )
    if not logged.placed:
        return target
    h = target.item_positions() * logged.shares[target.item_query, :K]
    return MarginalTarget(name, patterns.Q, K, target.item_query, target.item_ids, h)


def _built_in(name: str, logged: Logged, K: int, scope: str, seed: int) -> Target:
    """Any lists, or the best of a click model; ``by-ctr`` is that of the CTR per item."""
    patterns = logged.patterns
    ours = (name, patterns.Q, K, patterns.item_query, patterns.item_ids)
    L = np.diff(patterns.offsets)
    long = np.flatnonzero(L >= K)  # queries with enough items for a list: some list is as long
    if name == "random":
        rng = seeds.generator(seed, "replay", "random target")
        drawn = [
            patterns.offsets[q] + np.argsort(rng.random((RANDOM_LISTS, L[q])), axis=1)[:, :K]
            for q in long
        ]
        return RandomTarget(*ours, np.repeat(long, RANDOM_LISTS), np.concatenate(drawn))
    model = "dctr" if name == "by-ctr" else name.removeprefix("best:")
    fitted = fit(model, logged, patterns.count, scope)
    best = np.empty((len(long), K), dtype=np.int64)
    for i, q in enumerate(long):
        of = patterns.queries[q]
        ids = patterns.item_ids[patterns.offsets[q] : patterns.offsets[q + 1]]
        order = np.argsort(ids)
        wanted = fitted.of(of, K=max(K, int(patterns.positions[q]))).best_list(K)
        best[i] = patterns.offsets[q] + order[np.searchsorted(ids[order], wanted)]
    return ListTarget(*ours, long, best, np.ones(len(long)))


def _of_table(name: str, table: pd.DataFrame, patterns: Patterns, K: int) -> Target:
    numbers = numbered_queries(table["query"], patterns.queries)
    mine = table["query"].map(numbers.get)  # pandas 2 takes a dict of tuples for levels of an index
    attrs, table = table.attrs, table[table["rank"] <= K].assign(q=mine)
    table = table.explode("q").dropna(subset="q")  # a list of a query stands for all its regions
    if table.empty:
        raise LogevalError(f"{name}: none of its queries is in the log; `describe` lists those")
    q = table["q"].to_numpy(dtype=np.int64)
    pair, item_query, item_ids = _numbered(patterns, q, table["item"].to_numpy())
    if (pair >= patterns.I).all():
        raise LogevalError(
            f"{name}: none of its items was ever shown for its query; is it of another log?"
        )
    k = table["rank"].to_numpy() - 1
    p = table["probability"].to_numpy(dtype=np.float64)
    if attrs.get("marginals"):
        h = np.zeros((len(item_ids), K))
        h[pair, k] = p
        return MarginalTarget(name, patterns.Q, K, item_query, item_ids, h)
    _, number = np.unique(
        np.stack([q, pd.factorize(table["list"])[0]]), axis=1, return_inverse=True
    )
    number = number.ravel()
    n = int(number.max()) + 1
    items = np.full((n, K), -1, dtype=np.int64)
    items[number, k] = pair
    query, probability = np.empty(n, dtype=np.int64), np.empty(n)
    query[number], probability[number] = q, p
    return ListTarget(name, patterns.Q, K, item_query, item_ids, query, items, probability)


def _of_log(name: str, own: Patterns, patterns: Patterns, K: int) -> Target:
    """The lists and clicks of SERPs; queries that the log does not have are left out."""
    index = _index(patterns)
    number = np.array([index.get(query, -1) for query in own.queries], dtype=np.int64)
    own = own.take((number[own.query] >= 0) & (own.items[:, :K] >= 0).any(axis=1))
    if not len(own.count):
        raise LogevalError(f"target {name}: none of its queries is in the log")
    query = number[own.query]
    n, k = np.nonzero(own.items[:, :K] >= 0)
    pair, item_query, item_ids = _numbered(patterns, query[n], own.item_ids[own.items[n, k]])
    if (pair >= patterns.I).all():
        raise LogevalError(f"target {name}: none of its items was ever shown in the log")
    if own.K < K:
        raise LogevalError(f"target {name}: its lists have {own.K} items, fewer than positions={K}")
    items = np.full((len(own.count), K), -1, dtype=np.int64)
    items[n, k] = pair
    serps = sum_by(query, own.count, patterns.Q)
    clicks, noise = mean_clicks(query, own.clicks[:, :K].sum(axis=1), own.count, patterns.Q)
    return ListTarget(
        name, patterns.Q, K, item_query, item_ids, query, items, own.count / serps[query],
        serps=serps, clicks=clicks, noise=noise,
    )  # fmt: skip


def numbered_queries(given: Iterable[Query], known: Sequence[Query]) -> dict[Query, list[int]]:
    """The numbers of the known queries that are meant: of one without a region, all of its own."""
    places: dict[Query, list[int]] = {}
    for number, query in enumerate(known):
        places.setdefault(query, []).append(number)
        if query.region_id is not None:
            places.setdefault(Query(query.query_id, None), []).append(number)
    return {query: places.get(query, []) for query in dict.fromkeys(given)}


def _index(patterns: Patterns) -> dict[Query, int]:
    return {query: q for q, query in enumerate(patterns.queries)}


def mean_clicks(query: Ints, clicks: Ints, count: Floats, Q: int) -> tuple[Floats, Floats]:
    """Clicks per SERP of each query, and the variance of that mean; nan without enough SERPs."""
    n = sum_by(query, count, Q)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sum_by(query, count * clicks, Q) / n
        square = sum_by(query, count * (clicks - mean[query]) ** 2, Q)
        return mean, np.where(n > 1, square / (n - 1) / n, np.nan)


def _numbered(patterns: Patterns, query: Ints, ids: Ints) -> tuple[Ints, Ints, Ints]:
    """Numbers of (query, item) pairs: the log's, then new ones; and all pairs."""
    known = pd.MultiIndex.from_arrays([patterns.item_query, patterns.item_ids])
    wanted = pd.MultiIndex.from_arrays([query, ids])
    pair = known.get_indexer(wanted)
    new = wanted[pair < 0].unique().sort_values()
    pair[pair < 0] = patterns.I + new.get_indexer(wanted[pair < 0])
    every = known.append(new)
    item_query, item_ids = (every.get_level_values(i).to_numpy(np.int64) for i in (0, 1))
    return pair, item_query, item_ids


def lists_target(
    name: str, patterns: Patterns, queries: Iterable[Query], lists: Iterable[Ints], K: int
) -> ListTarget:
    """Lists of item ids, equally likely within their query."""
    index = _index(patterns)
    query = np.array([index[q] for q in queries], dtype=np.int64)
    ids = np.stack([A[:K] for A in lists])
    pair, item_query, item_ids = _numbered(patterns, np.repeat(query, K), ids.ravel())
    share = 1.0 / np.bincount(query, minlength=patterns.Q)[query]
    return ListTarget(
        name, patterns.Q, K, item_query, item_ids, query, pair.reshape(ids.shape), share
    )
