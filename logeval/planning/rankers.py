"""The two rankers of a plan, as lists of each query with their probabilities.

``logged`` shows what the log showed; ``best`` the list that the simulated users like best,
``best:PBM`` that of another fitted model; a file is a target table, as of ``replay estimate``; and
``TopRank@5000`` is what a policy shows after 5,000 searches of every query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from logeval.clicks.collection import FittedModels
from logeval.clicks.models.registry import model_names
from logeval.clicks.users.chain import Chain
from logeval.clicks.users.mixture import classes_of
from logeval.errors import LogevalError
from logeval.log.queries import Query
from logeval.policies.registry import parse_policies
from logeval.policies.setting import Setting
from logeval.replay.targets import read_target_table
from logeval.running.arrays import Floats, Ints, place_of, sum_by
from logeval.running.seeds import generator
from logeval.tracks.fitted import FittedQuery
from logeval.tracks.lists import ranking_problems
from logeval.tracks.ranking import RANKING

AFTER = re.compile(r"(?P<policy>.+)@(?P<steps>[0-9]{1,9})")
RUNS_AFTER = 20  # of a policy, whose last lists are equally likely


class Shown(NamedTuple):
    """What a ranker shows for a query, in rows of the click model."""

    A: Ints  # (n, K)
    p: Floats  # (n,)


def check_ranker(text: str) -> None:
    """Raise for what is no ranker."""
    kind, _, rest = text.partition(":")
    if text in ("logged", "best") or Path(text).is_file():
        return
    if kind == "best" and rest:
        model_names([rest])
    elif found := AFTER.fullmatch(text):
        parse_policies(found["policy"], track="ranking")
    else:
        raise LogevalError(
            f"ranker {text}: there is no such file; a ranker is logged, best, best:MODEL, a table "
            "(Parquet or CSV) or a policy after some steps, as TopRank@5000"
        )


def impressions(models: FittedModels, f: FittedQuery) -> Floats | None:
    """SERPs of the log that showed each item of a query, (L,); None without the log's lists."""
    lists = models.lists
    if lists is None:
        return None
    of = lists.queries.index(Query.of(f.query)) if Query.of(f.query) in lists.queries else -1
    mine = lists.query == of
    n, k = np.nonzero(np.arange(lists.items.shape[1]) < lists.length[mine][:, None])
    rows = place_of(lists.items[mine][n, k], f.model.items)
    return sum_by(rows[rows >= 0], lists.serps[mine][n][rows >= 0], len(f.model.items))


def best_of_known(f: FittedQuery, shown: Floats | None, least: int, metric: str) -> Ints:
    """The best list of the items that were shown so often, in rows; of all where these are few.

    Of users who may leave after a click, the items that earn most by themselves come first: what
    another order would earn rests on how many go on at positions that few users of a log reach.
    """
    keep = np.arange(f.model.L)
    if shown is not None:
        often = np.flatnonzero(shown >= least)
        keep = often if len(often) >= f.K else np.sort(np.argsort(-shown, kind="stable")[: f.K])
    own = f.model.only(keep)
    if any(isinstance(users, Chain) for users in classes_of(own.users)[1]):
        alone = own.expected_reward(np.arange(len(keep))[:, None], metric)
        return keep[np.argsort(-alone, kind="stable")[: f.K]]
    best: Ints = keep[own.best_rows(f.K, metric)]
    return best


def shown_by(
    text: str,
    models: FittedModels,
    queries: Sequence[FittedQuery],
    metric: str,
    seed: int,
    least: int = 0,
) -> list[Shown | None]:
    """What a ranker shows for each query; None where it has no list of its items.

    Best lists are of items that the log showed at least ``least`` times.
    """
    kind, _, rest = text.partition(":")
    if text == "logged":
        if all(f.ranker is None for f in queries):
            raise LogevalError(
                "logged: these models have no lists of a log beside them; fit them with "
                "`logeval fit-models`, or name another ranker"
            )
        return [None if f.ranker is None else Shown(f.ranker.A, f.ranker.p) for f in queries]
    if text == "best":
        return [_one(best_of_known(f, impressions(models, f), least, metric)) for f in queries]
    if Path(text).is_file():
        return _of_table(Path(text), queries)
    if kind == "best":
        other = models.named(rest)
        found: list[Shown | None] = []
        for f in queries:
            query = Query.of(f.query)
            own = other.of(query) if query in other.index else None
            if own is None or min(own.L, own.K) < f.K:
                found.append(None)
                continue
            theirs = f._replace(model=own)
            use = metric if metric in own.rewards else own.rewards[0]
            rows = best_of_known(theirs, impressions(models, theirs), least, use)
            found.append(_known(own.items[rows][None], np.ones(1), f))
        return found
    after = AFTER.fullmatch(text)
    assert after is not None
    return _after(after["policy"], int(after["steps"]), queries, metric, seed)


def _one(A: Ints) -> Shown:
    return Shown(np.asarray(A)[None], np.ones(1))


def _known(ids: Ints, p: Floats, f: FittedQuery) -> Shown | None:
    """Lists of ids; None if the model does not know all their items."""
    rows = place_of(ids, f.model.items)
    return Shown(rows, p) if (rows >= 0).all() else None


def _of_table(path: Path, queries: Sequence[FittedQuery]) -> list[Shown | None]:
    table = read_target_table(path)
    if table.attrs.get("marginals"):
        raise LogevalError(
            f"{path}: it gives probabilities per rank, and a plan shows whole lists; add a column "
            "`list` that numbers them"
        )
    names = {str(query): query for query in dict.fromkeys(table["query"])}
    found: list[Shown | None] = []
    for f in queries:
        mine = table[table["query"].map(str).isin([f.query, f.query.partition("@")[0]])]
        lists = [
            (rows.sort_values("rank")["item"].to_numpy()[: f.K], rows["probability"].iloc[0])
            for _, rows in mine.groupby("list", sort=False)
            if len(rows) >= f.K
        ]
        if not lists:
            found.append(None)
            continue
        p = np.array([share for _, share in lists])
        found.append(_known(np.stack([ids for ids, _ in lists]), p / p.sum(), f))
    if all(one is None for one in found):
        few = ", ".join(list(names)[:3])
        raise LogevalError(
            f"{path}: has no list of {queries[0].K} known items for a query of the models; it has "
            f"queries {few}; check the ids, or lower positions"
        )
    return found


def _after(
    policy: str, steps: int, queries: Sequence[FittedQuery], metric: str, seed: int
) -> list[Shown | None]:
    """The lists of RUNS_AFTER runs of a policy after some searches of each query."""
    (spec,) = parse_policies(policy, track="ranking")
    problems = ranking_problems(queries, metric)
    replicas = [(q, run) for q in range(len(problems)) for run in range(RUNS_AFTER)]
    environment = RANKING.environment(problems, replicas, seed)
    own = [generator(seed, "plan", spec.name, q, run) for q, run in replicas]
    learner = spec.make(Setting.of(environment, steps + 1, own))
    for t in range(1, steps + 1):
        A = learner.recommend(t)
        learner.update(t, A, environment.step(A))
    A = environment.items(learner.recommend(steps + 1)).reshape(len(problems), RUNS_AFTER, -1)  # type: ignore[attr-defined]
    return [Shown(lists, np.full(RUNS_AFTER, 1.0 / RUNS_AFTER)) for lists in A]
