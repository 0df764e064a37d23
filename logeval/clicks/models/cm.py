"""The cascade model (CM): the user reads from the top and stops at the first click.

P(c_k = 1) = w(a_k) prod_{i<k} (1 - w(a_i)). A list earns 1 - prod(1 - w). Estimated by
counting down to the first click: w = first clicks / impressions at or above it.
Craswell, Zoeter, Taylor, Ramsey (WSDM 2008).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.arrays import Floats
from logeval.clicks.estimation.estimates import Fit, Options, counted
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.estimation.priors import item_prior
from logeval.clicks.models.chain import Chain
from logeval.clicks.models.model import ClickModel, Parameter


@dataclass(frozen=True)
class CM(ClickModel):
    """Cascade model of one query."""

    w: Floats  # (L,) attraction

    name = "CM"
    PARAMETERS = (Parameter("w", "attraction", "item"),)
    rewards = ("satisfaction", "clicks", "any-click")
    methods = ("counting",)

    @property
    def users(self) -> Chain:
        """A click ends the search and always satisfies."""
        one = np.ones(self.L)
        return Chain(self.w, one, np.zeros(self.K), 1.0, one, np.ones(self.K))

    @classmethod
    def fit(cls, data: Patterns, options: Options) -> Fit:
        """Count down to the first click."""
        shown = data.shown
        first = data.first_click[shown.pattern]
        clicks = data.sum_items(shown.count * (shown.position == first))
        examined = data.sum_items(shown.count * (shown.position <= first))
        prior = item_prior(options.smoothing, data, clicks, examined)
        of_item = data.item_query
        estimate = counted(clicks, examined, prior.a[of_item], prior.b[of_item])
        return Fit({"w": estimate}, {"w": prior})
