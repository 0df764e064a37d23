"""A target from its name: a table, ``log:FOLDER``, ``day:27``, or a built-in ranker.

A target is read in two steps. The first needs no log: it says which queries it has and which
SERPs may not be used to estimate it (the day that is the target). The second numbers its items
as the log does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.models.registry import model_names
from logeval.errors import LogevalError
from logeval.log.log import Log, load
from logeval.log.queries import Query
from logeval.replay.logged import Logged, read_logged
from logeval.replay.predictions import fit
from logeval.replay.target_table import read_target_table
from logeval.replay.targets import ListTarget, MarginalTarget, RandomTarget, Target
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints, sum_by

BUILT_IN = ("logged", "random", "by-ctr", "best:MODEL")
RANDOM_LISTS = 256  # drawn per query, for the value of random under a click model


@dataclass(frozen=True)
class TargetSource:
    """A target before it meets the log."""

    name: str
    queries: list[Query] | None = None  # None: those of the log
    positions: int | None = None  # its shortest list
    excluded: str = "false"  # SQL: SERPs that are the target itself
    table: pd.DataFrame | None = None
    logged: Logged | None = None  # the target is these SERPs


def read_source(text: str, log: Log) -> TargetSource:
    """The target of that name."""
    check_target(text)
    kind, _, rest = text.partition(":")
    if kind == "log" and rest:
        logged = read_logged(rest)
        return TargetSource(text, logged.patterns.queries, logged=logged)
    if kind == "day" and rest:
        logged = read_logged(log, where=f"day = {rest}")
        queries = logged.patterns.queries
        return TargetSource(text, queries, logged=logged, excluded=f"day = {rest}")
    if kind == "best" and rest:
        return TargetSource(f"best:{rest.lower()}")
    if text in ("logged", "random", "by-ctr"):
        return TargetSource(text)
    path = Path(text)
    table = read_target_table(path)
    positions = int(table.groupby(["query", "list"])["rank"].max().min())
    queries = [Query(*q) for q in dict.fromkeys(table["query"])]
    return TargetSource(text, queries, positions, table=table)


def check_target(text: str) -> None:
    """Raise unless there is a target of that name, as far as that is known without the log."""
    kind, _, rest = text.partition(":")
    if kind == "log" and rest:
        load(rest)
    elif kind == "day" and rest:
        if not re.fullmatch(r"[0-9]{1,9}", rest):
            raise LogevalError(f"target {text}: write a day of the log, as day:27")
    elif kind == "best" and rest:
        model_names([rest])
    elif text not in ("logged", "random", "by-ctr") and not Path(text).is_file():
        raise LogevalError(
            f"target {text}: there is no such file; a target is a table (Parquet or CSV), "
            f"log:FOLDER, day:NUMBER, {', '.join(BUILT_IN)}"
        )


def bind(source: TargetSource, logged: Logged, K: int, scope: str, seed: int) -> Target:
    """The target on the items of a log, cut to K positions."""
    patterns = logged.patterns
    if source.table is not None:
        return _of_table(source.name, source.table, patterns, K)
    if source.logged is not None:
        return _of_log(source.name, source.logged.patterns, patterns, K)
    if source.name == "logged":
        share = patterns.count / patterns.serps[patterns.query]
        return _list_target(source.name, patterns, K, patterns.query, patterns.items[:, :K], share)
    if source.name == "random":
        return _random(patterns, K, seed)
    return _best(source.name, logged, K, scope)


def _of_table(name: str, table: pd.DataFrame, patterns: Patterns, K: int) -> Target:
    index = {query: q for q, query in enumerate(patterns.queries)}
    strange = [q for q in dict.fromkeys(table["query"]) if q not in index]
    if strange:
        names = ", ".join(str(Query(*q)) for q in strange[:5])
        raise LogevalError(
            f"{name}: {len(strange)} of its queries are not in the log ({names}); `describe` lists "
            "the log's, leave the others out of the target"
        )
    table = table[table["rank"] <= K]
    q = np.array([index[query] for query in table["query"]], dtype=np.int64)
    pair, item_query, item_ids = _numbered(patterns, q, table["item"].to_numpy())
    if (pair >= patterns.I).all():
        raise LogevalError(
            f"{name}: none of its items was ever shown for its query; is it of another log?"
        )
    k = table["rank"].to_numpy() - 1
    p = table["probability"].to_numpy(dtype=np.float64)
    if table.attrs.get("marginals"):
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
    index = {query: q for q, query in enumerate(patterns.queries)}
    number = np.array([index.get(query, -1) for query in own.queries], dtype=np.int64)
    own = own.take(number[own.query] >= 0)
    if not len(own.count):
        raise LogevalError(f"target {name}: none of its queries is in the log")
    query = number[own.query]
    n, k = np.nonzero(own.items[:, :K] >= 0)
    pair, item_query, item_ids = _numbered(patterns, query[n], own.item_ids[own.items[n, k]])
    if (pair >= patterns.I).all():
        raise LogevalError(f"target {name}: none of its items was ever shown in the log")
    items = np.full((len(own.count), min(K, own.K)), -1, dtype=np.int64)
    items[n, k] = pair
    if own.K < K:
        raise LogevalError(f"target {name}: its lists have {own.K} items, fewer than positions={K}")
    serps = sum_by(query, own.count, patterns.Q)
    clicks = own.clicks[:, :K].sum(axis=1)
    mean, variance = mean_clicks(query, clicks, own.count, patterns.Q)
    return ListTarget(
        name, patterns.Q, K, item_query, item_ids, query, items, own.count / serps[query],
        serps=serps, clicks=mean, clicks_variance=variance,
    )  # fmt: skip


def mean_clicks(query: Ints, clicks: Ints, count: Floats, Q: int) -> tuple[Floats, Floats]:
    """Clicks per SERP of each query, and the variance of that mean; nan without enough SERPs."""
    n = sum_by(query, count, Q)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sum_by(query, count * clicks, Q) / n
        square = sum_by(query, count * (clicks - mean[query]) ** 2, Q)
        return mean, np.where(n > 1, square / (n - 1) / n, np.nan)


def _numbered(patterns: Patterns, query: Ints, ids: Ints) -> tuple[Ints, Ints, Ints]:
    """Numbers of (query, item) pairs: the log's, then new ones; and all pairs."""
    every = np.concatenate([patterns.item_ids, ids])
    _, code = np.unique(every, return_inverse=True)
    size = int(code.max()) + 1
    known = patterns.item_query * size + code[: patterns.I]
    wanted = query * size + code[patterns.I :]
    order = np.argsort(known)
    at = order[np.minimum(np.searchsorted(known[order], wanted), len(order) - 1)]
    found = known[at] == wanted
    _, first, number = np.unique(wanted[~found], return_index=True, return_inverse=True)
    pair = at.copy()
    pair[~found] = patterns.I + number
    return (
        pair,
        np.concatenate([patterns.item_query, query[~found][first]]),
        np.concatenate([patterns.item_ids, ids[~found][first]]),
    )


