"""Click-through rates: GCTR, one for all; RCTR, one per rank; DCTR, one per (query, item).

P(c_k = 1) = ctr, ctr(k), or ctr(a_k), whatever else was clicked. The simplest models, and the
ones to beat. Chuklin, Markov, de Rijke: Click Models for Web Search (2015), section 3.1-3.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.clicks.estimation.counted import fit_counts
from logeval.clicks.estimation.counts import by_position
from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.models.model import ClickModel, Parameter
from logeval.clicks.models.users.browsing import Browsing
from logeval.running.arrays import Floats

REWARDS = ("clicks", "any-click")


def _everywhere(K: int) -> Floats:
    return np.ones((K, K + 1))


@dataclass(frozen=True)
class GCTR(ClickModel):
    """One click-through rate."""

    ctr: float

    name = "GCTR"
    PARAMETERS = (Parameter("ctr", "ctr", "scalar"),)
    rewards = REWARDS
    methods = ("counting",)

    @property
    def users(self) -> Browsing:
        """Every item equally attractive, every position examined."""
        return Browsing(np.full(self.L, float(self.ctr)), _everywhere(self.K))

    @classmethod
    def fit(cls, data: FoldedClicks, options: Options) -> ModelEstimate:
        """Clicks / impressions."""
        G, group = options.groups(data)
        clicks, shown = (x.sum(axis=1) for x in by_position(data, G, group))
        return fit_counts("GCTR", data, options, {}, {"ctr": (clicks, shown)})


@dataclass(frozen=True)
class RCTR(ClickModel):
    """A click-through rate per rank."""

    ctr: Floats  # (K,)

    name = "RCTR"
    PARAMETERS = (Parameter("ctr", "ctr", "position"),)
    rewards = REWARDS
    methods = ("counting",)

    @property
    def users(self) -> Browsing:
        """Every item fully attractive, position k examined with ctr(k)."""
        return Browsing(np.ones(self.L), _everywhere(self.K) * self.ctr[:, None])

    @classmethod
    def fit(cls, data: FoldedClicks, options: Options) -> ModelEstimate:
        """Clicks / impressions at each rank."""
        G, group = options.groups(data)
        return fit_counts("RCTR", data, options, {}, {"ctr": by_position(data, G, group)})


@dataclass(frozen=True)
class DCTR(ClickModel):
    """A click-through rate per item of a query."""

    ctr: Floats  # (L,)

    name = "DCTR"
    PARAMETERS = (Parameter("ctr", "ctr", "item"),)
    rewards = REWARDS
    methods = ("counting",)

    @property
    def users(self) -> Browsing:
        """Every position examined."""
        return Browsing(self.ctr, _everywhere(self.K))

    @classmethod
    def fit(cls, data: FoldedClicks, options: Options) -> ModelEstimate:
        """Clicks / impressions of each item."""
        return fit_counts("DCTR", data, options, {"ctr": (data.item_clicks, data.impressions)})
