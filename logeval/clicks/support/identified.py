"""Which parameters of a model the clicks of a log decide, and which rest on the prior.

What it takes depends on how a model says that a user examined a result (``examined_by`` of its
class). Attraction is known of

* position (PBM): items in the largest part of the query's graph of items and positions;
* transition (UBM): the same, of items and (position, previous click);
* decay (DBN, CCM): all items, if some were clicked at several positions. One list leaves the gamma
  of the DBN open, and the tau1 of the CCM nearly so;
* last-click (DCM, SDBN): items shown at or above a last click, or without one: one list will do;
* first-click (CM): items shown at or above a first click, or without a click;
* shown (DCTR): items shown.

The tests prove it: by the rank of the Jacobian of the probabilities of all clicks on given lists.

Parameters of a fit that rest on the prior more than on the clicks.

The attraction of items, and the examination of places, that the clicks do not compare with the
largest part of their query (``identified``); likewise the continuation of users (gamma, tau1) that
nothing decides; and every parameter with fewer observations than its prior counts for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from logeval.clicks.estimation.browsing import Cells, fold
from logeval.clicks.estimation.estimates import ModelEstimate
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.models.model import ClickModel, Parameter
from logeval.clicks.models.ubm import transition
from logeval.clicks.support.graph import CARRIES, FIRM, parts_of
from logeval.log.queries import Query
from logeval.running.arrays import Bools, Floats, Ints, sum_by

if TYPE_CHECKING:
    from logeval.clicks.fitted import FittedModel


Place = Callable[[Patterns], Ints]  # of each shown (pattern, position)
MIXED = 0.1  # lists that mix less are apart: chosen on other logs than those of docs/evidence.md


@dataclass(frozen=True)
class Identified:
    """What the clicks on Q queries with I items decide about one model."""

    share: Floats  # (Q,) of the query's impressions, that can be compared with each other
    items: Bools  # (I,) whose attraction they decide
    places: Bools | None = None  # (G, J) likewise examination, in the shape of the cells
    decay: Bools | None = None  # (G,) likewise the continuation of users who did not click
    cut: Floats | None = None  # (Q,) clicks that tie the last two parts together
    hold: Floats | None = None  # (Q,) clicks of the weakest tie needed for ``CARRIES``
    mix: Floats | None = None  # (Q,) likewise the share of what would be there if lists mixed

    @property
    def carried(self) -> Bools:
        """The queries that can carry the model, (Q,)."""
        return self.share >= CARRIES

    @property
    def apart(self) -> Bools:
        """The queries that cannot, for their lists do not mix; others have too few SERPs, (Q,)."""
        if self.mix is None:
            return np.zeros(len(self.share), dtype=np.bool_)
        return ~self.carried & (self.mix < MIXED)

    @property
    def times_needed(self) -> Floats:
        """How many times the SERPs, of the same kind, would carry the model, (Q,); inf: none."""
        if self.hold is None:
            return np.full(len(self.share), np.nan)
        needed: Floats = FIRM / np.maximum(self.hold, FIRM / 1e9)
        return np.where(needed > 1e6, np.inf, needed)


def identified(kind: type[ClickModel], data: FoldedClicks, scope: str) -> Identified | None:
    """What the clicks decide about a model; None for models of which nothing is known."""
    match kind.examined_by:
        case "position":
            return _browsing(data, scope, lambda block: block.shown.position, data.K)
        case "transition":
            return _browsing(data, scope, transition, data.K * (data.K + 1))
        case "decay":
            found = parts_of(_cells(data, scope, lambda block: block.shown.position, data.K))
            decay = found.moment >= FIRM * np.maximum(data.positions.max(initial=2) / 2, 1.0) ** 2
            chain = _chain(data, "last-click")
            known = np.broadcast_to(decay, data.Q)
            items = chain.items & known[data.item_query]
            return Identified(np.where(known, chain.share, 0.0), items, decay=decay)
        case "last-click" | "first-click" | "shown" as until:
            return _chain(data, until)
    return None


def _cells(data: FoldedClicks, scope: str, place: Place, J: int) -> Cells:
    pooled = scope == "pooled"
    group = np.zeros(data.Q, dtype=np.int64) if pooled else np.arange(data.Q)
    return fold(data, place, J, 1 if pooled else data.Q, group)


def _browsing(data: FoldedClicks, scope: str, place: Place, J: int) -> Identified:
    """Users who examine by place."""
    cells = _cells(data, scope, place, J)
    graph = parts_of(cells)
    shown = cells.sums(cells.impressions)[1].reshape(cells.G, J)
    part = graph.part
    size = np.zeros((cells.G, J))
    rows, columns = np.nonzero(part >= 0)
    np.add.at(size, (rows, part[rows, columns]), shown[rows, columns])
    largest = size.argmax(axis=1)
    places = part == largest[:, None]
    inside = places.ravel()[cells.cell]
    # an item is where most of its clicks are; without any, where it was shown
    weight = cells.clicks + 1e-6 * cells.impressions
    within = sum_by(cells.item, weight * inside, cells.I)
    items = within > 0.5 * sum_by(cells.item, weight, cells.I)
    query = data.item_query[cells.item]
    together = sum_by(query, cells.impressions * inside, data.Q)
    share = together / np.maximum(sum_by(query, cells.impressions, data.Q), 1e-300)
    group = np.zeros(data.Q, dtype=np.int64) if cells.G == 1 else np.arange(data.Q)
    return Identified(
        share, items, places, None, graph.cut[group], graph.hold[group], graph.mix[group]
    )


def _chain(data: FoldedClicks, until: str) -> Identified:
    """Users who read from the top: surely up to a click, and all of it where there is none."""

    def sure(block: Patterns) -> tuple[Floats, ...]:
        shown = block.shown
        last = np.full(block.P, block.K)
        if until != "shown":
            ends = block.last_click if until == "last-click" else block.first_click
            last = np.where(block.last_click >= 0, ends, block.K)
        return (block.sum_items(shown.count * (shown.position <= last[shown.pattern])),)

    (examined,) = data.total(sure)
    clicked = sum_by(data.item_query, data.item_clicks, data.Q) > 0
    items = (examined >= FIRM) & clicked[data.item_query]
    known = sum_by(data.item_query, data.impressions * items, data.Q)
    total = sum_by(data.item_query, data.impressions, data.Q)
    return Identified(known / np.maximum(total, 1e-300), items)


CONTINUATION = ("gamma", "tau1")  # of users who did not click


def resting(
    kind: type[ClickModel], fit: ModelEstimate, found: Identified | None, item_query: Ints
) -> dict[str, Bools]:
    """By field of a parameter, in the shape of its estimate: which values rest on the prior."""
    return {p.field: _resting(p, fit, found, item_query) for p in kind.PARAMETERS}


def _resting(p: Parameter, fit: ModelEstimate, found: Identified | None, item_query: Ints) -> Bools:
    seen = fit.estimates[p.field].observations
    if p.kind == "item":
        strength = fit.priors[p.field].strength[item_query]
    else:
        strength = np.broadcast_to(fit.shared_strength.get(p.field, 0.0), seen.shape)
    marked: Bools = ~(seen >= strength)
    if found is None:
        return marked
    if p.name == "attraction" and p.kind == "item":
        marked = marked | ~found.items
    if p.name == "examination" and found.places is not None:
        marked = marked | ~found.places.reshape(marked.shape)
    if p.field in CONTINUATION and found.decay is not None:
        marked = marked | ~found.decay
    return marked


OTHERS = {"position": "DCM", "transition": "DCM", "decay": "SDBN"}  # which need less


def record(
    queries: Sequence[Query],
    found: Identified,
    fitted: FittedModel,
    needs_less: Identified | None = None,
    pages: bool = True,
) -> dict[str, Any]:
    """What the report of a fit keeps: how many queries it carries, which not, and what rests.

    ``needs_less`` is what the clicks decide about the model that needs less (``OTHERS``). Without
    ``pages`` it was fitted to counts.
    """
    other = 0 if needs_less is None else int((needs_less.carried & ~found.carried).sum())
    marks = [m for part in fitted.classes for m in part.prior.values()]
    lost = [str(q) for q, ok in zip(queries, found.carried, strict=True) if not ok]
    return {
        "carried": int(found.carried.sum()),
        "queries": len(queries),
        "not_carried": lost[:1000],
        "apart": int(found.apart.sum()),
        "other": other,
        "prior_parameters": int(sum(m.sum() for m in marks)),
        "parameters": int(sum(m.size for m in marks)),
        "examined_by": fitted.kind.examined_by,
        **({} if pages else {"pages": False}),
    }