def _list_target(
    name: str, patterns: Patterns, K: int, query: Ints, items: Ints, probability: Floats
) -> ListTarget:
    return ListTarget(
        name, patterns.Q, K, patterns.item_query, patterns.item_ids, query, items, probability
    )


def _enough_items(name: str, patterns: Patterns, K: int) -> Ints:
    L = np.diff(patterns.offsets)
    short = np.flatnonzero(L < K)
    if len(short):
        q = short[0]
        raise LogevalError(
            f"target {name}: query {patterns.queries[q]} has {L[q]} items in the log, and lists "
            f"of {K} are asked for; ask for fewer positions, or leave that query out"
        )
    return L


def _random(patterns: Patterns, K: int, seed: int) -> Target:
    L = _enough_items("random", patterns, K)
    rng = seeds.generator(seed, "replay", "random target")
    drawn = [
        patterns.offsets[q] + np.argsort(rng.random((RANDOM_LISTS, L[q])), axis=1)[:, :K]
        for q in range(patterns.Q)
    ]
    query = np.repeat(np.arange(patterns.Q), RANDOM_LISTS)
    return RandomTarget(
        "random", patterns.Q, K, patterns.item_query, patterns.item_ids, np.concatenate(drawn),
        query,
    )  # fmt: skip


def _best(name: str, logged: Logged, K: int, scope: str) -> Target:
    """The best list of a model fitted to the log; by-ctr is that of the CTR per item."""
    patterns = logged.patterns
    _enough_items(name, patterns, K)
    model = "dctr" if name == "by-ctr" else name.removeprefix("best:")
    fitted = fit(model, patterns, patterns.count, scope)
    items = np.empty((patterns.Q, K), dtype=np.int64)
    for q, query in enumerate(patterns.queries):
        of_query = fitted.of(query, K=max(K, int(patterns.positions[q])))
        ids = patterns.item_ids[patterns.offsets[q] : patterns.offsets[q + 1]]
        order = np.argsort(ids)
        items[q] = patterns.offsets[q] + order[np.searchsorted(ids[order], of_query.best_list(K))]
    return _list_target(name, patterns, K, np.arange(patterns.Q), items, np.ones(patterns.Q))


def lists_target(
    name: str, patterns: Patterns, queries: list[Query], lists: list[Ints], K: int
) -> ListTarget:
    """Lists of item ids, equally likely within their query."""
    index = {query: q for q, query in enumerate(patterns.queries)}
    query = np.array([index[q] for q in queries], dtype=np.int64)
    ids = np.stack([A[:K] for A in lists])
    pair, item_query, item_ids = _numbered(patterns, np.repeat(query, K), ids.ravel())
    share = 1.0 / np.bincount(query, minlength=patterns.Q)[query]
    return ListTarget(
        name, patterns.Q, K, item_query, item_ids, query, pair.reshape(ids.shape), share
    )
