"""The log as an environment: a logged SERP answers when it shows what the policy wants.

Li, Chu, Langford, Wang, "Unbiased offline evaluation of contextual-bandit-based news article
recommendation algorithms" (WSDM 2011), policy evaluator (Algorithm 2), for lists. Every replica
(query x shuffle) has a queue of its query's SERPs, in random order, and a clock of its own: a step
goes on in the queue to the next SERP whose first K items are the list of the policy, and what lies
between is passed over. When there is none, the queue is exhausted and the
replica stops. Of a log of single placements the policies are those that choose a pair, an item and
a position.

A list waits for its SERP instead of being drawn anew at each one. For a policy that does not
randomise this is the same; one that does keeps its own distribution of lists, also where the
logger prefers some of them.

Policies that learn from the log, SERP by SERP, and what they earned.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from scipy.stats import chisquare

from logeval.clicks.estimation.patterns import Patterns
from logeval.errors import LogevalError
from logeval.evaluation.loop import columns_of
from logeval.evaluation.plan import checkpoints_of
from logeval.facts import Fact
from logeval.policies.registry import PolicySpec
from logeval.policies.setting import Policy
from logeval.replay.logged import Logged, cut, read_logged
from logeval.running import seeds
from logeval.running.arrays import Bools, Ints
from logeval.running.progress import Progress
from logeval.running.words import joined
from logeval.storage import tables
from logeval.storage.results import Stored
from logeval.tracks.keys import Labels
from logeval.tracks.meters import Columns, Meter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.facts import Answer
    from logeval.replay.stages import ReplayPolicy


@dataclass(frozen=True)
class QueryStream:
    """The SERPs of one query, folded: lists of K local item numbers, clicks, counts.

    Of single placements: pairs of an item and a position, and one click.
    """

    query: str
    item_ids: Ints  # (L,)
    lists: Ints  # (P, K) local numbers; -1 where an item is not a candidate
    clicks: Bools  # (P, K)
    count: Ints  # (P,)
    limits: Ints  # (K,) number of choices at each place

    @property
    def serps(self) -> int:
        """Length of the queue."""
        return int(self.count.sum())

    def named(self, action: Ints) -> Ints:
        """Item ids of a list; item id and position of a pair."""
        if self.lists.shape == self.clicks.shape:
            return self.item_ids[action]
        return np.array([self.item_ids[action[0]], action[1] + 1])

    @cached_property
    def number(self) -> dict[tuple[int, ...], int]:
        """The number of each list that the log shows."""
        return {tuple(a): i for i, a in enumerate(np.unique(self.lists, axis=0).tolist())}


def streams_of(patterns: Patterns, items: int | None, placed: bool = False) -> list[QueryStream]:
    """The queues of all queries; candidates are the items shown, or the ``items`` most shown."""
    found = []
    for q, query in enumerate(patterns.queries):
        mine = patterns.query == q
        rows = np.flatnonzero(mine if placed else mine & (patterns.items >= 0).all(axis=1))
        lists, clicks = patterns.items[rows], patterns.clicks[rows]
        if placed:
            lists = lists.max(axis=1, keepdims=True)
            clicks = np.asarray(clicks.any(axis=1, keepdims=True))
        shown = np.bincount(
            (lists - patterns.offsets[q]).ravel(),
            np.repeat(patterns.count[rows], lists.shape[1]),
            minlength=int(np.diff(patterns.offsets)[q]),
        )
        order = np.argsort(-shown, kind="stable")
        order = order[shown[order] > 0][:items]
        local = np.full(len(shown), -1, dtype=np.int64)
        local[order] = np.arange(len(order))
        actions = local[lists - patterns.offsets[q]]
        limits = np.full(actions.shape[1], len(order), dtype=np.int64)
        if placed:
            actions = np.column_stack([actions, patterns.length[rows] - 1])
            limits = np.append(limits, patterns.positions[q])
        ids = patterns.item_ids[patterns.offsets[q] + order]
        count = patterns.count[rows].astype(np.int64)
        found.append(QueryStream(str(query), ids, actions, clicks, count, limits))
    return found


class ReplayEnvironment:
    """R replicas of queues; it offers none of what only a simulator knows.

    Policies see random labels (``tracks.labels``): candidates are stored by frequency.
    """

    offers: Mapping[str, Any] = {}

    def __init__(
        self, streams: Sequence[QueryStream], replicas: Sequence[tuple[int, int]], seed: int
    ) -> None:
        self.streams, self.replicas = list(streams), list(replicas)
        self.K, width = streams[0].lists.shape[1], streams[0].clicks.shape[1]
        self.distinct = self.K == width  # else pairs
        self.limits = np.stack([streams[q].limits for q, _ in replicas])
        generators = [
            seeds.generator(seed, "labels", "replay", streams[q].query, run) for q, run in replicas
        ]
        self.labels = Labels(generators, self.limits[:, 0])
        self.columns = None if self.distinct else Labels(generators, self.limits[:, 1])
        self.queues = [
            _Queue(streams[q], seeds.generator(seed, "replay", "shuffle", streams[q].query, run))
            for q, run in replicas
        ]
        R = len(replicas)
        self.clock = np.zeros(R, dtype=np.int64)  # SERPs passed, the accepted ones included
        self.alive = np.ones(R, dtype=np.bool_)
        self.steps = np.zeros(R, dtype=np.int64)  # SERPs accepted
        self.last = np.zeros((R, self.K), dtype=np.int64)  # the items of the last of them
        self._clicks = np.zeros((R, width), dtype=np.int8)

    def items(self, A: Ints) -> Ints:
        """What the labels A stand for: items, or an item and a position."""
        if self.columns is None:
            return self.labels.items(A)
        return np.hstack([self.labels.items(A[:, :1]), self.columns.items(A[:, 1:])])

    def step(self, A: Ints) -> Ints:
        """The clicks of the next SERP that shows A; none where the queue is exhausted."""
        self._clicks[:] = 0
        items = self.items(A)
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
    """The SERPs of a query in random order, with the places of each list."""

    def __init__(self, stream: QueryStream, rng: np.random.Generator) -> None:
        self._stream = stream
        self.pattern = rng.permutation(np.repeat(np.arange(len(stream.count)), stream.count))
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


MAX_STEPS = 10_000
NOT_UNIFORM = 0.001  # p of all tests together
Lists = dict[tuple[str, str, int], Ints]  # item ids by policy, query and run


@dataclass(frozen=True)
class PolicyReplay(Stored):
    """What ``replay_policy`` gives: rows in the schema ``schemas.REPLAYS``."""

    TABLES: ClassVar = {"table": "replays"}
    KEPT = ("logged", "facts")

    table: pd.DataFrame
    logged: dict[str, float] = field(default_factory=dict)  # by query: what the log's ranker earned
    manifest: tables.Manifest = field(default_factory=dict)
    lists: Lists = field(default_factory=dict)  # the last accepted ones; not stored
    facts: list[Fact] = field(default_factory=list)

    def covered(self) -> list[str]:
        """The queries on which every policy got to the first checkpoint, in every shuffle."""
        first = self.table[self.table["t"] == self.table["t"].min()]
        there = first["clicks"].notna().groupby(first["query"], sort=False).all()
        return [str(query) for query in there[there].index]

    def summary(self) -> pd.DataFrame:
        """One row per policy: clicks per step with interval, acceptance, exhausted queues.

        Over the queries that are covered; ``common_t`` is the last checkpoint that every replica of
        the policy reached there, and 0 where there is none.
        """
        covered = self.covered() or list(self.table["query"].unique())
        rows, chosen = [], self.table[self.table["query"].isin(covered)]
        for policy, mine in chosen.groupby("policy", sort=False):
            last = mine.sort_values("t").groupby(["query", "run"], sort=False).tail(1)
            mean, half = curve(mine, self.table["t"].max())
            common = self.common(mine)
            value, width = curve(mine, common)
            rows.append(
                {
                    "policy": policy,
                    "replicas": len(last),
                    "steps": last["steps"].mean(),
                    "acceptance": last["steps"].sum() / last["passed"].sum(),
                    "exhausted": last["exhausted"].mean(),
                    "common_t": common,
                    "clicks_per_step": value,
                    "low": value - width,
                    "high": value + width,
                    "at_the_end": mean,
                    "end_half_width": half,
                }
            )
        return pd.DataFrame(rows)

    def common(self, rows: pd.DataFrame) -> int:
        """The last checkpoint that all of these replicas reached; 0 if there is none."""
        reached = rows["clicks"].notna().groupby(rows["t"]).all()
        return int(reached[reached].index.max()) if reached.any() else 0

    def plot(self, ax: Axes | None = None) -> Axes:
        """Clicks per step of replayed policies over accepted steps, with 95% bands."""
        from logeval.reports.figures.models import plot_replays

        return plot_replays(self, ax)

    def verdict(self) -> Answer:
        """Who earned most, and how far the log can follow."""
        from logeval.reports.answers.replay import of_replays

        return of_replays(self)


def curve(rows: pd.DataFrame, t: int) -> tuple[float, float]:
    """Clicks per step up to t: mean over queries of the runs that got there, half of its interval.

    The queries are taken as given, as in ``replay_estimate``; what varies is the n runs of each,
    with variance s^2. Shuffles of one log share its SERPs: if each passes the share f of them,
    two are correlated by at most f. With a correlation of f their own variance is 1 - f of that
    between logs, and the mean of n has the variance s^2 (1 / n + f / (1 - f)).
    """
    at = rows[(rows["t"] == t) & rows["clicks"].notna()]
    if at.empty:
        return np.nan, np.nan
    passed = 0.0 * at["clicks"]  # a simulator has no log to share
    if "passed" in at:
        passed = at["passed"] / at["serps"] * t / at["steps"]
    f = passed.groupby(at["query"]).mean()
    x = (at["clicks"] / t).groupby(at["query"])
    n = x.size()
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = x.var(ddof=1) * (1.0 / n + f / (1.0 - f))
    variance = variance.where(np.isfinite(variance))  # one run, or all of the log passed: unknown
    error = np.sqrt(variance.sum(skipna=False)) / len(n)
    return float(x.mean().mean()), float(error * stdtrit((n - 1).sum(), 0.975))


def replay(asked: ReplayPolicy, manifest: tables.Manifest) -> PolicyReplay:
    """All policies on the same shuffles of the log."""
    log, positions, specs = asked.opened, asked.positions, asked.specs
    whole = read_logged(log, positions, queries=asked.wanted, top_queries=asked.top_queries)
    if positions and whole.patterns.K < positions:
        raise LogevalError(
            f"positions={positions}: the lists of the log have at most {whole.patterns.K} items"
        )
    short = cut(whole, positions or whole.patterns.K)
    streams = streams_of(short.patterns, asked.items, short.placed)
    for stream in streams:
        if positions and not short.placed and len(stream.item_ids) < positions:
            raise LogevalError(
                f"query {stream.query}: it has {len(stream.item_ids)} items, too few for "
                f"lists of {positions}; ask for fewer positions, or leave that query out"
            )
    steps = min(asked.horizon or MAX_STEPS, max(s.serps for s in streams))
    marks = checkpoints_of(steps, asked.checkpoints)
    frames, lists = [], Lists()
    with Progress("replay", len(specs), "policies", asked.quiet) as progress:
        for spec in specs:
            frame, final = replayed(spec, streams, asked.shuffles, marks, asked.seed)
            frames.append(frame)
            lists |= final
            progress.advance(1)
    table = pd.concat(frames, ignore_index=True)
    facts = not_uniform(short) if short.placed else []
    found = PolicyReplay(table, _earned(streams), manifest, lists, facts)
    if not table["steps"].any():
        raise _nothing_accepted(found, positions, asked.items)
    manifest["log_folder"] = str(log.path)
    return found


def not_uniform(logged: Logged) -> list[Fact]:
    """That the logger preferred items: whom it showed them to may have mattered, too.

    A chi-squared test of the items at each position of each query, all of them at 1 in 1,000.
    """
    patterns = logged.patterns
    place = patterns.query * patterns.K + patterns.length - 1
    counts = pd.Series(patterns.count).groupby([place, patterns.items.max(axis=1)]).sum()
    p = np.array([chisquare(of_place).pvalue for _, of_place in counts.groupby(level=0)])
    n = int((p * len(p) < NOT_UNIFORM).sum())
    return [Fact("not-uniform", level="caution", value=n, threshold=len(p))] if n else []


def replayed(
    spec: PolicySpec, streams: list[QueryStream], shuffles: int, marks: tuple[int, ...], seed: int
) -> tuple[pd.DataFrame, Lists]:
    """The rows of one policy, and the last lists that were accepted."""
    replicas = [(q, run) for q in range(len(streams)) for run in range(shuffles)]
    environment = ReplayEnvironment(streams, replicas, seed)
    generators = [
        seeds.generator(seed, "policy", "replay", streams[q].query, run, spec.name)
        for q, run in replicas
    ]
    places = [f"query {streams[q].query} shuffle {run}" for q, run in replicas]
    measured = columns_of(spec, environment, (Accepted,), marks, generators, places)
    n = len(marks)
    columns: dict[str, Any] = {
        "policy": [spec.name] * (len(replicas) * n),
        "query": np.repeat([streams[q].query for q, _ in replicas], n),
        "run": np.repeat([run for _, run in replicas], n),
        **measured,
        "steps": np.repeat(environment.steps, n),
        "passed": np.repeat(environment.clock, n),
        "serps": np.repeat([streams[q].serps for q, _ in replicas], n),
        "exhausted": np.repeat(~environment.alive, n),
    }
    lists = {
        (spec.name, streams[q].query, run): streams[q].named(environment.last[r])
        for r, (q, run) in enumerate(replicas)
        if environment.steps[r]
    }
    return pd.DataFrame(columns), lists


def _earned(streams: list[QueryStream]) -> dict[str, float]:
    """What the log's ranker earned: clicks per SERP of each query."""
    return {s.query: float(s.count @ s.clicks.sum(axis=1) / s.serps) for s in streams}


def _nothing_accepted(
    found: PolicyReplay, positions: int | None, items: int | None
) -> LogevalError:
    """The error for policies that no SERP answers."""
    last = found.table.drop_duplicates(["policy", "query", "run"], keep="last")
    policies = joined(list(dict.fromkeys(last["policy"])))
    K = positions or 1
    fewer = ["fewer positions, as positions=1"] if K > 1 else []
    fewer += ["fewer candidates, as items=4"] if items is None or items > 4 >= K else []
    ask = f"ask for {' or '.join(fewer)}" if fewer else "take a log whose ranker explores"
    return LogevalError(
        f"positions={K}: the log never shows the lists that {policies} asked for: 0 of "
        f"{int(last['passed'].sum()):,} searches of {last['query'].nunique()} queries were "
        f"accepted; {ask}"
    )
