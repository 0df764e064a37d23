"""The position-based model (PBM): P(c_k = 1) = e(k) w(a_k), independently of other clicks.

Richardson, Dominowska, Ragno (WWW 2007); Chuklin et al. (2015), section 3.4. A list earns its
expected clicks, sum_k e_k w(a_k).

Estimated by EM as in ``estimation.browsing``, with a cell for every position. Only the product w e
is observed: (w / x, e x) fits as well as (w, e). The position that is examined most in a group has
e = 1, and intervals are those of the parameters on that scale. With ``smoothing="pyclick"`` values
are left as EM ends, as PyClick does, and the scale is that value's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from logeval.clicks.estimation.browsing import BrowsingClicks, with_exact_one
from logeval.clicks.estimation.em import CAP
from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.models.model import ClickModel, Parameter
from logeval.clicks.users.browsing import Browsing
from logeval.running.arrays import Bools, Floats

SCALED = "PBM: w and e are scaled so that the largest e is 1"
SHRUNK = (
    "PBM: 95% intervals of examination are too narrow where queries share a prior (in simulations "
    "they held the truth in 81 to 88%, and in 97% with scope=per-query)"
)


@dataclass(frozen=True)
class PBM(ClickModel):
    """Position-based model of one query."""

    w: Floats  # (L,) attraction
    e: Floats  # (K,) examination

    name = "PBM"
    examined_by = "position"
    PARAMETERS = (Parameter("w", "attraction", "item"), Parameter("e", "examination", "position"))
    methods = ("em",)
    from_counts = True

    @property
    def users(self) -> Browsing:
        """Examination depends on the position alone."""
        return Browsing(self.w, np.repeat(self.e[:, None], self.K + 1, axis=1))

    @classmethod
    def beside(cls, data: FoldedClicks, options: Options) -> BrowsingClicks:
        """Examination by position; beyond lists it is 0."""
        scaled = options.smoothing != "pyclick"

        def finish(mine: FoldedClicks, fit: ModelEstimate) -> ModelEstimate:
            if not scaled:
                return fit
            notes = [SCALED, *[SHRUNK] * options.shrinks]
            exact = {**fit.estimates, "e": with_exact_one(fit.estimates["e"])}
            return replace(fit, estimates=exact, notes=[*fit.notes, *notes])

        return BrowsingClicks(
            data, options, lambda block: block.shown.position, (data.K,), lambda seen: seen > 0,
            _most_examined_by_all if options.shrinks else _most_examined,
            lambda e, seen: 1.0 - CAP if scaled else None, True, finish,
        )  # fmt: skip


def _most_examined(e: Floats) -> Bools:
    """The position of each group whose e sets the scale."""
    return np.arange(e.shape[1]) == e.argmax(axis=1)[:, None]


def _most_examined_by_all(e: Floats) -> Bools:
    """The same position for all groups: queries that share a prior are measured on one scale."""
    relative = e / np.maximum(e.max(axis=1, keepdims=True), 1e-12)
    return np.broadcast_to(np.arange(e.shape[1]) == relative.mean(axis=0).argmax(), e.shape)
