"""The user browsing model (UBM): examination depends on the position and the previous click.

P(c_k = 1 | previous click at r) = e(k, r) w(a_k), r = 0 without one. Dupret and Piwowarski
(SIGIR 2008). A list earns its expected clicks; its best list is found by branch and bound
(ubm_optimum). Estimated by EM as in estimation.browsing, with a cell for every (k, r).

Only the product w e is observed, as in the PBM. The first result is examined always, e(1, 0) = 1,
unless the log says that others are examined more (``BEYOND``): then, and with
``smoothing="pyclick"``, e(1, 0) is what EM finds first, and intervals are those given that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from logeval.clicks.estimation.browsing import BrowsingClicks, with_exact_one
from logeval.clicks.estimation.em import CAP
from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.models.model import ClickModel, Parameter
from logeval.clicks.users.browsing import Browsing
from logeval.running.arrays import Floats, Ints

BEYOND = 0.02  # of e(1, 0), in the mean over impressions: what e may exceed it by

ONE = "UBM: w and e are scaled so that e(1, 0), of the first result, is 1"
OPEN = (
    "UBM: some results are examined more than the first, so that the scale of w and e is open; "
    "95% intervals are given e(1, 0), and not of attraction itself"
)


@dataclass(frozen=True)
class UBM(ClickModel):
    """User browsing model of one query."""

    w: Floats  # (L,) attraction
    e: Floats  # (K, K + 1) examination of a position given the previous click, 0 for none

    name = "UBM"
    examined_by = "transition"
    PARAMETERS = (Parameter("w", "attraction", "item"), Parameter("e", "examination", "transition"))
    methods = ("em",)

    @property
    def users(self) -> Browsing:
        """Examination depends on the position and the previous click."""
        return Browsing(self.w, self.e)

    @classmethod
    def beside(cls, data: FoldedClicks, options: Options) -> BrowsingClicks:
        """Examination by position and previous click, which is above it."""
        K, plain = data.K, options.smoothing == "pyclick"
        earlier = (np.arange(K + 1) <= np.arange(K)[:, None]).ravel()

        def largest(e: Floats, seen: Floats) -> float | None:
            beyond = np.maximum(e / e[:, :1] - 1.0, 0.0)
            known = (seen * beyond).sum() <= BEYOND * seen.sum()
            return 1.0 - CAP if known and not plain else None

        def finish(mine: FoldedClicks, fit: ModelEstimate) -> ModelEstimate:
            e = with_exact_one(fit.estimates["e"])
            scale = ONE if (e.value[:, 0, 0] == 1.0).all() else OPEN
            notes = [*fit.notes, *[scale] * (not plain)]
            return replace(fit, estimates={**fit.estimates, "e": e}, notes=notes)

        return BrowsingClicks(
            data, options, transition, (K, K + 1), lambda seen: np.tile(earlier, (len(seen), 1)),
            lambda e: np.broadcast_to(np.arange(e.shape[1]) == 0, e.shape), largest, False, finish,
        )  # fmt: skip


def transition(data: Patterns) -> Ints:
    """The cell of each shown (pattern, position)."""
    shown, previous = data.shown, previous_click(data)
    return shown.position * (data.K + 1) + previous[shown.pattern, shown.position]


def previous_click(data: Patterns) -> Ints:
    """The position of the previous click at each position, from 1; 0 for none, (P, K)."""
    latest = np.maximum.accumulate(np.where(data.clicks, np.arange(1, data.K + 1), 0), axis=1)
    return np.concatenate([np.zeros((len(latest), 1), dtype=np.int64), latest[:, :-1]], axis=1)
