"""The queries of a decision: how often each is searched, today's ranker there, and the users.

A ``World`` is one fitted click model: of each query and each draw of its parameters a problem of
the ranking track, with the known results only, and what today's ranker earns, with all of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from logeval.clicks.collection import FittedModels
from logeval.clicks.lists import Ranker
from logeval.clicks.models.model import ClickModel
from logeval.clicks.users.chain import Chain
from logeval.clicks.users.mixture import Users, classes_of
from logeval.errors import LogevalError
from logeval.evaluation.known import known_rows
from logeval.evaluation.matching import CLEARLY, LITTLE, common_order, loss
from logeval.log.log import Log
from logeval.log.queries import Query
from logeval.running.arrays import Floats, Ints, place_of
from logeval.tracks.lists import RankingProblem

LONG = 0.9  # of a query's searches show as many results as are decided on


class Traffic(NamedTuple):
    """What the log's period is: queries, their searches, and its days."""

    queries: list[Query]
    searches: Floats  # (Q,)
    every: float  # searches of all queries of the log
    days: float | None


def refuse_counts(log: Log) -> None:
    """Raise for a log that does not say which lists were shown."""
    if log.holds != "serps":
        raise LogevalError(
            f"{log.title}: is a table of {log.holds}, which does not say what today's ranker "
            "shows; decide needs result pages"
        )


def size_of(log: Log) -> tuple[float | None, float, int]:
    """Days (None where it does not say), searches and queries."""
    with log.connect() as connection:
        serps, queries, days = connection.sql(
            "SELECT count(*), count(DISTINCT (query_id, region_id)), max(day) - min(day) + 1 "
            "FROM serps WHERE NOT test"
        ).fetchall()[0]
    return None if days is None else float(days), float(serps), int(queries)


def traffic_of(log: Log, models: FittedModels, periods: float) -> Traffic:
    """The searches of the queries that were fitted, and that the log has lists of."""
    if models.lists is None:
        raise LogevalError(
            "decide: these models have no lists of a log beside them, so that today's ranker is "
            "not known; fit them with `logeval fit-models`"
        )
    with log.connect() as connection:
        rows = connection.sql(
            "SELECT query_id, region_id, count(*) FROM serps WHERE NOT test GROUP BY ALL"
        ).fetchall()
        first, last = connection.sql("SELECT min(day), max(day) FROM serps").fetchall()[0]
    often = {Query(q, region): float(n) for q, region, n in rows}
    fitted = set.intersection(*(set(one.queries) for one in models.fitted.values()))
    queries = [q for q in models.lists.queries if q in fitted and often.get(q)]
    if not queries:
        raise LogevalError(f"{log.title}: has no searches of the queries that were fitted")
    every = sum(often.values())
    scale = periods if periods < 1_000.0 else periods / every
    days = None if first is None else float(last - first + 1) * scale
    n = np.array([max(round(often[q] * scale), 1.0) for q in queries])
    return Traffic(queries, n, every * scale, days)


class Shown(NamedTuple):
    """Today's ranker on a query: its lists, in items, their length, and how often each is shown."""

    K: int
    ranker: Ranker  # in rows of ``items``
    items: Ints


def today_of(models: FittedModels, query: Query) -> Shown | None:
    """Today's ranker as the log shows it; None where no list can be simulated.

    Lists are cut to as many results as nearly all of a query's searches show.
    """
    lists = models.lists
    assert lists is not None
    mine = lists.query == lists.queries.index(query)
    share = lists.serps[mine] / lists.serps[mine].sum()
    at_least = [float(share @ (lists.length[mine] > k)) for k in range(lists.items.shape[1])]
    K = max(int(np.sum(np.array(at_least) >= LONG)), 1)
    sets = [one.of(query).items for one in models.fitted.values()]
    items = sets[0]
    for other in sets[1:]:
        items = items[np.isin(items, other)]
    ranker = lists.ranker(query, items, K)
    return None if ranker is None else Shown(K, ranker, items)


@dataclass(frozen=True)
class World:
    """One simulator: its problems by query and draw, and what today's ranker earns there."""

    name: str
    users: list[list[Users]]  # by query, by draw, of all results
    known: list[Ints]  # by query: the rows of the results that are known
    problems: list[list[RankingProblem]]  # by query, by draw, of these
    today: Floats  # (D, Q) of a search

    @property
    def best(self) -> Floats:
        """(D, Q) what a search of the best lists earns."""
        each = [
            [p.users.expected_reward(p.best[None], p.reward)[0] for p in of_query]
            for of_query in self.problems
        ]
        return np.array(each).T

    def order(self, K: int) -> tuple[str, float] | None:
        """The order of K positions that the users suggest, and what top down would lose.

        None where there is no such order, or where it makes little difference.
        """
        drawn = [one[0] for one in self.problems if one[0].positions == K]
        if any(p.position_weights() is None for p in drawn):
            return None
        if drawn[0].reward != "satisfaction" and any(chains(p.users) for p in drawn):
            return None
        order = common_order(drawn)
        lost, less = loss(drawn, "descending"), loss(drawn, order)
        return (order, lost) if lost > LITTLE and less < CLEARLY * lost else None


def chains(users: Users) -> bool:
    """Whether some users may leave after a click."""
    return any(isinstance(one, Chain) for one in classes_of(users)[1])


def world_of(
    models: FittedModels,
    name: str,
    queries: Sequence[Query],
    shown: Sequence[Shown],
    reward: str,
    known: float | None,
    draws: int,
) -> World:
    """The problems of a fitted model, with known results only."""
    one = models.fitted[name]
    drawn = one.some_draws(draws)
    world = World(name, [], [], [], np.zeros((len(drawn), len(queries))))
    for i, (q, now) in enumerate(zip(queries, shown, strict=True)):
        each = [of.of(q) for of in drawn]
        rows = known_rows(models.lists, q, each[0].items, known, now.K)
        order = models.base_order(name, q)
        place = np.arange(now.K) if order is None else place_of(order, rows)
        base = place[place >= 0][: now.K]
        world.users.append([model.users for model in each])
        world.known.append(rows)
        world.problems.append(
            [
                _problem(name, q, model.only(rows), base, d + 1, reward)
                for d, model in enumerate(each)
            ]
        )
        world.today[:, i] = [earns(model, now, reward) for model in each]
    return world


def _problem(
    name: str, query: Query, model: ClickModel, base: Ints, draw: int, reward: str
) -> RankingProblem:
    best = best_list(model, len(base), reward)
    return RankingProblem(
        name, str(query), model.users, best, base, draw=draw, reward=reward, gap=np.nan
    )


def best_list(model: ClickModel, K: int, reward: str) -> Ints:
    """The best list of K rows.

    Of users who may leave after a click, the results that earn most by themselves come first: what
    another order would earn rests on how many go on at positions that few users of a log reach.
    """
    if not chains(model.users):
        return model.best_rows(K, reward)
    alone = model.expected_reward(np.arange(model.L)[:, None], reward)
    return np.argsort(-alone, kind="stable")[:K]


def earns(model: ClickModel, now: Shown, reward: str) -> float:
    """What a search of today's ranker earns with these users."""
    rows = place_of(now.items[now.ranker.A], model.items)
    return float(now.ranker.p @ model.users.expected_reward(rows, reward))
