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
import pyarrow as pa
from scipy.special import expit, logit
from scipy.stats import norm, qmc

from logeval import seeds
from logeval.arrays import Floats, Ints
from logeval.errors import unknown_names
from logeval.tables import MODELS

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

# model -> name of its position parameter
MODELS_OFFERED = {"DCM": "termination", "PBM": "examination"}


@dataclass(frozen=True)
class World:
    """Q queries; query q has items first_item[q] .. first_item[q + 1] - 1, best ranked first."""

    model: str
    popularity: Floats  # (Q,) cumulative probability
    first_item: Ints  # (Q + 1,)
    attraction: Floats  # flat over items
    position: Floats  # (Q, K) termination or examination
    regions: int  # query q is query_id q // regions + 1 in region q % regions; 0: no regions

    @property
    def n_items(self) -> Ints:
        """L of each query."""
        return np.diff(self.first_item)

    @property
    def has_tests(self) -> bool:
        """Whether the log has test records: only the one without regions does."""
        return self.regions == 0

    def query_keys(self) -> tuple[Ints, Ints]:
        """query_id and region_id of each query."""
        q = np.arange(len(self.popularity))
        return q // max(self.regions, 1) + 1, q % max(self.regions, 1)

    def models_table(self) -> pa.Table:
        """The true parameters in the schema of the models table."""
        Q, n = len(self.popularity), len(self.attraction)
        owner = np.concatenate([np.repeat(np.arange(Q), self.n_items), np.repeat(np.arange(Q), K)])
        query_id, region_id = self.query_keys()
        size = n + Q * K
        nulls = {f.name: pa.nulls(size, f.type) for f in MODELS if f.nullable}
        columns = nulls | {
            "model": pa.array([self.model] * size),
            "method": pa.array(["truth"] * size),
            "scope": pa.array(["per-query"] * size),
            "query_id": pa.array(query_id[owner]),
            "region_id": pa.array(region_id[owner], mask=np.full(size, self.regions == 0)),
            "parameter": pa.array(["attraction"] * n + [MODELS_OFFERED[self.model]] * (Q * K)),
            "item_id": pa.array(np.arange(1, size + 1), mask=np.arange(size) >= n),
            "position": pa.array(
                np.concatenate([np.zeros(n), np.tile(np.arange(1, K + 1), Q)]).astype(np.int32),
                mask=np.arange(size) < n,
            ),
            "value": pa.array(np.concatenate([self.attraction, self.position.ravel()])),
        }
        return pa.Table.from_arrays([columns[name] for name in MODELS.names], schema=MODELS)


def make_world(model: str, queries: int, seed: int, regions: int = 0) -> World:
    """A world with ``queries`` queries, whose clicks come from ``model``."""
    names = {name.lower(): name for name in MODELS_OFFERED}
    if model.lower() not in names:
        raise unknown_names("model", [model], MODELS_OFFERED)
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
    attraction = expit(logit(mean) + noise)
    if names[model.lower()] == "DCM":
        own = rng.normal(0, 0.2, (queries, K))
        level = logit(TERMINATION) + TERMINATION_SPREAD * effects[:, 1:2]
        position = expit(level + own)
    else:
        position = EXAMINATION ** np.exp(0.3 * effects[:, 1:2])
    popularity = np.cumsum(weights / weights.sum())
    return World(names[model.lower()], popularity, first_item, attraction, position, regions)


def _query_effects(queries: int) -> Floats:
    """Normal effects of the queries, (Q, 3), the same for every seed.

    They are quasi-random, so that the few queries that make up most of a Zipf log are not all
    alike, and the calibration holds for every seed.
    """
    points = qmc.Halton(d=3, scramble=False)
    points.fast_forward(1)  # the first point is the corner (0, 0, 0)
    return norm.ppf(points.random(queries))
