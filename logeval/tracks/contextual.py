"""Problems of the contextual track: fitted queries with features, and the synthetic one.

The contextual track: lists for items that have features (gl-cdcm).

A problem is a set of queries that take turns in blocks of rounds, or a synthetic one. Users are
those of a DCM: the reward of a list is 1 - prod_k (1 - v(k) w(a_k)), and the best list has the
k-th most attractive item at the k-th most terminating position.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from logeval.clicks.users import chain
from logeval.errors import LogevalError
from logeval.facts import Fact
from logeval.features.table import HALF, Features, read_features
from logeval.features.vectors import ITEM
from logeval.policies.setting import Policy, Round
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import best_first_rows, njit_views
from logeval.running.names import format_call
from logeval.storage.tables import Manifest
from logeval.synthetic.world import read_tastes
from logeval.tracks.fitted import Fitted, FittedQuery, with_lists
from logeval.tracks.keys import numbers
from logeval.tracks.meters import Columns, Meter, Regret
from logeval.tracks.track import SYNTHETIC, Problem, Replicas, Reward, Simulation, Track
from logeval.tracks.worlds import (
    Fixed,
    Fresh,
    GroundSet,
    ItemsInTurn,
    People,
    Rngs,
    UsersInTurn,
    World,
)

BLOCK = 500  # rounds before the next query's turn
USABLE = ("DCM", "CM")  # click models whose best list follows from sorting
Tastes = tuple[float, dict[int, Floats], dict[int, Floats]]  # of users and of items, by id
WORLDS: dict[str, type[Fixed] | type[Fresh]] = {"fixed": Fixed, "fresh": Fresh}


@dataclass(frozen=True)
class ContextualProblem(Problem):
    """Queries in turn, or a synthetic problem; ``world`` makes the rounds of its runs."""

    track = "contextual"

    K: int
    world: Callable[[Rngs, np.random.Generator], World]  # of each run, and for the rows of X
    identity: tuple[bytes, ...] = field(repr=False, default=())  # what the checksum is of

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


def contextual(
    L: int, K: int, d: int, norm: float = 1.0, contexts: str = "fresh"
) -> ContextualProblem:
    """theta with the given norm, contexts uniform on the sphere, v: K uniforms, sorted."""
    values = {"L": L, "K": K, "d": d, "norm": norm, "contexts": contexts}
    name = format_call("contextual", values)
    if not (1 <= K <= L and d >= 1 and norm >= 0):
        raise LogevalError(f"{name}: 1 <= K <= L, d >= 1 and norm >= 0 must hold")
    if contexts not in WORLDS:
        raise LogevalError(f"{name}: contexts must be fixed or fresh")
    return ContextualProblem(name, SYNTHETIC, K, partial(WORLDS[contexts], L, K, d, norm))


def parse_contextual(text: str, reward: str | None = None) -> ContextualProblem:
    """The synthetic problem from its name, contextual(L=100,K=5,d=20,norm=1,contexts=fixed)."""
    kinds = {"L": int, "K": int, "d": int, "norm": float, "contexts": str}
    return contextual(**numbers(text, kinds, optional=("norm", "contexts")))


def sorted_models(fitted: Sequence[FittedQuery]) -> list[FittedQuery]:
    """The click models whose best list follows from sorting."""
    usable = [f for f in with_lists(fitted) if f.model.name in USABLE]
    if not usable:
        raise LogevalError(
            f"the contextual track needs a DCM (or CM), not a {fitted[0].model.name}; fit one with "
            "`logeval fit-models --model dcm`"
        )
    return usable


def contextual_problems(fitted: Fitted) -> list[ContextualProblem]:
    """The queries of each click model in turn, restricted to the items that have features.

    Where the models are the true ones of a generated log with tastes, the attraction is the
    user's own.
    """
    features = fitted.features
    if features is None:
        raise LogevalError(
            "the contextual track needs features of the items; make some with `logeval features` "
            "and give their folder as features"
        )
    features = features if isinstance(features, Features) else read_features(features)
    remarks = refuse_leaks(features, fitted.manifest, fitted.same_log)
    usable = sorted_models(fitted.queries)
    tastes = read_tastes(fitted.folder) if fitted.folder is not None else None
    block = BLOCK if fitted.block is None else fitted.block
    return [
        _in_turn({f.query: f for f in usable if f.simulator == name}, features, block, tastes,
                 remarks)
        for name in dict.fromkeys(f.simulator for f in usable)
    ]  # fmt: skip


def in_turn(
    queries: Sequence[GroundSet],
    people: People | None,
    block: int,
    rngs: Rngs,
    rows: np.random.Generator,
) -> World:
    """The rounds of queries in turn, with or without users."""
    queries = [query.relabelled(rows.permutation(len(query.w_bar))) for query in queries]
    if people is None:
        return ItemsInTurn(queries, block, rngs)
    return UsersInTurn(queries, people, block, rngs)


def _in_turn(
    fitted: dict[str, FittedQuery],
    features: Features,
    block: int,
    tastes: Tastes | None,
    remarks: tuple[Fact, ...],
) -> ContextualProblem:
    if missing := [q for q in features.queries if q not in fitted]:
        raise LogevalError(
            f"the features are of query {missing[0]}, which the models do not have; fit it, or "
            "make features of the queries that are fitted"
        )
    of_items = tastes[2] if tastes else {}
    queries = [_ground_set(fitted[q], features, of_items) for q in features.queries]
    with_users = tastes is not None or features.context != ITEM
    people = _people(features, tastes) if with_users else None
    arrays = [x for query in queries for x in vars(query).values()]
    about = f"{block} {features.context} {features.r}"
    if people is not None:
        arrays += [people.vectors, people.tastes]
        about += f" {people.beta}"
    first = next(iter(fitted.values()))
    return ContextualProblem(
        first.simulator,
        "+".join(features.queries),
        first.K,
        partial(in_turn, queries, people, block),
        (about.encode(), *(np.ascontiguousarray(x).tobytes() for x in arrays)),
        remarks=remarks,
    )


def _ground_set(fitted: FittedQuery, features: Features, of_items: dict[int, Floats]) -> GroundSet:
    name, model, K = fitted.query, fitted.model, fitted.K
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
    return GroundSet(
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


def refuse_leaks(features: Features, models: Manifest, same_log: bool) -> tuple[Fact, ...]:
    """Refuse features that do not fit the models, or share sessions with them.

    ``models`` is the manifest of the models. Returns what the report must say.
    """
    if models.get("stage") != "fit-models":  # a truth, or models from elsewhere: no session of ours
        return ()
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
        return ()
    if not same_log:
        raise LogevalError(
            "the features and the models share sessions, so the features know the simulator; fit "
            f"the models with holdout={HALF} and seed={mine['seed']} and make the features without "
            "same_log, or allow it with same_log"
        )
    return (Fact("features-leak", level="caution"),)


@njit_views
def step_rows(A, u, w, v, w_k, stay_k, clicks):
    """Clicks of one user per replica."""
    for r in range(A.shape[0]):
        for k in range(A.shape[1]):
            w_k[k], stay_k[k] = w[r, A[r, k]], 1.0 - v[r, k]
        chain.sample_one(w_k, stay_k, 1.0, u[r], clicks[r])


@njit_views
def reward_rows(A, w, v, out):
    """1 - prod_k (1 - v(k) w(a_k))."""
    for r in range(A.shape[0]):
        none = 1.0
        for k in range(A.shape[1]):
            none *= 1.0 - v[r, k] * w[r, A[r, k]]
        out[r] = 1.0 - none


class ContextualEnvironment(Simulation):
    """R runs of a problem; all policies meet the same contexts and users.

    What a round brings is made when a policy first asks for it, or when the lists are shown, and
    stays until the next round. It is the capability ``contexts`` itself.
    """

    def __init__(
        self, problems: Sequence[ContextualProblem], replicas: Replicas, seed: int
    ) -> None:
        (problem,) = problems
        super().__init__(problems, replicas, seed, clicks=problem.K)
        R, self.K = len(replicas), problem.K
        # all runs share the rows of X, so the random order of these depends on no run
        rows = seeds.generator(seed, "labels", "contextual", problem.simulator)
        self.world = world = problem.world(self.generators("contexts"), rows)
        self.d, self.M, self.arms = world.d, world.M, world.arms
        self.queries, self.widest, self.repeat = world.queries, world.widest, world.repeat
        self.limits = np.full((R, self.K), world.widest)
        self.best = np.zeros((R, self.K), dtype=np.int64)
        self.best_reward = np.zeros(R)
        self._top = np.empty(self.K, dtype=np.int64)
        self._w_k, self._stay_k = np.empty(self.K), np.empty(self.K)
        self._round = 0
        self.now: Round
        self.w: Floats
        self.v: Floats
        self.offers = {"contexts": self, "best": self.best, "common": self.common}

    def at(self, t: int) -> Round:
        """Round t: the present one, or the next."""
        if t == self._round:
            return self.now
        self.now, self.w, self.v, new = self.world.start(t)
        self._round = t
        if new:
            self.limits[:] = self.w.shape[1]
            best_first_rows(self.w, self.w, self.now.order, self._top, self.best)
            reward_rows(self.best, self.w, self.v, self.best_reward)
        return self.now

    def common(self) -> Floats:
        """The mean attraction over all users of the items of the present round, (R, L)."""
        return self.world.common(self.now, self.w)

    def _click(self, A: Ints, u: Floats) -> None:
        self.at(self._t)
        step_rows(A, u, self.w, self.v, self._w_k, self._stay_k, self._clicks)

    def _earn(self, A: Ints) -> None:
        reward_rows(A, self.w, self.v, self._reward)


class RegretInTurn(Regret):
    """The regret where the best list, and so its reward, changes from round to round."""

    def columns(self, t: int) -> Columns:
        """Those of ``Regret``; the optimal reward is what was earned and what was missed."""
        own = super().columns(t)
        return own | {"optimal_reward": own["regret"] + own["reward"]}


@runtime_checkable
class Estimating(Protocol):
    """A policy that estimates theta."""

    @property
    def theta(self) -> Floats:
        """(R, d)."""


class CosineDistance(Meter):
    """1 - theta_hat . theta / (|theta_hat| |theta|) (gl-cdcm, section 4.1); 1 before any click."""

    @classmethod
    def fits(cls, environment: ContextualEnvironment, policy: Policy) -> bool:
        """Whether there is a truth, and an estimate of it."""
        return environment.world.theta is not None and isinstance(policy, Estimating)

    def columns(self, t: int) -> Columns:
        """The distance."""
        estimate, truth = self.policy.theta, self.environment.world.theta
        length = np.linalg.norm(estimate, axis=1) * np.linalg.norm(truth, axis=1)
        product = (estimate * truth).sum(axis=1)
        cosine = np.divide(product, length, out=np.zeros(len(length)), where=length > 0.0)
        return {"cosine_distance": 1.0 - cosine}


CONTEXTUAL = Track(
    name="contextual",
    rewards=(Reward("list", "the list", "regret", "optimal_reward", "-"),),
    meters=(RegretInTurn, CosineDistance),
    environment=ContextualEnvironment,
    problems=contextual_problems,
    synthetic={"contextual": parse_contextual},
    features=True,
    counts=("satisfaction",),
)
