"""The cascade model (CM): the user reads from the top and stops at the first click.

P(c_k = 1) = w(a_k) prod_{i<k} (1 - w(a_i)). A list earns 1 - prod(1 - w). Estimated by
counting down to the first click: w = first clicks / impressions at or above it.
Craswell, Zoeter, Taylor, Ramsey (WSDM 2008).

Click-through rates: GCTR, one for all; RCTR, one per rank; DCTR, one per (query, item).

P(c_k = 1) = ctr, ctr(k), or ctr(a_k), whatever else was clicked. The simplest models, and the
ones to beat. Chuklin, Markov, de Rijke: Click Models for Web Search (2015), section 3.1-3.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.clicks.estimation.em import Params
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.latent import Ratios, independent
from logeval.clicks.estimation.patterns import (
    FoldedClicks,
    Patterns,
    by_position,
    up_to_first_click,
)
from logeval.clicks.estimation.priors import Pair
from logeval.clicks.models.model import ChainModel, ClickModel, Parameter
from logeval.clicks.users.browsing import Browsing
from logeval.clicks.users.chain import Formulas
from logeval.running.arrays import Floats, sum_by


@dataclass(frozen=True)
class CM(ChainModel):
    """Cascade model of one query."""

    w: Floats  # (L,) attraction

    name = "CM"
    examined_by = "first-click"
    PARAMETERS = (Parameter("w", "attraction", "item"),)
    methods = ("counting",)
    formulas = Formulas(stay_position=lambda x: 0.0)  # a click ends the search and satisfies

    @classmethod
    def beside(cls, data: FoldedClicks, options: Options) -> Ratios:
        """Classes that differ in what they like; no user of any class clicks twice."""

        def likelihood(mine: Patterns, x: Params) -> Floats:
            shown, first = mine.shown, mine.first_click[mine.shown.pattern]
            w = np.clip(x["w"][shown.item], 1e-12, 1.0 - 1e-12)
            seen = np.where(shown.position == first, np.log(w), np.log1p(-w))
            below = np.where(shown.clicked, np.log(1e-12), 0.0)  # a second click: the same for all
            return sum_by(shown.pattern, np.where(shown.position > first, below, seen), mine.P)

        counted = lambda mine: {"w": up_to_first_click(mine)}  # noqa: E731
        return Ratios(data, options, counted, log_likelihood=likelihood)


def _everywhere(K: int) -> Floats:
    return np.ones((K, K + 1))


@dataclass(frozen=True)
class GCTR(ClickModel):
    """One click-through rate."""

    ctr: float

    name = "GCTR"
    PARAMETERS = (Parameter("ctr", "ctr", "scalar"),)
    methods = ("counting",)
    from_counts = True

    @property
    def users(self) -> Browsing:
        """Every item equally attractive, every position examined."""
        return Browsing(np.full(self.L, float(self.ctr)), _everywhere(self.K))

    @classmethod
    def beside(cls, data: FoldedClicks, options: Options) -> Ratios:
        """Classes that differ in their rate."""
        G, group = options.groups(data)

        def counted(mine: FoldedClicks) -> dict[str, Pair]:
            clicks, shown = (x.sum(axis=1) for x in by_position(mine, G, group))
            return {"ctr": (clicks, shown)}

        return Ratios(
            data, options, lambda mine: {}, counted,
            lambda mine, x: independent(mine, x["ctr"][group[mine.shown.query]]),
        )  # fmt: skip


@dataclass(frozen=True)
class RCTR(ClickModel):
    """A click-through rate per rank."""

    ctr: Floats  # (K,)

    name = "RCTR"
    PARAMETERS = (Parameter("ctr", "ctr", "position"),)
    methods = ("counting",)
    from_counts = True

    @property
    def users(self) -> Browsing:
        """Every item fully attractive, position k examined with ctr(k)."""
        return Browsing(np.ones(self.L), _everywhere(self.K) * self.ctr[:, None])

    @classmethod
    def beside(cls, data: FoldedClicks, options: Options) -> Ratios:
        """Classes that differ in their rates."""
        G, group = options.groups(data)

        def likelihood(mine: Patterns, x: Params) -> Floats:
            shown = mine.shown
            return independent(mine, x["ctr"][group[shown.query], shown.position])

        counted = lambda mine: {"ctr": by_position(mine, G, group)}  # noqa: E731
        return Ratios(data, options, lambda mine: {}, counted, likelihood)


@dataclass(frozen=True)
class DCTR(ClickModel):
    """A click-through rate per item of a query."""

    ctr: Floats  # (L,)

    name = "DCTR"
    examined_by = "shown"
    PARAMETERS = (Parameter("ctr", "ctr", "item"),)
    methods = ("counting",)
    from_counts = True

    @property
    def users(self) -> Browsing:
        """Every position examined."""
        return Browsing(self.ctr, _everywhere(self.K))

    @classmethod
    def beside(cls, data: FoldedClicks, options: Options) -> Ratios:
        """Classes that differ in what they like."""
        return Ratios(
            data, options, lambda mine: {"ctr": (mine.item_clicks, mine.impressions)},
            log_likelihood=lambda mine, x: independent(mine, x["ctr"][mine.shown.item]),
        )  # fmt: skip
