"""The value of a target by several estimators, for many resampled logs at once.

Cells are what the weights of an estimator depend on:

level            a cell is                         its clicks
item-position    an item at a position             at that position
prefix           the first k items                 at position k
list             the whole list, and a position k  at position k
position         a position                        at that position

Every estimator is a sum over the cells of one level of clicks times a weight. How many SERPs
and clicks a cell has is a matrix product with the number of SERPs of each pattern, so that many
resampled logs are one product.

An estimator with little ``Support`` is not noisy, it is wrong: what the log never showed counts as
no clicks (or as the model says, for DR). So estimates below a threshold are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.scores import local_items
from logeval.errors import LogevalError
from logeval.log.queries import Query
from logeval.replay.estimators import OF_CELLS, Estimator, View, ratio
from logeval.replay.logged import Logged
from logeval.replay.targets import MarginalTarget, Target, last_of
from logeval.running.arrays import Bools, Floats, Ints, sum_by

COLUMNS = ("support", "effective_serps", "clipped", "largest_weight", "supported_positions")


@dataclass(frozen=True)
class Support:
    """What the log has of a target in the eyes of an estimator, by query and position (Q, K)."""

    supported: Floats  # probability of the target that the log has shown
    mass: Floats  # probability of the target
    weight: Floats  # sum of the weights of the SERPs, clipped
    square: Floats  # sum of their squares
    clipped: Floats  # SERPs whose weight was clipped
    largest: Floats  # largest weight before clipping

    def columns(
        self, n: Floats, share: Floats, enough: float, at_positions: Floats | None = None
    ) -> dict[str, Any]:
        """``COLUMNS`` over all queries and of each, (Q + 1,).

        n (Q,) are the SERPs and share (Q,) the part of each query in the overall value.
        ``supported_positions`` is the largest K up to which every position has enough support;
        ``at_positions`` (Q, K) says it where it is not seen here: a list has support as a whole, or
        not.
        """
        per_serp = (share / np.maximum(n, 1))[:, None]  # a SERP's part in the overall value
        used, K = share > 0, self.mass.shape[1]
        supported, mass = _above(share @ self.supported, self.supported), share @ self.mass
        at = supported if at_positions is None else _above(share @ at_positions, at_positions)
        mass = _above(mass, self.mass)
        weight = _above((per_serp * self.weight).sum(axis=0), self.weight)
        square = _above((per_serp**2 * self.square).sum(axis=0), self.square)
        clipped = np.append(self.clipped[used].sum(), self.clipped.sum(axis=1))
        largest = self.largest.max(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            at = np.where(mass > 0, at / mass, 1.0)
            support = supported.sum(axis=1) / mass.sum(axis=1)
            effective = np.nan_to_num(weight**2 / square).mean(axis=1)
        values = (
            support,
            effective,
            clipped / np.maximum(np.append(n[used].sum(), n) * K, 1),
            np.append(largest[used].max(initial=0.0), largest),
            np.cumprod(at >= enough, axis=1).sum(axis=1),
        )
        return dict(zip(COLUMNS, values, strict=True))

    def fewest(self, n: Floats, share: Floats) -> float:
        """The effective SERPs of the position that rests on the fewest, of those with any."""
        per_serp = (share / np.maximum(n, 1))[:, None]
        weight = (per_serp * self.weight).sum(axis=0)
        square = (per_serp**2 * self.square).sum(axis=0)
        return float((weight[square > 0] ** 2 / square[square > 0]).min(initial=np.inf))


def _above(overall: Floats, of_queries: Floats) -> Floats:
    return np.concatenate([overall[None], of_queries])


@dataclass(frozen=True)
class Cells:
    """The cells of one level that matter to a target.

    At the item-position level the K positions of an item follow each other, cell i K + k.
    """

    Q: int
    K: int
    query: Ints  # (c,)
    position: Ints  # (c,) from 0
    h: Floats  # (c,) probability that the target shows the cell
    mass: Floats  # (Q, K) probability that the target shows anything at a position
    shown: sparse.csr_matrix  # (c, P) 1 where a SERP of the pattern falls into the cell
    gained: sparse.csr_matrix  # (c, P) 1 where it is also clicked there, or its reward
    row: Ints | None = None  # (c,) item K + k, at the item-position level
    logged_p: Floats | None = None  # (c,) logged propensity, where those are used
    first: Bools | None = None  # (c,) where they differ: the first of the cells of an item there

    @cached_property
    def item(self) -> Ints | None:
        """(c,) which item it is, from 0, where an item has more than K cells."""
        if self.first is None or self.row is None:
            return None
        return np.cumsum(np.diff(self.row // self.K, prepend=-1) > 0) - 1

    @cached_property
    def by_position(self) -> sparse.csr_matrix:
        """(Q K, c) sums over the cells of a query and position."""
        c = len(self.query)
        row = self.query * self.K + self.position
        one = np.ones(c, dtype=np.float32)
        return sparse.csr_matrix((one, (row, np.arange(c))), shape=(self.Q * self.K, c))

    def sums(self, values: Floats) -> Floats:
        """The sums of cell values (c, B) by query and position, (Q, K, B)."""
        total: Floats = (self.by_position @ values).reshape(self.Q, self.K, -1)
        return total

    def predicted(self, clicks: Floats) -> sparse.csr_matrix:
        """As ``gained``, with a model's click probabilities (P, K) in place of the clicks."""
        at = self.shown.tocoo()
        values = clicks[at.col, self.position[at.row]]
        return sparse.csr_matrix((values, (at.row, at.col)), shape=self.shown.shape)

    def propensities(self, N: Floats, n: Floats) -> Floats:
        """How often the logger showed each cell (c, B), as logged, or as the log itself says.

        That is the frequency of its N (c, B) SERPs among the n (Q, B) of its query.
        """
        if self.logged_p is not None:
            return np.repeat(self.logged_p[:, None], N.shape[1], axis=1)
        return ratio(N, n[self.query])


