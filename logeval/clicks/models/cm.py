"""The cascade model (CM): the user reads from the top and stops at the first click.

P(c_k = 1) = w(a_k) prod_{i<k} (1 - w(a_i)). A list earns 1 - prod(1 - w). Estimated by
counting down to the first click: w = first clicks / impressions at or above it.
Craswell, Zoeter, Taylor, Ramsey (WSDM 2008).
"""

from __future__ import annotations

from dataclasses import dataclass

from logeval.clicks.estimation.counted import fit_counts
from logeval.clicks.estimation.counts import up_to_first_click
from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.models.model import ChainModel, Parameter
from logeval.clicks.models.users.chain import Formulas
from logeval.running.arrays import Floats


@dataclass(frozen=True)
class CM(ChainModel):
    """Cascade model of one query."""

    w: Floats  # (L,) attraction

    name = "CM"
    PARAMETERS = (Parameter("w", "attraction", "item"),)
    rewards = ("satisfaction", "clicks", "any-click")
    methods = ("counting",)
    formulas = Formulas(stay_position=lambda x: 0.0)  # a click ends the search and satisfies

    @classmethod
    def fit(cls, data: FoldedClicks, options: Options) -> ModelEstimate:
        """Count down to the first click."""
        return fit_counts("CM", data, options, {"w": up_to_first_click(data)})
