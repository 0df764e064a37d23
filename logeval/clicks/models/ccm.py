"""The click chain model (CCM): how relevant the clicked item was decides who goes on.

After a skip the user goes on with probability tau1; after a click on an item of relevance w
with probability tau2 (1 - w) + tau3 w. Guo et al.: Click chain model in web search (WWW 2009),
with the point estimate of relevance of Chuklin et al. (2015), section 3.8.

EM over examination (estimation.chain) and, at each click after which going on is observable, over
whether the clicked item was relevant to this user, a second draw with probability w.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from logeval.clicks.estimation.beta import Split
from logeval.clicks.estimation.chain import ChainClicks, ChainEM, Tally, examination
from logeval.clicks.estimation.em import Params
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.latent import Count, Counts
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.models.model import ChainModel, Parameter
from logeval.clicks.users.chain import Formulas, Parameters
from logeval.running.arrays import Floats, Ints, sum_by

TAUS = ("tau1", "tau2", "tau3")


@dataclass(frozen=True)
class CCM(ChainModel):
    """Click chain model of one query."""

    w: Floats  # (L,) attraction and relevance
    tau1: float
    tau2: float
    tau3: float

    name = "CCM"
    examined_by = "decay"
    PARAMETERS = (
        Parameter("w", "attraction", "item"),
        *(Parameter(tau, tau, "scalar") for tau in TAUS),
    )
    rewards = ("clicks", "any-click")
    methods = ("em",)
    formulas = Formulas(  # going on after a click depends on the item alone; nobody is satisfied
        stay_item=lambda x: x["tau2"] * (1.0 - x["w"]) + x["tau3"] * x["w"],
        skip=lambda x: x["tau1"],
        sat_position=lambda x: 0.0,
    )

    @classmethod
    def beside(cls, data: FoldedClicks, options: Options) -> ChainClicks:
        """Exact EM."""
        return ChainClicks(CCM_EM, data, options, partial(_start, options=options))


def _start(data: FoldedClicks, options: Options) -> Params:
    G, _ = options.groups(data)
    taus = {"tau1": np.full(G, 0.9), "tau2": np.full(G, 0.6), "tau3": np.full(G, 0.4)}
    return {"w": np.full(data.I, 0.5), **taus}


def _counts(x: Parameters, t: Tally, group: Ints, split: Split) -> Counts:
    w, tau3, stay = x["w"], x["tau3"], CCM.formulas.stay(x)
    on, off = t.went_on, t.clicked - t.went_on
    if_on = w * tau3 / np.maximum(stay, 1e-300)  # P(relevant | clicked, went on)
    if_off = w * (1.0 - tau3) / np.maximum(1.0 - stay, 1e-300)
    relevant_on, relevant_off = split(on, if_on), split(off, if_off)
    relevant = relevant_on + relevant_off
    G = len(t.skipped)
    on3, all3 = sum_by(group, relevant_on, G), sum_by(group, relevant, G)
    on2, all2 = sum_by(group, on, G) - on3, sum_by(group, t.clicked, G) - all3
    seen = examination(x, t)
    assert seen.missing is not None
    # the variance of relevance given whether the user went on, and by not knowing that
    missing = seen.missing + relevant_on * (1.0 - if_on) + relevant_off * (1.0 - if_off)
    missing += (off - t.left_squared) * (if_on - if_off) ** 2
    return {
        "w": Count(t.clicks + relevant, t.examined + t.clicked, missing),
        "tau1": Count(t.skip_went_on, t.skipped),
        "tau2": Count(on2, all2),
        "tau3": Count(on3, all3),
    }


CCM_EM = ChainEM(("w",), CCM.formulas, _counts, steps=6)
