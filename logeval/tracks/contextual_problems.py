"""Problems of the contextual track: fitted queries with features, and the synthetic one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from logeval.errors import LogevalError
from logeval.features.contexts import ITEM
from logeval.features.table import HALF, Features
from logeval.policies.names import format_call, parse_call
from logeval.running.arrays import Floats
from logeval.synthetic.tastes import read_tastes
from logeval.tracks.contextual_worlds import (
    Fixed,
    Fresh,
    Items,
    People,
    Query,
    Rngs,
    Users,
    World,
    relabelled,
)
from logeval.tracks.fitted import FittedQuery, refuse_short

SYNTHETIC = "synthetic"
BLOCK = 500  # rounds before the next query's turn
USABLE = ("DCM", "CM")  # click models whose best list follows from sorting
Tastes = tuple[float, dict[int, Floats], dict[int, Floats]]  # of users and of items, by id
WORLDS: dict[str, type[Fixed] | type[Fresh]] = {"fixed": Fixed, "fresh": Fresh}


@dataclass(frozen=True)
class ContextualProblem:
    """Queries in turn, or a synthetic problem; ``world`` makes the rounds of its runs."""

    simulator: str
    query: str
    K: int
    world: Callable[[Rngs, np.random.Generator], World]  # of each run, and for the rows of X
    identity: tuple[bytes, ...] = field(repr=False, default=())  # what the checksum is of
    track: str = "contextual"
    reward: str = "satisfaction"

    @property
    def positions(self) -> int:
        """Number of positions."""
        return self.K

    def checksum(self) -> str:
        """Equal for equal problems."""
        digest = hashlib.sha256(f"{self.simulator} {self.query} {self.K}".encode())
        for part in self.identity:
            digest.update(part)
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Synthetic:
    """One query whose attraction is mu(theta . x), contexts fixed or fresh."""

    L: int
    K: int
    d: int
    norm: float
    contexts: str

    def __call__(self, rngs: Rngs, rows: np.random.Generator) -> World:
        """The rounds of the given number of runs; contexts are random and need no other order."""
        return WORLDS[self.contexts](self.L, self.K, self.d, self.norm, rngs)


@dataclass(frozen=True)
class InTurn:
    """Queries in turn, with or without users."""

    queries: tuple[Query, ...]
    people: People | None
    block: int

    def __call__(self, rngs: Rngs, rows: np.random.Generator) -> World:
        """The rounds of the given number of runs."""
        queries = [relabelled(query, rows.permutation(len(query.w_bar))) for query in self.queries]
        if self.people is None:
            return Items(queries, self.block, rngs)
        return Users(queries, self.people, self.block, rngs)


def synthetic_problem(
    L: int, K: int, d: int, norm: float = 1.0, contexts: str = "fresh"
) -> ContextualProblem:
    """theta with the given norm, contexts uniform on the sphere, v: K uniforms, sorted."""
    values = {"L": L, "K": K, "d": d, "norm": norm, "contexts": contexts}
    name = format_call("contextual", values)
    if not (1 <= K <= L and d >= 1 and norm >= 0):
        raise LogevalError(f"{name}: 1 <= K <= L, d >= 1 and norm >= 0 must hold")
    if contexts not in WORLDS:
        raise LogevalError(f"{name}: contexts must be fixed or fresh")
    return ContextualProblem(name, SYNTHETIC, K, Synthetic(L, K, d, norm, contexts))


def parse_contextual(text: str, reward: str | None = None) -> ContextualProblem:
    """The synthetic problem from its name, contextual(L=100,K=5,d=20,norm=1,contexts=fixed)."""
    if reward not in (None, "satisfaction"):
        raise LogevalError(f"reward={reward}: the contextual track counts satisfaction")
    given = {key.lower(): value for key, value in parse_call(text)[1].items()}
    kinds = {"L": int, "K": int, "d": int, "norm": float, "contexts": str}
    unknown = [key for key in given if key not in {k.lower() for k in kinds}]
    if unknown:
        raise LogevalError(f"{text}: unknown {unknown[0]}; it has {', '.join(kinds)}")
    values: dict[str, Any] = {}
    for key, kind in kinds.items():
        if key.lower() not in given:
            if key in ("norm", "contexts"):
                continue
            raise LogevalError(f"{text}: {key} is missing; it needs {', '.join(kinds)}")
        try:
            values[key] = kind(given[key.lower()])
        except ValueError:
            raise LogevalError(f"{text}: {key}={given[key.lower()]} is not a number") from None
    return synthetic_problem(**values)


def fitted_problems(
    fitted: Sequence[FittedQuery],
    features: Features,
    block: int = BLOCK,
    truth: Path | str | None = None,
) -> list[ContextualProblem]:
    """The queries of each click model in turn, restricted to the items that have features.

    ``truth`` may be the folder of the true models of a generated log; tastes that are there make
    the attraction the user's own.
    """
    if block < 1:
        raise LogevalError(f"block={block}: a block has at least one round")
    refuse_short(fitted)
    names = list(dict.fromkeys(f.model.name for f in fitted))
    usable = [name for name in names if name in USABLE]
    if not usable:
        raise LogevalError(
            f"the contextual track needs a DCM (or CM), not a {names[0]}; fit one with "
            "`logeval fit-models --model dcm`"
        )
    tastes = read_tastes(truth) if truth is not None else None
    return [
        _in_turn([f for f in fitted if f.model.name == name], features, block, tastes)
        for name in usable
    ]


def _in_turn(
    fitted: list[FittedQuery], features: Features, block: int, tastes: Tastes | None
) -> ContextualProblem:
    by_query = {f.query: f for f in fitted}
    if missing := [q for q in features.queries if q not in by_query]:
        raise LogevalError(
            f"the features are of query {missing[0]}, which the models do not have; fit it, or "
            "make features of the queries that are fitted"
        )
    of_items = tastes[2] if tastes else {}
    queries = [_query(by_query[q], features, of_items) for q in features.queries]
    with_users = tastes is not None or features.context != ITEM
    people = _people(features, tastes) if with_users else None
    arrays = [x for q in queries for x in vars(q).values() if isinstance(x, np.ndarray)]
    about = f"{block} {features.context} {features.r}"
    if people is not None:
        arrays += [people.vectors, people.tastes]
        about += f" {people.beta}"
    return ContextualProblem(
        fitted[0].model.name,
        "+".join(features.queries),
        fitted[0].K,
        InTurn(tuple(queries), people, block),
        (about.encode(), *(np.ascontiguousarray(x).tobytes() for x in arrays)),
    )


def _query(fitted: FittedQuery, features: Features, of_items: dict[int, Floats]) -> Query:
    name, model, K, _ = fitted
    ids, vectors = features.of_query(name)
    index = {item: i for i, item in enumerate(model.items.tolist())}
    known = [i for i, item in enumerate(ids.tolist()) if item in index]
    if len(known) < K:
        raise LogevalError(
            f"query {name}: only {len(known)} of its items have features, and a list needs {K}; "
            "take more items into the features, or make them from the log of the models"
        )
    at = np.array([index[item] for item in ids[known].tolist()])
    F = len(next(iter(of_items.values()))) if of_items else 0
    if absent := [i for i in ids[known].tolist() if of_items and i not in of_items]:
        raise LogevalError(f"query {name}: item {absent[0]} has no true factors")
    factors = [of_items[i] for i in ids[known].tolist()] if of_items else []
    return Query(
        name,
        model.users.w[at].astype(float),
        np.asarray(model.users.sat_position[:K], dtype=float),
        vectors[known],
        np.array(factors).reshape(len(known), F),
    )


def _people(features: Features, tastes: Tastes | None) -> People:
    ids, vectors = features.of_users()
    if not len(ids):
        raise LogevalError("no user of the features asked any of their queries; make them again")
    if tastes is None:
        return People(features.context, features.r, vectors, np.empty((len(ids), 0)), 0.0)
    taste, of_users, _ = tastes
    if absent := [u for u in ids.tolist() if u not in of_users]:
        raise LogevalError(f"user {absent[0]} of the features has no true factors")
    return People(
        features.context, features.r, vectors, np.array([of_users[u] for u in ids.tolist()]), taste
    )


def refuse_leaks(features: Features, models: dict[str, Any], same_log: bool) -> str | None:
    """Refuse features that do not fit the models, or share sessions with them.

    ``models`` is the manifest of the models. Returns what the report must say, if anything.
    """
    if models.get("stage") != "fit-models":  # a truth, or models from elsewhere: no session of ours
        return None
    if features.manifest["inputs"] != models["inputs"]:
        raise LogevalError(
            "the features were made from another log than the models; make them from the same one"
        )
    mine, theirs = features.manifest["arguments"], models["arguments"]
    apart = (
        not mine["same_log"]
        and theirs["holdout"] is not None
        and theirs["holdout"] == str(HALF)
        and theirs["seed"] == mine["seed"]
    )
    if apart:
        return None
    if not same_log:
        raise LogevalError(
            "the features and the models share sessions, so the features know the simulator; fit "
            f"the models with holdout={HALF} and seed={mine['seed']} and make the features without "
            "same_log, or allow it with same_log"
        )
    return "The features and the simulator share sessions: regret is too low by what leaks."
