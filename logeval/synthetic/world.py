"""The world behind a synthetic log: queries, their items, and the true click model.

Queries are Zipf distributed. A query has L items in the order of a production ranking, which
is good but not perfect: attraction falls with the rank, with noise per item, so some of the
best items stand low. The mean attraction and termination by rank are calibrated so that the
log has the CTR by rank and the number of clicks per SERP of real Yandex SERPs
(docs/synthetic.md shows the comparison).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtri

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.registry import MODELS
from logeval.errors import unknown_names
from logeval.log.queries import Query
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.synthetic.tastes import Tastes

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

MODELS_OFFERED = ("CM", "DCM", "SDBN", "DBN", "CCM", "PBM", "UBM")


@dataclass(frozen=True)
class World:
    """Q queries; query q has items first_item[q] .. first_item[q + 1] - 1, best ranked first.

    ``parameters`` are those of the model, by the names it gives them: flat over items, or (Q, ...).
    """

    model: str
    popularity: Floats  # (Q,) cumulative probability
    first_item: Ints  # (Q + 1,)
    parameters: dict[str, Floats]
    regions: int  # query q is query_id q // regions + 1 in region q % regions; 0: no regions
    has_tests: bool  # whether the log has test records
    tastes: Tastes | None = None

    def query_keys(self) -> tuple[Ints, Ints]:
        """query_id and region_id of each query."""
        q = np.arange(len(self.popularity))
        return q // max(self.regions, 1) + 1, q % max(self.regions, 1)

    def models(self) -> FittedModels:
        """The true models."""
        Q = len(self.popularity)
        query_id, region_id = self.query_keys()
        regions = region_id.tolist() if self.regions else [None] * Q
        fitted = FittedModel(
            model=self.model,
            method="truth",
            scope="per-query",
            queries=[Query(q, r) for q, r in zip(query_id.tolist(), regions, strict=True)],
            positions=np.full(Q, K),
            serps=np.full(Q, np.nan),
            item_ids=np.arange(1, self.first_item[-1] + 1),
            offsets=self.first_item,
            estimates={n: ParameterEstimate.known(x) for n, x in self.parameters.items()},
            unseen_items={
                p.field: np.full(Q, self.parameters[p.field].mean())
                for p in MODELS[self.model].PARAMETERS
                if p.kind == "item"
            },
            unseen_query={
                p.field: self.parameters[p.field].mean(axis=0)
                for p in MODELS[self.model].PARAMETERS
            },
            base=list(1 + self.first_item[:-1, None] + np.arange(K)),  # the production ranking
        )
        return FittedModels({self.model: fitted})


def model_name(model: str) -> str:
    """The model of that name that a log can be drawn from; case does not matter."""
    names = {name.lower(): name for name in MODELS_OFFERED}
    if model.lower() not in names:
        raise unknown_names("model", [model], MODELS_OFFERED)
    return names[model.lower()]


def make_world(model: str, queries: int, seed: int, regions: int = 0, tests: bool = True) -> World:
    """A world with ``queries`` queries, whose clicks come from ``model``."""
    name = model_name(model)
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
    parameters |= _other_parameters(name, effects, len(rank), rng)
    popularity = np.cumsum(weights / weights.sum())
    return World(name, popularity, first_item, parameters, regions, tests)


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
