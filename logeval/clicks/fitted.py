"""One click model fitted to many queries, as flat arrays.

Items are numbered consecutively over all queries, as in ``Patterns``. Besides the fitted values
there are values for items never seen: of a known query the mean of the prior, and of others the
prior of the log. Queries never seen have the other parameters averaged over queries by their SERPs.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.models.classes import Classes
from logeval.clicks.models.model import ClickModel, Parameter
from logeval.clicks.models.own import checked_model
from logeval.clicks.models.registry import kind_of
from logeval.log.queries import Query
from logeval.running.arrays import Bools, Floats, Ints

# whose values the parameters of positions, and scalars, are: of each query, shrunk towards those of
# all queries; of each query by itself; or one set for all queries
SCOPES = ("partial", "per-query", "pooled")
UNSEEN = -1  # the id of the stand-in for items never seen


@dataclass(frozen=True, repr=False)
class FittedModel:
    """A model, of one of the ``SCOPES``, with Q queries and I (query, item) pairs."""

    model: str
    method: str
    scope: str
    queries: list[Query]
    positions: Ints  # (Q,) longest list
    serps: Floats  # (Q,) number of SERPs fitted; nan where it was not fitted to a log
    item_ids: Ints  # (I,)
    offsets: Ints  # (Q + 1,)
    estimates: dict[str, ParameterEstimate]  # by field: (I,), (G, K), (G, K, K + 1) or (G,)
    unseen_items: dict[str, Floats]  # item parameters by field: (Q,)
    unseen_query: dict[str, float]  # item parameters by field
    base: list[Ints] | None = None  # (Q,) ids of the list shown most often; none: unknown
    report: dict[str, Any] = field(default_factory=dict)  # iterations, convergence, notes, ...
    identified: Floats | None = None  # (Q,) see ``support.identified``; None: it is not known
    # by field, in the shape of the estimates: whether a value rests on the prior
    prior: dict[str, Bools] = field(default_factory=dict)
    shown: Bools | None = None  # (I,) of a period: the items that the log showed in it

    def __repr__(self) -> str:
        return f"FittedModel: {self.model} ({self.method}, {len(self.queries)} queries)"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"

    @property
    def kind(self) -> type[ClickModel]:
        """The class of the model."""
        return kind_of(self.model)

    @cached_property
    def index(self) -> dict[Query, int]:
        """The place of each query."""
        return {query: q for q, query in enumerate(self.queries)}

    @property
    def item_query(self) -> Ints:
        """The query of each (query, item) pair, (I,)."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.offsets))

    @property
    def n_draws(self) -> int:
        """How many draws of its parameters were kept with the fit."""
        return min(0 if x.draws is None else len(x.draws) for x in self.estimates.values())

    @property
    def classes(self) -> tuple[FittedModel, ...]:
        """The fits of its classes of users: itself, where users do not differ."""
        return (self,)

    def classes_of(self, query: Query) -> dict[str, FittedModel]:
        """The fits of the classes that a query has, by number; one fit without a number."""
        return {"": self}

    def span(self, q: int) -> slice:
        """The (query, item) pairs of query q."""
        return slice(self.offsets[q], self.offsets[q + 1])

    def group(self, q: int) -> int:
        """The set of shared parameters that query q uses."""
        return 0 if self.scope == "pooled" else q

    def estimate(self, p: Parameter, query: Query) -> ParameterEstimate:
        """The estimate of a parameter for one query."""
        q = self.index[query]
        at = self.span(q) if p.kind == "item" else self.group(q)
        return replace(self.estimates[p.field], draws=None).map(lambda x: x[at])

    def drawn(self, draw: int) -> FittedModel:
        """Draw number ``draw``, from 1, of its parameters in place of the fitted values.

        Draws are made with the fit, from the joint posterior of all its parameters
        (``estimation.posterior``): the d-th values of all of them belong together, and pooled ones
        are the same for all queries.
        """
        estimates = {
            name: replace(x, value=x.draws[draw - 1])
            for name, x in self.estimates.items()
            if x.draws is not None
        }
        return replace(self, estimates=estimates)

    def some_draws(self, most: int) -> list[FittedModel]:
        """Its draws, at most so many; the model itself where it has none."""
        return [self.drawn(d + 1) for d in range(min(self.n_draws, most))] or [self]

    def of(self, query: Query, unseen: bool = False, K: int | None = None) -> ClickModel:
        """The model of a query.

        With ``unseen``, one more item, of id ``UNSEEN``, stands for all never seen; a query
        never seen has only that one. ``K`` extends the positions, with the values of the last, or
        of the other queries if these are pooled.
        """
        q = self.index.get(query)
        if q is None or not self.positions[q]:  # in patterns of which no SERP was seen
            return self._unseen_query(K)
        span = self.span(q)
        own, g = int(self.positions[q]), self.group(q)
        values: dict[str, Any] = {}
        for p in self.kind.PARAMETERS:
            value = self.estimates[p.field].value
            if p.kind == "item":
                more = [self.unseen_items[p.field][q]] if unseen else []
                values[p.field] = np.concatenate([value[span], more])
            else:
                fitted = value.shape[1] if self.scope == "pooled" and value.ndim > 1 else own
                values[p.field] = _sized(p, value[g], fitted, K or own)
        stand_in = np.full(int(unseen), UNSEEN, dtype=np.int64)  # a plain [] would be of floats
        items = np.concatenate([self.item_ids[span], stand_in])
        return checked_model(self.kind(items=items, K=K or own, **values))

    def _unseen_query(self, K: int | None) -> ClickModel:
        own = int(self.positions.max(initial=1))
        groups = np.nan_to_num(self.serps, nan=1.0), self.positions
        groups = (np.ones(1), np.array([own])) if self.scope == "pooled" else groups
        values = {
            p.field: np.full(1, self.unseen_query[p.field])
            if p.kind == "item"
            else _sized(p, averaged(self.estimates[p.field].value, *groups), own, K or own)
            for p in self.kind.PARAMETERS
        }
        return checked_model(self.kind(items=np.array([UNSEEN]), K=K or own, **values))


