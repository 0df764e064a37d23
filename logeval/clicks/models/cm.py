"""The cascade model (CM): the user reads from the top and stops at the first click.

P(c_k = 1) = w(a_k) prod_{i<k} (1 - w(a_i)). A list earns 1 - prod(1 - w). Estimated by
counting down to the first click: w = first clicks / impressions at or above it.
Craswell, Zoeter, Taylor, Ramsey (WSDM 2008).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.clicks.estimation.classes.beside import CountedClasses
from logeval.clicks.estimation.counted import fit_counts
from logeval.clicks.estimation.counts import up_to_first_click
from logeval.clicks.estimation.em import Params
from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.models.model import ChainModel, Parameter
from logeval.clicks.models.users.chain import Formulas
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
    def fit(cls, data: FoldedClicks, options: Options) -> ModelEstimate:
        """Count down to the first click."""
        return fit_counts("CM", data, options, {"w": up_to_first_click(data)})

    @classmethod
    def beside(cls, data: Patterns, options: Options) -> CountedClasses:
        """Classes that differ in what they like; no user of any class clicks twice."""

        def likelihood(mine: Patterns, x: Params) -> Floats:
            shown, first = mine.shown, mine.first_click[mine.shown.pattern]
            w = np.clip(x["w"][shown.item], 1e-12, 1.0 - 1e-12)
            seen = np.where(shown.position == first, np.log(w), np.log1p(-w))
            below = np.where(shown.clicked, np.log(1e-12), 0.0)  # a second click: the same for all
            return sum_by(shown.pattern, np.where(shown.position > first, below, seen), mine.P)

        return CountedClasses(("w",), lambda mine: {"w": up_to_first_click(mine)}, likelihood)
