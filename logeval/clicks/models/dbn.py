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
from functools import partial
from typing import ClassVar

import numpy as np

from logeval.clicks.estimation import em
from logeval.clicks.estimation.beta import Split
from logeval.clicks.estimation.chain import ChainClicks, ChainEM, Tally, examination
from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.latent import Count, Counts, Latent, Ratios
from logeval.clicks.estimation.patterns import FoldedClicks, last_clicks, up_to_last_click
from logeval.clicks.estimation.priors import Pair
from logeval.clicks.models.model import ChainModel, Examined, Parameter
from logeval.clicks.users.chain import Formulas, Parameters
from logeval.running.arrays import Floats, Ints, sum_by

FEW_CLICKS = 200  # per item, with fewer of which intervals of the DBN were too narrow


@dataclass(frozen=True)
class SDBN(ChainModel):
    """Simplified DBN of one query."""

    w: Floats  # (L,) attraction
    s: Floats  # (L,) satisfaction

    name = "SDBN"
    examined_by: ClassVar[Examined | None] = "last-click"
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("w", "attraction", "item"),
        Parameter("s", "satisfaction", "item"),
    )
    methods: ClassVar[tuple[str, ...]] = ("em", "counting")
    formulas: ClassVar[Formulas] = Formulas(  # a satisfied user leaves; all others go on
        stay_item=lambda x: 1.0 - x["s"],
        sat_item=lambda x: x["s"],
    )

    @classmethod
    def beside(cls, data: FoldedClicks, options: Options) -> Latent:
        """Exact EM, or counting."""
        if options.method == "em":
            return ChainClicks(SDBN_EM, data, options, _start)
        with_note = lambda mine, fit: replace(fit, notes=[*fit.notes, FORCED])  # noqa: E731
        return Ratios(data, options, _counted, finish=with_note)


@dataclass(frozen=True)
class DBN(SDBN):
    """DBN of one query."""

    gamma: float  # continuation

    name = "DBN"
    examined_by = "decay"
    PARAMETERS = (*SDBN.PARAMETERS, Parameter("gamma", "continuation", "scalar"))
    methods = ("em",)
    formulas = replace(  # others go on with probability gamma
        SDBN.formulas,
        stay_position=lambda x: x["gamma"],
        skip=lambda x: x["gamma"],
    )

    @classmethod
    def beside(cls, data: FoldedClicks, options: Options) -> ChainClicks:
        """Exact EM."""
        start = partial(_start_dbn, options=options)
        return ChainClicks(DBN_EM, data, options, start, lambda mine, fit: _with_caveat(fit))


def _with_caveat(fit: ModelEstimate) -> ModelEstimate:
    """The fit of a DBN with a note where satisfaction rests on few clicks."""
    clicks = fit.estimates["s"].observations
    typical = float(np.median(clicks[clicks > 0])) if (clicks > 0).any() else 0.0
    if typical >= FEW_CLICKS:
        return fit
    note = (
        f"DBN: half of the clicked items have at most {typical:.0f} clicks that tell of "
        "satisfaction; with so few its values are too low, and 95% intervals too narrow (in "
        "simulations they held the truth in 90 to 100%, those of continuation in 92 to 96%)"
    )
    return replace(fit, notes=[*fit.notes, note])


def _counted(data: FoldedClicks) -> dict[str, Pair]:
    return {"w": up_to_last_click(data), "s": last_clicks(data)}


FORCED = (
    "SDBN: counting takes a click at the end of a list for satisfied, which it need not be; "
    "em does not"
)


def _counts(x: Parameters, t: Tally, group: Ints, split: Split) -> Counts:
    formulas = DBN.formulas if "gamma" in x else SDBN.formulas
    left = 1.0 - formulas.stay(x)
    by_satisfaction = np.divide(x["s"], left, out=np.zeros(len(left)), where=left > 0)
    satisfied = split(t.clicked - t.went_on, by_satisfaction)
    missing = satisfied - by_satisfaction**2 * t.left_squared
    counts = {"w": examination(x, t), "s": Count(satisfied, t.clicked, missing)}
    if "gamma" in x:
        G = len(t.skipped)
        went_on = sum_by(group, t.went_on, G) + t.skip_went_on
        asked = sum_by(group, t.clicked - satisfied, G) + t.skipped
        counts["gamma"] = Count(went_on, asked)
    return counts


SDBN_EM = ChainEM(("w", "s"), SDBN.formulas, _counts)
DBN_EM = ChainEM(("w", "s"), DBN.formulas, _counts, steps=6)


def _start(data: FoldedClicks) -> em.Params:
    return {"w": np.full(data.I, 0.5), "s": np.full(data.I, 0.5)}


def _start_dbn(data: FoldedClicks, options: Options) -> em.Params:
    G, _ = options.groups(data)
    return {**_start(data), "gamma": np.full(G, 0.9)}
