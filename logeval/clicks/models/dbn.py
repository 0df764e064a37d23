"""The dynamic Bayesian network models: SDBN, and DBN with a continuation probability.

After a click on item a the user is satisfied with probability s(a) and leaves; otherwise, and
after every skip, the user goes on with probability gamma (1 in the SDBN). With q = w s, a list
satisfies with probability sum_k gamma^(k-1) q_k prod_{i<k} (1 - q_i).
Chapelle and Zhang: A dynamic Bayesian network click model for web search ranking (WWW 2009).

``em``, the default, is exact: leaving after the last click l, where it was not the last result,
was by satisfaction with probability s / (1 - (1 - s) gamma). SDBN by ``counting`` takes the last
click as the satisfied one and everything down to it as examined.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from logeval.arrays import Floats, Ints, sum_by
from logeval.clicks.estimation import em
from logeval.clicks.estimation.chain_em import ChainEM, Count, Counts, examination, fit_chain
from logeval.clicks.estimation.chain_inference import Tally
from logeval.clicks.estimation.chain_information import Slopes
from logeval.clicks.estimation.counts import last_clicks, up_to_last_click
from logeval.clicks.estimation.estimates import EstimationResult, Options, counted
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.estimation.priors import item_prior
from logeval.clicks.models.chain import Formulas, Parameters
from logeval.clicks.models.model import ChainModel, Parameter

# clicks per item, with fewer of which intervals of satisfaction were too narrow, and how often they
# then held the truth (benchmarks/intervals.py)
FEW_CLICKS = {"SDBN": (20, "92%"), "DBN": (200, "82 to 88%, those of continuation in 81 to 88%")}


@dataclass(frozen=True)
class SDBN(ChainModel):
    """Simplified DBN of one query."""

    w: Floats  # (L,) attraction
    s: Floats  # (L,) satisfaction

    name = "SDBN"
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("w", "attraction", "item"),
        Parameter("s", "satisfaction", "item"),
    )
    rewards = ("satisfaction", "clicks", "any-click")
    methods: ClassVar[tuple[str, ...]] = ("em", "counting")
    formulas: ClassVar[Formulas] = Formulas(  # a satisfied user leaves; all others go on
        stay_item=lambda x: 1.0 - x["s"],
        sat_item=lambda x: x["s"],
    )

    @classmethod
    def fit(cls, data: FoldedClicks, options: Options) -> EstimationResult:
        """Exact EM, or counting."""
        if options.method == "em":
            return _with_caveat("SDBN", fit_chain(SDBN_EM, data, options, _start(data)))
        return _count(data, options)


@dataclass(frozen=True)
class DBN(SDBN):
    """DBN of one query."""

    gamma: float  # continuation

    name = "DBN"
    PARAMETERS = (*SDBN.PARAMETERS, Parameter("gamma", "continuation", "scalar"))
    methods = ("em",)
    formulas = replace(  # others go on with probability gamma
        SDBN.formulas,
        stay_position=lambda x: x["gamma"],
        skip=lambda x: x["gamma"],
    )

    @classmethod
    def fit(cls, data: FoldedClicks, options: Options) -> EstimationResult:
        """Exact EM."""
        G, _ = options.groups(data)
        start = {**_start(data), "gamma": np.full(G, 0.9)}
        return _with_caveat("DBN", fit_chain(DBN_EM, data, options, start))


def _with_caveat(name: str, fit: EstimationResult) -> EstimationResult:
    """The fit with a note where intervals of satisfaction rest on too few clicks."""
    clicks = fit.estimates["s"].observations
    typical = float(np.median(clicks[clicks > 0])) if (clicks > 0).any() else 0.0
    few, held = FEW_CLICKS[name]
    if typical >= few:
        return fit
    note = (
        f"{name}: half of the clicked items have at most {typical:.0f} clicks that tell of "
        "satisfaction; with so few its 95% intervals are too narrow (in simulations they held the "
        f"truth in {held})"
    )
    return replace(fit, notes=[*fit.notes, note])


def _count(data: FoldedClicks, options: Options) -> EstimationResult:
    estimates, priors = {}, {}
    for field, counts in (("w", up_to_last_click(data)), ("s", last_clicks(data))):
        prior = priors[field] = item_prior(options.smoothing, data, *counts)
        estimates[field] = counted(*counts, *prior.of(data.item_query))
    return EstimationResult(estimates, priors, notes=[FORCED])


FORCED = (
    "SDBN: counting takes a click at the end of a list for satisfied, which it need not be; "
    "em does not"
)


def _counts(x: Parameters, t: Tally, clicks: Floats, group: Ints) -> Counts:
    formulas = DBN.formulas if "gamma" in x else SDBN.formulas
    left = 1.0 - formulas.stay(x)
    by_satisfaction = np.divide(x["s"], left, out=np.zeros(len(left)), where=left > 0)
    satisfied = (t.clicked - t.went_on) * by_satisfaction
    missing = satisfied - by_satisfaction**2 * t.left_squared
    counts = {"w": examination(x, t, clicks), "s": Count(satisfied, t.clicked, missing)}
    if "gamma" in x:
        G = len(t.skipped)
        went_on = sum_by(group, t.went_on, G) + t.skip_went_on
        asked = sum_by(group, t.clicked - satisfied, G) + t.skipped
        counts["gamma"] = Count(went_on, asked)
    return counts


SDBN_EM = ChainEM("SDBN", ("w", "s"), SDBN.formulas, _counts, Slopes(lambda x: {"s": -1.0}))
DBN_SLOPES = Slopes(
    lambda x: {"s": -x["gamma"], "gamma": 1.0 - x["s"]}, mixed={("s", "gamma"): -1.0}, skip="gamma"
)
DBN_EM = ChainEM("DBN", ("w", "s"), DBN.formulas, _counts, DBN_SLOPES)


def _start(data: FoldedClicks) -> em.Params:
    return {"w": np.full(data.I, 0.5), "s": np.full(data.I, 0.5)}
