"""Users with tastes: the logit of an item's attraction has taste * (p_u . q_j) added.

p_u ~ N(0, I / F) are the F factors of user u, q_j ~ N(0, I) those of item j, so that p_u . q_j has
variance 1 over users and items: a taste of 1 moves the odds of a click by a factor of e.

The world behind a synthetic log: queries, their items, and the true click model.

Queries are Zipf distributed. A query has L items in the order of a production ranking, which
is good but not perfect: attraction falls with the rank, with noise per item, so some of the
best items stand low. The mean attraction and termination by rank are calibrated so that the
log has the CTR by rank and the number of clicks per SERP of real Yandex SERPs
(docs/synthetic.md shows the comparison).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import expit, logit, ndtri

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.classes import number_of
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.fitted import FittedClasses, FittedModel
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.registry import kind_of
from logeval.errors import LogevalError, unknown_names
from logeval.log.queries import Query
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.running.names import format_call, parse_call
from logeval.storage import schemas, tables


@dataclass(frozen=True)
class Tastes:
    """The factors of all users and items of a world."""

    taste: float
    users: Floats  # (users, F); user u has user_id u
    items: Floats  # (items, F); item j has item_id j + 1

    def attraction(self, w: Floats, user: Ints, items: Ints) -> Floats:
        """The attraction of lists (S, K) of items, each for its user (S,)."""
        agreement = np.einsum("sf,skf->sk", self.users[user], self.items[items])
        shifted: Floats = expit(logit(w) + self.taste * agreement)
        return shifted

    def write(self, folder: Path) -> None:
        """Write the factors beside the true models."""
        n_users, n_items = len(self.users), len(self.items)
        columns: dict[str, Any] = {
            "kind": np.repeat(["user", "item"], [n_users, n_items]),
            "id": np.concatenate([np.arange(n_users), np.arange(1, n_items + 1)]),
            "factors": tables.list_column(np.concatenate([self.users, self.items])),
        }
        tables.write_parquet(pa.table(columns).cast(schemas.FACTORS), folder / "factors.parquet")


def make_tastes(taste: float, factors: int, users: int, items: int, seed: int) -> Tastes | None:
    """The tastes of a world; None without any."""
    if not taste:
        return None
    rng = seeds.generator(seed, "tastes")
    of_users = rng.standard_normal((users, factors)) / np.sqrt(factors)
    return Tastes(taste, of_users, rng.standard_normal((items, factors)))


def read_tastes(truth: Path | str) -> tuple[float, dict[int, Floats], dict[int, Floats]] | None:
    """The taste, and the factors by user_id and by item_id, of a truth folder that has some."""
    if not tables.there_is(truth) or not tables.file_of(tables.read_manifest(truth), "factors"):
        return None
    taste = float(tables.read_manifest(truth)["arguments"]["taste"])
    by_kind: dict[str, dict[int, Floats]] = {"user": {}, "item": {}}
    for row in tables.read_table(Path(truth), "factors").to_pylist():
        by_kind[row["kind"]][row["id"]] = np.array(row["factors"])
    return taste, by_kind["user"], by_kind["item"]


K = 10
MIN_ITEMS, MAX_ITEMS = 12, 800
ZIPF_EXPONENT = 1.0

# Calibrated: attraction at production ranks 1..10 and below, termination, and their spread
# over queries and items, on the logit scale.
ATTRACTION = np.array([0.177, 0.262, 0.180, 0.208, 0.121, 0.081, 0.075, 0.037, 0.056, 0.051])
ATTRACTION_BELOW = 0.041
TERMINATION = 0.462
ITEM_SPREAD, QUERY_SPREAD, TERMINATION_SPREAD = 0.8, 2.04, 2.88
# Examination by position of the PBM, from the mean of PBMs fitted on real Yandex logs.
EXAMINATION = np.array([1, 0.960, 0.761, 0.592, 0.457, 0.386, 0.331, 0.284, 0.262, 0.267])
SATISFACTION, CONTINUATION = 0.5, 0.95  # of SDBN and DBN
TAU1, TAU2, TAU3 = 0.95, 0.8, 0.4  # of the CCM
# One more click of the choice model, after 0, 1, 2 and more; how it responds to what a list offers.
MORE, DEPTH, RESPONSE = np.array([0.85, 0.6, 0.75]), 0.6, 0.6

# Classes of users: by how much the first and the last differ from the middle, on the logit scale,
# the spread of their likings, and how alike queries are in the shares of the classes.
CLASS_ATTRACTION, CLASS_LEAVING, CLASS_SPREAD, USERS_ALIKE = 2.0, 1.5, 0.4, 30.0

MODELS_OFFERED = ("CM", "DCM", "SDBN", "DBN", "CCM", "PBM", "UBM", "Choice")


@dataclass(frozen=True)
class World:
    """Q queries; query q has items first_item[q] .. first_item[q + 1] - 1, best ranked first.

    ``parameters`` are those of the model, by the names it gives them: flat over items, or (Q, ...).
    With classes of users, ``classes`` has those of each, and ``share`` (Q, C) how many users each
    class has.
    """

    model: str  # DCM, or DCM(classes=3)
    popularity: Floats  # (Q,) cumulative probability
    first_item: Ints  # (Q + 1,)
    parameters: dict[str, Floats]
    regions: int  # query q is query_id q // regions + 1 in region q % regions; 0: no regions
    has_tests: bool  # whether the log has test records
    tastes: Tastes | None = None
    classes: tuple[dict[str, Floats], ...] = ()
    share: Floats | None = None
    slope: Floats | None = None  # of each item's attraction, from the first day to the last, logit

    def attraction(self, day: float) -> Floats:
        """Of each item on a day, from 0 (the first) to 1 (the last)."""
        w = self.parameters["w"]
        return w if self.slope is None else expit(logit(w) + self.slope * (day - 0.5))

    @property
    def kind(self) -> type[ClickModel]:
        """The click model."""
        return kind_of(self.model)

    def query_keys(self) -> tuple[Ints, Ints]:
        """query_id and region_id of each query."""
        q = np.arange(len(self.popularity))
        return q // max(self.regions, 1) + 1, q % max(self.regions, 1)

    def models(self) -> FittedModels:
        """The true models."""
        if self.share is None:
            return FittedModels({self.model: self._fitted(self.parameters)})
        parts = tuple(self._fitted(parameters) for parameters in self.classes)
        first, share = parts[0], ParameterEstimate.known(self.share)
        fitted = FittedClasses(
            self.model, first.method, first.scope, first.queries, first.positions, first.serps,
            first.item_ids, first.offsets, {"share": share}, {}, {}, first.base, parts=parts,
        )  # fmt: skip
        return FittedModels({self.model: fitted})

    def _fitted(self, parameters: dict[str, Floats]) -> FittedModel:
        Q = len(self.popularity)
        query_id, region_id = self.query_keys()
        regions = region_id.tolist() if self.regions else [None] * Q
        return FittedModel(
            model=self.model,
            method="truth",
            scope="per-query",
            queries=[Query(q, r) for q, r in zip(query_id.tolist(), regions, strict=True)],
            positions=np.full(Q, K),
            serps=np.full(Q, np.nan),
            item_ids=np.arange(1, self.first_item[-1] + 1),
            offsets=self.first_item,
            estimates={n: ParameterEstimate.known(x) for n, x in parameters.items()},
            unseen_items={
                p.field: np.full(Q, parameters[p.field].mean())
                for p in self.kind.PARAMETERS
                if p.kind == "item"
            },
            unseen_query={
                p.field: float(parameters[p.field].mean())
                for p in self.kind.PARAMETERS
                if p.kind == "item"
            },
            base=list(1 + self.first_item[:-1, None] + np.arange(K)),  # the production ranking
        )


def model_name(model: str) -> str:
    """The model of that name that a log can be drawn from, as it prints; case does not matter."""
    base, given = parse_call(model)
    names = {name.lower(): name for name in MODELS_OFFERED}
    if base.lower() not in names:
        raise unknown_names("model", [base], MODELS_OFFERED)
    if strange := [key for key in given if key != "classes"]:
        raise unknown_names(f"setting of {names[base.lower()]}", strange, ["classes"])
    number = number_of(given.get("classes", 1))
    if not isinstance(number, int):
        raise LogevalError("classes=auto: a log is drawn from a number of classes, as classes=3")
    return format_call(names[base.lower()], {"classes": number} if number > 1 else {})


def make_world(
    model: str, queries: int, seed: int, regions: int = 0, tests: bool = True, drift: float = 0.0
) -> World:
    """A world with ``queries`` queries, whose clicks come from ``model``.

    With a ``drift`` the attraction of every item rises or falls over the days of the log, by so
    much (the standard deviation) on the logit scale; its parameters are those of the middle.
    """
    name = model_name(model)
    base, given = parse_call(name)
    rng = seeds.generator(seed, "world")
    weights = 1.0 / np.arange(1, queries + 1) ** ZIPF_EXPONENT
    effects = _query_effects(queries)
    L = np.exp(np.log(60) + 0.9 * effects[:, 2]).astype(np.int64)
    L = np.clip(L, MIN_ITEMS, MAX_ITEMS)
    first_item = np.concatenate([[0], np.cumsum(L)])
    rank = np.arange(first_item[-1]) - np.repeat(first_item[:-1], L)
    mean = np.where(rank < K, ATTRACTION[np.minimum(rank, K - 1)], ATTRACTION_BELOW)
    noise = ITEM_SPREAD * rng.standard_normal(len(rank))
    noise += np.repeat(QUERY_SPREAD * effects[:, 0], L)
    parameters = {"w": expit(logit(mean) + noise)}
    parameters |= _other_parameters(base, effects, len(rank), rng)
    popularity = np.cumsum(weights / weights.sum())
    world = World(name, popularity, first_item, parameters, regions, tests)
    if drift:
        slope = drift * seeds.generator(seed, "world", "drift").standard_normal(len(rank))
        world = replace(world, slope=slope)
    C = int(given.get("classes", 1))
    return world if C == 1 else _with_classes(world, C, seeds.generator(seed, "world", "classes"))


def _with_classes(world: World, C: int, rng: np.random.Generator) -> World:
    """Users in C classes: from those who hardly click to those who open much and stay.

    They differ in how attractive results are to them, the later ones leave less after a click, and
    every class has likings of its own.
    """
    place = np.linspace(-1.0, 1.0, C)
    share = rng.dirichlet(USERS_ALIKE * np.linspace(1.5, 0.5, C) / C, len(world.popularity))
    classes = []
    for x in place:
        own = dict(world.parameters)
        liking = CLASS_SPREAD * rng.standard_normal(len(own["w"]))
        own["w"] = expit(logit(own["w"]) + CLASS_ATTRACTION * x + liking)
        for field, sign in (("v", -1.0), ("s", -1.0), ("more", 1.0)):  # leaving, or going on
            if field in own:
                own[field] = expit(logit(own[field]) + sign * CLASS_LEAVING * x)
        classes.append(own)
    return replace(world, classes=tuple(classes), share=share)


def _other_parameters(
    model: str, effects: Floats, n_items: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """The parameters of a model other than its attraction."""
    Q = len(effects)
    if model == "DCM":
        own = rng.normal(0, 0.2, (Q, K))
        level = logit(TERMINATION) + TERMINATION_SPREAD * effects[:, 1:2]
        return {"v": expit(level + own)}
    if model == "PBM":
        return {"e": EXAMINATION ** np.exp(0.3 * effects[:, 1:2])}
    if model == "UBM":
        distance = np.arange(K)[:, None] + 1 - np.arange(K + 1)  # to the previous click
        e = np.maximum(0.9 * 0.8 ** np.maximum(distance - 1, 0), 0.1)
        e[:, 0] = EXAMINATION
        return {"e": np.tile(np.where(distance > 0, e, 0.0), (Q, 1, 1))}
    if model == "Choice":
        distance = np.arange(K)[:, None] + 1 - np.arange(K + 1)
        b = np.where(distance > 0, 0.8 ** np.maximum(distance - 1, 0), 0.0)
        b[:, 0] = EXAMINATION
        s = expit(ITEM_SPREAD * rng.standard_normal(n_items))
        more = np.pad(MORE, (0, K - len(MORE)), mode="edge")
        of_queries = {"b": b, "more": more, "depth": np.full(K, DEPTH)}
        found = {name: np.tile(x, (Q, *[1] * x.ndim)) for name, x in of_queries.items()}
        return {"s": s, "response": np.full(Q, RESPONSE)} | found
    if model in ("SDBN", "DBN"):
        s = expit(logit(SATISFACTION) + ITEM_SPREAD * rng.standard_normal(n_items))
        return {"s": s} | ({"gamma": np.full(Q, CONTINUATION)} if model == "DBN" else {})
    if model == "CCM":
        return {f"tau{i}": np.full(Q, tau) for i, tau in enumerate((TAU1, TAU2, TAU3), 1)}
    return {}


def _query_effects(queries: int) -> Floats:
    """Normal effects of the queries, (Q, 3), the same for every seed.

    They are quasi-random, so that the few queries that make up most of a Zipf log are not all
    alike, and the calibration holds for every seed.
    """
    points = [radical_inverse(queries + 1, base) for base in (2, 3, 5)]
    return ndtri(np.stack(points, axis=1)[1:])  # the first point is the corner (0, 0, 0)


def radical_inverse(n: int, base: int) -> Floats:
    """The first ``n`` points of Halton's sequence: digits of 0, 1, ... behind the point, reversed.

    As in ``scipy.stats.qmc``, whose import takes most of a second in every command.
    """
    digits, scale, points = np.arange(n), 1.0, np.zeros(n)
    while digits.any():
        scale /= base
        points += digits % base * scale
        digits //= base
    return points