def cells_of(level: str, logged: Logged, target: Target, gains: Floats) -> Cells:
    """The cells of a level that the target shows: others have weight 0.

    ``gains`` (P, K) are clicks, or rewards.
    """
    K, query = target.K, logged.patterns.query
    items = logged.patterns.items[:, :K]
    p, k = (x.astype(np.int32) for x in np.nonzero(items >= 0))  # a log has many: half as wide
    cell: Ints
    if level == "item-position":
        h = target.item_positions()
        keep = np.repeat(h.any(axis=1), K)  # all positions of an item
        owner, h, cell = np.repeat(target.item_query, K), h.ravel(), items[p, k] * K + k
        position = np.arange(len(h)) % K
    elif level == "position":
        h, owner = target.mass().ravel(), np.repeat(np.arange(target.Q), K)
        keep, position, cell = np.ones(len(h), np.bool_), np.arange(len(h)) % K, query[p] * K + k
    else:
        node, h, owner, position = target.prefixes(items, query, whole=level == "list")
        cell = node[p, k]
        if level == "list":  # which is known by the prefix where it ends
            end = node[np.arange(len(node)), last_of(node)]
            depth, owner = np.repeat(position, K), np.repeat(owner, K)
            position, cell = np.arange(len(depth)) % K, end[p] * K + k
            h = np.repeat(h, K) * (position <= depth)
        keep = h > 0
    place = np.full(len(h), -1, dtype=np.int64)
    place[keep] = np.arange(keep.sum())
    cell = place[cell]
    p, k, cell = p[cell >= 0], k[cell >= 0], cell[cell >= 0]
    owner, position, h = owner[keep], position[keep], h[keep]
    row = np.flatnonzero(keep) if level == "item-position" else None
    logged_p = first = None
    if logged.propensities is not None and row is not None:
        of_cell = logged.propensities[p, k]
        logged_p = np.zeros(len(h))
        logged_p[cell] = of_cell
        if not np.allclose(logged_p[cell], of_cell, rtol=1e-9, atol=0.0):  # a cell for each value
            values, which = np.unique(of_cell, return_inverse=True)
            never = np.flatnonzero(logged_p == 0.0) * (len(values) + 1)
            keys, cell = np.unique(
                np.append(cell * (len(values) + 1) + 1 + which, never), return_inverse=True
            )
            cell, at = cell[: len(p)], keys // (len(values) + 1)
            logged_p = np.append(0.0, values)[keys % (len(values) + 1)]
            owner, position, h, row = owner[at], position[at], h[at], row[at]
            first = np.diff(at, prepend=-1) > 0
    one, gain, shape = np.ones(len(p), dtype=np.float32), gains[p, k], (len(h), len(items))
    c = gain != 0
    shown = sparse.csr_matrix((one, (cell, p)), shape=shape)
    gained = sparse.csr_matrix((gain[c], (cell[c], p[c])), shape=shape)
    mass = target.mass()
    return Cells(target.Q, K, owner, position, h, mass, shown, gained, row, logged_p, first)


@dataclass(frozen=True)
class Prediction:
    """One model: click probabilities on the log's lists, and of the target."""

    clicks: Floats  # (P, K)
    value: Floats  # (Q,) expected clicks of the target
    e: Floats | None = None  # (Q, K) examination, of a PBM
    wanted: Floats | None = None  # (I K,) expected clicks of the target, by item and position

    def times(self, of_pattern: Floats, of_query: Floats, of_place: Floats) -> Prediction:
        """Rewards in the place of clicks."""
        wanted = None if self.wanted is None else self.wanted * of_place
        return Prediction(self.clicks * of_pattern[:, None], self.value * of_query, self.e, wanted)


