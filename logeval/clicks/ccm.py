"""The click chain model (CCM): how relevant the clicked item was decides who goes on.

After a skip the user goes on with probability tau1; after a click on an item of relevance w
with probability tau2 (1 - w) + tau3 w. Guo et al.: Click chain model in web search (WWW 2009),
with the point estimate of relevance of Chuklin et al. (2015), section 3.8.

EM over examination (chain_em) and, at each click after which going on is observable, over
whether the clicked item was relevant to this user, a second draw with probability w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.arrays import Bools, Floats, sum_by
from logeval.clicks import em
from logeval.clicks.browsing_em import penalty, ratio
from logeval.clicks.chain import Chain
from logeval.clicks.chain_em import tally
from logeval.clicks.chain_information import Local, variances
from logeval.clicks.counts import up_to_last_click
from logeval.clicks.estimates import Fit, Options, around
from logeval.clicks.model import ClickModel, Parameter
from logeval.clicks.patterns import Patterns
from logeval.clicks.priors import item_prior, shared_prior

TAUS = ("tau1", "tau2", "tau3")


@dataclass(frozen=True)
class CCM(ClickModel):
    """Click chain model of one query."""

    w: Floats  # (L,) attraction and relevance
    tau1: float
    tau2: float
    tau3: float

    name = "CCM"
    PARAMETERS = (
        Parameter("w", "attraction", "item"),
        *(Parameter(tau, tau, "scalar") for tau in TAUS),
    )
    rewards = ("clicks", "any-click")
    methods = ("em",)

    @property
    def users(self) -> Chain:
        """Going on after a click depends on the item alone."""
        stay = self.tau2 * (1.0 - self.w) + self.tau3 * self.w
        one = np.ones(self.K)
        return Chain(self.w, stay, one, float(self.tau1), np.ones(self.L), 0.0 * one)

    @classmethod
    def fit(cls, data: Patterns, options: Options) -> Fit:
        """Exact EM."""
        return _exact(data, options)


def _push(x: dict[str, Floats]) -> tuple[Floats, Floats, Floats]:
    w = x["w"]
    return w, x["tau2"][:, None] * (1.0 - w) + x["tau3"][:, None] * w, x["tau1"]


def _pull(x: dict[str, Floats], dw: Floats, dstay: Floats, dskip: Floats) -> dict[str, Floats]:
    return {
        "w": dw + dstay * (x["tau3"] - x["tau2"])[:, None],
        "tau1": dskip,
        "tau2": (dstay * (1.0 - x["w"])).sum(axis=1),
        "tau3": (dstay * x["w"]).sum(axis=1),
    }


LOCAL = Local(_push, _pull)


def _exact(data: Patterns, options: Options) -> Fit:
    G, group = options.groups(data)
    item_group = group[data.item_query]
    prior = item_prior(options.smoothing, data, *up_to_last_click(data))
    a, b = prior.a[data.item_query], prior.b[data.item_query]
    c = shared_prior(options.smoothing)
    clicks = data.sum_items(data.shown.clicks)
    everywhere = np.ones((G, data.K))

    def by_group(x: Floats) -> Floats:
        return sum_by(item_group, x, G)

    def step(x: em.Params, active: Bools) -> tuple[em.Params, Floats]:
        w, t2, t3 = x["w"], x["tau2"][item_group], x["tau3"][item_group]
        stay = t2 * (1.0 - w) + t3 * w
        t = tally(data, group, active, w, stay, everywhere, x["tau1"])
        likelihood = t.log_likelihood + by_group(penalty(w, a, b))
        likelihood += sum(penalty(x[tau], c, c) for tau in TAUS)
        on, off = t.went_on, t.clicked - t.went_on
        relevant_on = on * w * t3 / np.maximum(stay, 1e-300)
        relevant_off = off * w * (1.0 - t3) / np.maximum(1.0 - stay, 1e-300)
        relevant = relevant_on + relevant_off
        on3, all3 = by_group(relevant_on), by_group(relevant)
        on2, all2 = by_group(on) - on3, by_group(t.clicked) - all3
        new = {
            "w": ratio(clicks + relevant + a, t.examined + t.clicked + a + b),
            "tau1": ratio(t.skip_went_on + c, t.skipped + 2 * c),
            "tau2": ratio(on2 + c, all2 + 2 * c),
            "tau3": ratio(on3 + c, all3 + 2 * c),
        }
        return new, likelihood

    start = {"w": np.full(data.I, 0.5), "tau1": np.full(G, 0.9)}
    start |= {"tau2": np.full(G, 0.6), "tau3": np.full(G, 0.4)}
    groups = {"w": item_group} | {tau: np.arange(G) for tau in TAUS}
    result = em.run(step, start, groups, G, options.iterations, options.tolerance)
    x = result.params
    stay = x["tau2"][item_group] * (1 - x["w"]) + x["tau3"][item_group] * x["w"]
    active = np.ones(G, dtype=np.bool_)
    t = tally(data, group, active, x["w"], stay, everywhere, x["tau1"])
    weight = {"w": a + b} | {tau: np.full(G, 2 * c) for tau in TAUS}
    shared = {tau: x[tau] for tau in TAUS}
    spread = variances(data, group, G, LOCAL, {"w": x["w"]}, shared, weight)
    clicked = by_group(t.clicked)
    seen = {"w": t.examined, "tau1": t.skipped, "tau2": clicked, "tau3": clicked}
    return Fit(
        {name: around(x[name], spread[name], seen[name]) for name in ("w", *TAUS)},
        {"w": prior},
        result.iterations,
        int(result.converged.sum()),
        G,
        result.trace,
        em.warning("CCM", result, options.iterations),
    )