@dataclass(frozen=True)
class FittedClasses(FittedModel):
    """A click model with classes of users: ``parts`` are the fits of its classes.

    ``estimates`` holds the shares of the classes, (Q, C), 0 where a query has fewer.
    """

    parts: tuple[FittedModel, ...] = ()

    @property
    def classes(self) -> tuple[FittedModel, ...]:
        """The fits of the classes."""
        return self.parts

    def classes_of(self, query: Query) -> dict[str, FittedModel]:
        """The fits of the classes that a query has, by number."""
        share = self.estimates["share"].value[self.index[query]]
        return {str(c + 1): part for c, part in enumerate(self.parts) if share[c] > 0}

    @property
    def n_draws(self) -> int:
        """How many draws of its parameters were kept with the fit."""
        return min(super().n_draws, *(part.n_draws for part in self.parts))

    def drawn(self, draw: int) -> FittedModel:
        """Draw number ``draw``, from 1, of shares and parameters."""
        drawn = super().drawn(draw)
        return replace(drawn, parts=tuple(part.drawn(draw) for part in self.parts))  # type: ignore[call-arg]

    def of(self, query: Query, unseen: bool = False, K: int | None = None) -> ClickModel:
        """The model of a query; one never seen has the classes of all."""
        q = self.index.get(query)
        share = self.estimates["share"].value
        own = np.average(share, axis=0, weights=np.nan_to_num(self.serps, nan=1.0) + 1e-9)
        every = [part.of(query, unseen, K) for part in self.parts]
        return Classes.of(own if q is None else share[q], every)


def _sized(p: Parameter, value: Any, own: int, K: int) -> Any:
    """A shared parameter cut to its ``own`` positions, then extended to K by its last values.

    A transition beyond them is that of the last position at the same distance from the previous
    click, or at the largest distance there.
    """
    if p.kind == "scalar":
        return float(value)
    if p.kind == "position":
        return np.pad(value[:own], (0, max(K - own, 0)), mode="edge")[:K]
    if own >= K:
        return value[:K, : K + 1]
    wide = np.zeros((K, K + 1))
    wide[:own, : own + 1] = value[:own, : own + 1]
    for k in range(own, K):
        wide[k, 0] = value[own - 1, 0]
        distance = k + 1 - np.arange(1, k + 1)
        wide[k, 1 : k + 1] = value[own - 1, own - np.minimum(distance, max(own - 1, 1))]
    return wide


def averaged(value: Floats, weight: Floats, longest: Ints | None = None) -> Any:
    """The mean over groups (first axis), by weight; at each position over those that have it."""
    if not len(value):
        return 0.5
    if longest is None or value.ndim == 1:
        mean = np.tensordot(weight / max(float(weight.sum()), 1e-300), value, axes=1)
        return np.minimum(mean, 1.0) if mean.ndim else min(float(mean), 1.0)  # rounding
    at = weight[:, None] * (np.arange(value.shape[1]) < longest[:, None])
    share = at / np.maximum(at.sum(axis=0), 1e-300)
    return np.minimum(np.einsum("gk,gk...->k...", share, value), 1.0)  # rounding