def predict(fitted: FittedModel, logged: Logged, target: Target) -> Prediction:
    """What the model says of the log's lists, cut to the target's positions, and of the target."""
    patterns = logged.patterns
    if (logged.placed or isinstance(target, MarginalTarget)) and fitted.kind.name not in OF_CELLS:
        raise LogevalError(
            f"target {target.name}: it gives probabilities per rank, and {fitted.model} needs "
            f"whole lists; use a model of item and position ({', '.join(OF_CELLS)})"
        )
    K, queries = target.K, patterns.queries
    of_log = click_probabilities(
        fitted, queries, patterns.query, patterns.items[:, :K], patterns.item_ids
    )
    query, items, probability = target.lists()
    clicks = click_probabilities(fitted, queries, query, items, target.item_ids)
    value = sum_by(query, probability * clicks.sum(axis=1), target.Q)
    n, k = np.nonzero(items >= 0)
    places = len(target.item_ids) * K
    wanted = sum_by(items[n, k] * K + k, probability[n] * clicks[n, k], places)
    e = None
    if fitted.model == "PBM":
        e = np.stack([fitted.of(q, unseen=True, K=K).e for q in queries])  # type: ignore[attr-defined]
    return Prediction(of_log, value, e, wanted)


def click_probabilities(
    fitted: FittedModel, queries: list[Query], query: Ints, items: Ints, item_ids: Ints
) -> Floats:
    """P(c_k = 1) of lists (n, K) of numbered items; 0 where a list has none."""
    K = items.shape[1]
    out = np.zeros(items.shape)
    order = np.argsort(query, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        if not len(rows):
            continue
        model = fitted.of(queries[query[rows[0]]], unseen=True, K=K)
        A = local_items(model.items, item_ids[items[rows]])  # beyond the end any item will do
        # a click never depends on what stands below it
        out[rows] = model.click_probs_of_rows(A)
    out[items < 0] = 0.0
    return out


Predictions = dict[str, Prediction]  # by click model


class Values:
    """One target on one log. ``values`` may be asked for any numbers of SERPs per pattern.

    Weights are at most ``clip``. With ``rewards`` it is the value in the second reward of the log;
    a click model then predicts clicks times the reward per click of the query.
    """

    def __init__(
        self,
        logged: Logged,
        target: Target,
        estimators: Sequence[Estimator],
        *,
        clip: float = np.inf,
        rewards: bool = False,
    ) -> None:
        self.logged, self.target, self.estimators = logged, target, list(estimators)
        self.clip, self.rewards = clip, rewards
        self.gains: Any = logged.patterns.clicks[:, : target.K].astype(np.float32)
        if rewards and logged.rewards is not None:
            self.gains = logged.rewards[:, : target.K]
        self.Q, P = logged.patterns.Q, len(logged.patterns.count)
        one = np.ones(P, dtype=np.float32)
        at = (logged.patterns.query, np.arange(P))
        self._by_query = sparse.csr_matrix((one, at), shape=(self.Q, P))
        self.cells = {
            level: cells_of(level, logged, target, self.gains)
            for level in dict.fromkeys(e.LEVEL for e in self.estimators)
            if level is not None
        }
        cells = self.cells.get("item-position")
        split = cells is not None and cells.first is not None
        across = [e for e in self.estimators if e.ACROSS and split]
        if across:
            raise LogevalError(
                f"{across[0]}: needs propensities of an item at positions where it was not shown, "
                "and those that were logged differ between searches; take IP or DR, or "
                "propensities=estimated"
            )

    def predictions(self, models: dict[str, FittedModel]) -> Predictions:
        """What fitted click models say of the log and of the target."""
        found = {name: predict(model, self.logged, self.target) for name, model in models.items()}
        if self.rewards:
            found = {name: each.times(*self._per_click()) for name, each in found.items()}
        return found

    def _per_click(self) -> tuple[Floats, Floats, Floats]:
        """The reward per click, by pattern, by query and by item and position of the target."""
        patterns, K = self.logged.patterns, self.target.K
        of_serp = np.stack([self.gains.sum(axis=1), patterns.clicks[:, :K].sum(axis=1)], axis=1)
        total = np.asarray(self._by_query @ (of_serp * patterns.count[:, None]))
        whole = total.sum(axis=0)
        mean = whole[0] / max(whole[1], 1.0)
        each = np.where(total[:, 1] > 0, total[:, 0] / np.maximum(total[:, 1], 1.0), mean)
        return each[patterns.query], each, np.repeat(each[self.target.item_query], K)

    def serps(self, W: Floats) -> Floats:
        """The number of SERPs of each query, (Q, B)."""
        return np.asarray(self._by_query @ W)

    def values(self, W: Floats, predictions: Predictions) -> dict[Estimator, Floats]:
        """The value of the target (Q, B) under each estimator, in the logs W (P, B).

        nan where a log has no SERP of the query.
        """
        n, out = self.serps(W), {}
        for estimator in self.estimators:
            total = np.zeros((self.Q, W.shape[1]))
            if estimator.LEVEL is not None:
                view = self._view(estimator, W, predictions)
                total = self._weighted(estimator, view, W, n, predictions)
            if estimator.DIRECT:
                total = total + predictions[estimator.model or ""].value[:, None]
            out[estimator] = np.where(n > 0, total, np.nan)
        return out

    def of_lists(
        self, lists: Floats, W: Floats, predictions: Predictions
    ) -> dict[Estimator, Floats]:
        """The value of single lists (Q, B) in one log W (P, 1): of a pattern in each column.

        ``lists`` (P, B) has a 1 at that pattern, at most one of each query. All estimators are
        linear in the target where they are neither clipped nor normalised.
        """
        n, out = self.serps(W), {}
        for estimator in self.estimators:
            total = np.zeros((self.Q, lists.shape[1]))
            if estimator.LEVEL is not None:
                view = self._view(estimator, W, predictions)
                cells = self.cells[estimator.LEVEL]
                view = replace(view, h=cells.shown @ lists)
                if estimator.EXPECTED:
                    clicks = predictions[estimator.model or ""].clicks
                    view = replace(view, wanted=cells.predicted(clicks) @ lists)
                total = total + self._weighted(estimator, view, W, n, predictions)
            if estimator.DIRECT:
                clicks = predictions[estimator.model or ""].clicks.sum(axis=1)
                total = total + self._by_query @ (lists * clicks[:, None])
            out[estimator] = np.where(n > 0, total, np.nan)
        return out

    def _weighted(
        self, estimator: Estimator, view: View, W: Floats, n: Floats, predictions: Predictions
    ) -> Floats:
        """(Q, B) sums over cells of clicks, or residuals, times weights."""
        cells = self.cells[estimator.LEVEL or ""]
        rho = np.minimum(estimator.weights(view), self.clip)
        gain = cells.gained @ W
        if estimator.DIRECT:
            gain = gain - cells.predicted(predictions[estimator.model or ""].clicks) @ W
        total = cells.sums(gain * rho)
        if estimator.normalised:
            by_position = ratio(total, cells.sums((cells.shown @ W) * rho)) * cells.mass[:, :, None]
        else:
            by_position = ratio(total, n[:, None, :])
        return by_position.sum(axis=1)

    def _view(self, estimator: Estimator, W: Floats, predictions: Predictions) -> View:
        cells, n = self.cells[estimator.LEVEL or ""], self.serps(W)
        p = cells.propensities(cells.shown @ W, n)
        view = View(cells.h[:, None], p, cells.K, item=cells.item)
        if estimator.EXAMINATION and (e := predictions["pbm"].e) is not None:
            view = replace(view, e=e[cells.query, cells.position])
        if estimator.EXPECTED:
            model = predictions[estimator.model or ""]
            assert model.wanted is not None
            had = ratio(cells.predicted(model.clicks) @ W, n[cells.query])
            view = replace(view, wanted=model.wanted[cells.row][:, None], had=had)
        return view

    def prefix_support(self) -> Floats:
        """``supported`` of Prefix (Q, K): what List would have at a smaller K."""
        cells = cells_of("prefix", self.logged, self.target, self.gains)
        seen = (cells.shown @ self.logged.patterns.count)[:, None] > 0
        return cells.sums(cells.h[:, None] * seen)[:, :, 0]

    def support(self, estimator: Estimator, predictions: Predictions) -> Support | None:
        """How the log itself supports the estimator; None for one that does not weight it."""
        if estimator.LEVEL is None:
            return None
        W = self.logged.patterns.count[:, None]
        cells = self.cells[estimator.LEVEL]
        view = self._view(estimator, W, predictions)
        once = np.ones(len(cells.h)) if cells.first is None else cells.first
        supported = cells.sums(cells.h[:, None] * estimator.supported(view) * once[:, None])
        rho, N = estimator.weights(view), cells.shown @ W
        cut = np.minimum(rho, self.clip)
        weight, square, clipped = (
            cells.sums(N * x)[:, :, 0] for x in (cut, cut**2, rho > self.clip)
        )
        largest: Floats = np.zeros(self.Q * cells.K)
        at = cells.query * cells.K + cells.position
        np.maximum.at(largest, at, (rho * (N > 0))[:, 0])
        largest = largest.reshape(self.Q, cells.K)
        return Support(supported[:, :, 0], cells.mass, weight, square, clipped, largest)
