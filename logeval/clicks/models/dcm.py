"""The dependent click model (DCM): after a click at k the user stops with probability v(k).

Guo, Liu, Wang: Efficient multiple-click models in web search (WSDM 2009); Katariya et al.:
DCM bandits (ICML 2016), section 2. A list satisfies with probability 1 - prod(1 - v_k w(a_k)).

``em``, the default, maximises the likelihood: whether the user stopped at the last click l is
latent,
    P(stopped | clicks) = v_l / (v_l + (1 - v_l) prod_{j>l} (1 - w_j)),
and results below l count as examined with the rest of the weight. ``guo`` (also called ``mle``) is
the counting of Guo et al., equations 13 and 14: everything down to the last click is examined, and
the user stopped there. It maximises a lower bound of the likelihood; the bandit papers use it.

v of the last position cannot be identified: a click there is always the last. Counting gives
1, which puts the best item last in the "optimal" list; so v_K = v_{K-1}, unless the option
``last_termination`` is ``raw``. Lists may differ in length: counting leaves out every click at
the end of its own list, and v of the last position with other clicks holds for all below it.
The plain value is kept as ``raw``.
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
from logeval.clicks.estimation.counts import up_to_last_click
from logeval.clicks.estimation.estimates import (
    EstimationResult,
    Options,
    ParameterEstimate,
    counted,
)
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.estimation.priors import item_prior
from logeval.clicks.models.chain import Formulas, Parameters
from logeval.clicks.models.model import ChainModel, Parameter


@dataclass(frozen=True)
class DCM(ChainModel):
    """Dependent click model of one query."""

    w: Floats  # (L,) attraction
    v: Floats  # (K,) termination

    name = "DCM"
    PARAMETERS = (Parameter("w", "attraction", "item"), Parameter("v", "termination", "position"))
    rewards = ("satisfaction", "clicks", "any-click")
    methods = ("em", "guo")
    ALIASES: ClassVar[dict[str, str]] = {"mle": "guo", "counting": "guo"}
    OPTIONS: ClassVar[dict[str, tuple[str, ...]]] = {"last_termination": ("previous", "raw")}
    formulas = Formulas(  # a click at k ends the search, satisfied, with probability v(k)
        stay_position=lambda x: 1.0 - x["v"],
        sat_position=lambda x: x["v"],
    )

    @classmethod
    def fit(cls, data: FoldedClicks, options: Options) -> EstimationResult:
        """Exact EM from Guo's counting, or that alone."""
        fit = _exact(data, options) if options.method == "em" else _count(data, options)
        return _settle_last(data, options, fit)


def _count(data: FoldedClicks, options: Options) -> EstimationResult:
    clicks, examined = up_to_last_click(data)
    prior = item_prior(options.smoothing, data, clicks, examined)
    w = counted(clicks, examined, *prior.of(data.item_query))

    stops, clicked, _ = _terminations(data, options)
    v, strength = options.counted_shared(stops, clicked)
    return EstimationResult({"w": w, "v": v}, {"w": prior}, {"v": strength})


def _counts(x: Parameters, t: Tally, clicks: Floats, group: Ints) -> Counts:
    stops = t.position_clicked - t.position_went_on
    return {"w": examination(x, t, clicks), "v": Count(stops, t.position_clicked)}


DCM_EM = ChainEM("DCM", ("w",), DCM.formulas, _counts, Slopes(lambda x: {"v": -1.0}))


def _exact(data: FoldedClicks, options: Options) -> EstimationResult:
    counts = _count(data, options).estimates
    start = {
        "w": np.clip(counts["w"].value, 0.0, 1.0 - em.CAP),
        "v": np.clip(counts["v"].value, 0.01, 0.99),  # counting's 1 would never change
    }
    return fit_chain(DCM_EM, data, options, start)


def _settle_last(data: FoldedClicks, options: Options, fit: EstimationResult) -> EstimationResult:
    """Of each group, v of the last position with clicks above a list's end, for all below it.

    Counting leaves out the clicks at the end of their list; to EM they say nothing anyway.
    """
    if options.of_model(DCM)["last_termination"] == "raw":
        return replace(fit, notes=[*fit.notes, "DCM: v_K is not identified; the raw value is used"])
    v, (G, group) = fit.estimates["v"], options.groups(data)
    longest = np.zeros(G, dtype=np.int64)
    np.maximum.at(longest, group, data.positions)
    stops, clicked, forced = _terminations(data, options)
    identified = clicked - forced
    best, replaced = v, np.zeros(v.value.shape, dtype=np.bool_)
    if options.method == "guo":
        best, _ = options.counted_shared(stops - forced, identified)
        replaced = forced > 0
    k = np.arange(data.K)
    last = np.where(identified > 0, k, 0).max(axis=1)[:, None]
    source = np.minimum(k, last)
    replaced |= k > last
    kept = (longest < 2)[:, None]  # nothing to take v from

    def settled(plain: Floats, better: Floats) -> Floats:
        return np.where(kept, plain, np.take_along_axis(better, source, axis=1))

    estimate = ParameterEstimate(
        settled(v.value, best.value),
        settled(v.low, best.low),
        settled(v.high, best.high),
        v.observations,
        np.where(replaced & ~kept & (k < longest[:, None]), v.value, np.nan),
    )
    note = "DCM: v_K is not identified; set to v_{K-1}, the plain estimate is kept as raw"
    return replace(fit, estimates={**fit.estimates, "v": estimate}, notes=[*fit.notes, note])


def _terminations(data: FoldedClicks, options: Options) -> tuple[Floats, Floats, Floats]:
    """Last clicks, clicks, and clicks at the end of their list, by group and position."""
    G, group = options.groups(data)

    def count(block: Patterns) -> tuple[Floats, ...]:
        shown = block.shown
        last = shown.position == block.last_click[shown.pattern]
        end = shown.position == block.length[shown.pattern] - 1
        cell = group[shown.query] * data.K + shown.position
        return tuple(
            sum_by(cell, x, G * data.K).reshape(G, -1)
            for x in (shown.count * last, shown.clicks, shown.clicks * end)
        )

    stops, clicked, forced = data.total(count)
    return stops, clicked, forced
