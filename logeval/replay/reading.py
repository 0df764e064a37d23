"""A target from its name: a table, ``log:FOLDER``, ``day:27``, or a built-in ranker.

A target is read in two steps. The first needs no log: it says which queries it has and which
SERPs may not be used to estimate it (the day that is the target). The second numbers its items
as the log does.

What an estimate leaves out, in words: queries that only the log, or only the target, has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from logeval.clicks.estimation.fold import fold, held_out_rows
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.models.registry import model_names
from logeval.clicks.support.selection import selected_by_clicks
from logeval.errors import LogevalError
from logeval.log.log import Log, load
from logeval.log.queries import Query, sql_condition
from logeval.replay.fitting import fit
from logeval.replay.logged import Logged
from logeval.replay.targets import (
    ListTarget,
    MarginalTarget,
    RandomTarget,
    Target,
    read_target_table,
    target_rows,
)
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints, sum_by

if TYPE_CHECKING:
    from logeval.replay.stages import ReplayEstimate


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
    if frame is not None:
        return TargetSource(text, target_rows(frame, text, log.names))
    kind, rest = check_target(text)
    if kind == "table":
        return TargetSource(text, read_target_table(Path(rest), log.names))
    if kind not in ("log", "day"):
        return TargetSource(f"best:{rest.lower()}" if kind == "best" else text)
    where, excluded = load(rest) if kind == "log" else log, "false"
    rows = fold(where, holdout=None if kind == "log" else f"days:{rest}")
    if kind == "day":
        rows, excluded = held_out_rows(rows), f"day = {rest}"
    if not rows.num_rows:
        raise LogevalError(f"{text}: there are no SERPs to replay; check the log and the day")
    return TargetSource(text, patterns=patterns_of(rows), excluded=excluded)


def bind(source: TargetSource, logged: Logged, K: int, scope: str, seed: int) -> Target:
    """The target on the items of a log, cut to K positions."""
    patterns, name = logged.patterns, source.name
    if source.table is not None:
        return _of_table(name, source.table, patterns, K)
    if source.patterns is not None:
        return _of_log(name, source.patterns, patterns, K)
    ours = (name, patterns.Q, K, patterns.item_query, patterns.item_ids)
    if name == "logged":
        share = patterns.count / patterns.serps[patterns.query]
        return ListTarget(*ours, patterns.query, patterns.items[:, :K], share)
    L = np.diff(patterns.offsets)
    long = np.flatnonzero(L >= K)  # queries with enough items for a list: some list is as long
    if name == "random":
        rng = seeds.generator(seed, "replay", "random target")
        drawn = [
            patterns.offsets[q] + np.argsort(rng.random((RANDOM_LISTS, L[q])), axis=1)[:, :K]
            for q in long
        ]
        return RandomTarget(*ours, np.repeat(long, RANDOM_LISTS), np.concatenate(drawn))
    # the best list of a model fitted to the log; by-ctr is that of the CTR per item
    model = "dctr" if name == "by-ctr" else name.removeprefix("best:")
    fitted = fit(model, patterns, patterns.count, scope)
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
    own = own.take(number[own.query] >= 0)
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
    clicks, _ = mean_clicks(query, own.clicks[:, :K].sum(axis=1), own.count, patterns.Q)
    return ListTarget(
        name, patterns.Q, K, item_query, item_ids, query, items, own.count / serps[query],
        serps=serps, clicks=clicks,
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


NAMED = 5  # queries, in a sentence


def known_queries(log: Log, given: Iterable[Query]) -> list[Query]:
    """Those of the queries that the log has; an error if it has none."""
    asked = list(dict.fromkeys(given))
    with log.connect() as db:
        rows = db.execute(
            "SELECT DISTINCT query_id, region_id FROM serps "
            f"WHERE NOT test AND ({sql_condition(asked)}) ORDER BY ALL"
        ).fetchall()
    if not rows:
        raise LogevalError(
            f"{log.path}: the log has no SERPs of the queries of the target ({_few(asked)}); is it "
            "of another log?"
        )
    return [Query(*row) for row in rows]


def left_out(
    sources: Sequence[TargetSource],
    targets: Sequence[Target],
    logged: Logged,
    asked: ReplayEstimate,
) -> list[str]:
    """A sentence for each target that has queries without lists, or that the log does not have."""
    known, notes = logged.patterns.queries, []
    if (selected := selected_by_clicks(asked.opened)) is not None:
        notes.append(selected)
    everything = asked.wanted is None and asked.top_queries is None
    for source, target in zip(sources, targets, strict=True):
        n, K = int((target.mass().sum(axis=1) > 0).sum()), target.K
        if n < len(known) and source.table is None and source.patterns is None:
            notes.append(
                f"{source.name}: {len(known) - n:,} of {len(known):,} queries have fewer than {K} "
                "items in the log and are left out"
            )
        if source.table is not None and everything:
            numbers = numbered_queries(source.table["query"], known)
            absent = [query for query, places in numbers.items() if not places]
            if absent:
                notes.append(
                    f"{source.name}: {len(absent):,} of its {len(numbers):,} queries are not in "
                    f"the log and are left out: {_few(absent)}"
                )
        if source.patterns is not None and everything:
            own = source.patterns
            lost = [q for q, query in enumerate(own.queries) if query not in set(known)]
            if lost:
                notes.append(
                    f"{source.name}: {len(lost):,} of its {own.Q:,} queries "
                    f"({own.serps[lost].sum() / own.serps.sum():.1%} of its searches) are not "
                    "in the rest of the log and are left out"
                )
    return notes


def size_of(log: Log) -> tuple[int, int]:
    """How many queries and SERPs a log has."""
    with log.connect() as db:
        row = db.execute(
            "SELECT count(*), sum(n) FROM (SELECT count(*) AS n FROM serps WHERE NOT test "
            "GROUP BY query_id, region_id)"
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1] or 0)


def _few(queries: Sequence[Query]) -> str:
    more = f" and {len(queries) - NAMED:,} more" if len(queries) > NAMED else ""
    return ", ".join(map(str, queries[:NAMED])) + more
