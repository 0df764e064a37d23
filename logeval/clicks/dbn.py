"""The dynamic Bayesian network models: SDBN, and DBN with a continuation probability.

After a click on item a the user is satisfied with probability s(a) and leaves; otherwise, and
after every skip, the user goes on with probability gamma (1 in the SDBN). With q = w s, a list
satisfies with probability sum_k gamma^(k-1) q_k prod_{i<k} (1 - q_i).
Chapelle and Zhang: A dynamic Bayesian network click model for web search ranking (WWW 2009).

SDBN by ``counting`` takes the last click as the satisfied one and everything down to it as
examined. ``em`` is exact: leaving after the last click l, where it was not the last result,
was by satisfaction with probability s / (1 - (1 - s) gamma).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from logeval.arrays import Bools, Floats, sum_by
from logeval.clicks import em
from logeval.clicks.browsing_em import penalty, ratio
from logeval.clicks.chain import Chain
from logeval.clicks.chain_em import Tally, tally
from logeval.clicks.chain_information import Local, variances
from logeval.clicks.counts import last_clicks, up_to_last_click
from logeval.clicks.estimates import Fit, Options, around, counted
from logeval.clicks.model import ClickModel, Parameter
from logeval.clicks.patterns import Patterns
from logeval.clicks.priors import item_prior, shared_prior


@dataclass(frozen=True)
class SDBN(ClickModel):
    """Simplified DBN of one query."""

    w: Floats  # (L,) attraction
    s: Floats  # (L,) satisfaction

    name = "SDBN"
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("w", "attraction", "item"),
        Parameter("s", "satisfaction", "item"),
    )
    rewards = ("satisfaction", "clicks", "any-click")
    methods: ClassVar[tuple[str, ...]] = ("counting", "em")

    @property
    def users(self) -> Chain:
        """A satisfied user leaves; all others go on."""
        return _users(self, 1.0)

    @classmethod
    def fit(cls, data: Patterns, options: Options) -> Fit:
        """Count, or exact EM."""
        return _exact(data, options, cls.name) if options.method == "em" else _count(data, options)


@dataclass(frozen=True)
class DBN(SDBN):
    """DBN of one query."""

    gamma: float  # continuation

    name = "DBN"
    PARAMETERS = (*SDBN.PARAMETERS, Parameter("gamma", "continuation", "scalar"))
    methods = ("em",)

    @property
    def users(self) -> Chain:
        """A satisfied user leaves; others go on with probability gamma."""
        return _users(self, float(self.gamma))


def _users(model: SDBN, gamma: float) -> Chain:
    one = np.ones(model.K)
    return Chain(model.w, 1.0 - model.s, one * gamma, gamma, model.s, one)


def _count(data: Patterns, options: Options) -> Fit:
    estimates, priors = {}, {}
    for field, counts in (("w", up_to_last_click(data)), ("s", last_clicks(data))):
        prior = priors[field] = item_prior(options.smoothing, data, *counts)
        estimates[field] = counted(*counts, prior.a[data.item_query], prior.b[data.item_query])
    return Fit(estimates, priors)


SDBN_LOCAL = Local(
    push=lambda x: (x["w"], 1.0 - x["s"], np.ones(len(x["w"]))),
    pull=lambda x, dw, dstay, dskip: {"w": dw, "s": -dstay},
)
DBN_LOCAL = Local(
    push=lambda x: (x["w"], (1.0 - x["s"]) * x["gamma"][:, None], x["gamma"]),
    pull=lambda x, dw, dstay, dskip: {
        "w": dw,
        "s": -dstay * x["gamma"][:, None],
        "gamma": (dstay * (1.0 - x["s"])).sum(axis=1) + dskip,
    },
)


def _exact(data: Patterns, options: Options, name: str) -> Fit:
    G, group = options.groups(data)
    of_item, item_group, full = data.item_query, group[data.item_query], name == "DBN"
    prior_w = item_prior(options.smoothing, data, *up_to_last_click(data))
    prior_s = item_prior(options.smoothing, data, *last_clicks(data))
    a, b = prior_w.a[of_item], prior_w.b[of_item]
    sa, sb = prior_s.a[of_item], prior_s.b[of_item]
    c = shared_prior(options.smoothing)
    clicks = data.sum_items(data.shown.clicks)
    everywhere, ones = np.ones((G, data.K)), np.ones(G)

    def expected(x: em.Params, active: Bools) -> tuple[Tally, Floats]:
        gamma = x.get("gamma", ones)
        stay = 1.0 - x["s"]
        t = tally(data, group, active, x["w"], stay, everywhere * gamma[:, None], gamma)
        left = 1.0 - stay * gamma[item_group]
        satisfied = np.divide(x["s"], left, out=np.zeros(data.I), where=left > 0)
        return t, (t.clicked - t.went_on) * satisfied

    def step(x: em.Params, active: Bools) -> tuple[em.Params, Floats]:
        t, satisfied = expected(x, active)
        item_penalty = penalty(x["w"], a, b) + penalty(x["s"], sa, sb)
        likelihood = t.log_likelihood + sum_by(item_group, item_penalty, G)
        new = {
            "w": ratio(clicks + a, t.examined + a + b),
            "s": ratio(satisfied + sa, t.clicked + sa + sb),
        }
        if full:
            likelihood += penalty(x["gamma"], c, c)
            went_on = sum_by(item_group, t.went_on, G) + t.skip_went_on
            unsatisfied = sum_by(item_group, t.clicked - satisfied, G)
            new["gamma"] = ratio(went_on + c, unsatisfied + t.skipped + 2 * c)
        return new, likelihood

    start = {"w": np.full(data.I, 0.5), "s": np.full(data.I, 0.5)}
    groups = {"w": item_group, "s": item_group}
    if full:
        start["gamma"], groups["gamma"] = np.full(G, 0.9), np.arange(G)
    result = em.run(step, start, groups, G, options.iterations, options.tolerance)
    x = result.params
    t, _ = expected(x, np.ones(G, dtype=np.bool_))
    shared = {"gamma": x["gamma"]} if full else {}
    spread = variances(
        data,
        group,
        G,
        DBN_LOCAL if full else SDBN_LOCAL,
        {"w": x["w"], "s": x["s"]},
        shared,
        {"w": a + b, "s": sa + sb, "gamma": np.full(G, 2 * c)},
    )
    estimates = {
        "w": around(x["w"], spread["w"], t.examined),
        "s": around(x["s"], spread["s"], t.clicked),
    }
    if full:
        passed = sum_by(item_group, t.clicked, G) + t.skipped
        estimates["gamma"] = around(x["gamma"], spread["gamma"], passed)
    return Fit(
        estimates,
        {"w": prior_w, "s": prior_s},
        result.iterations,
        int(result.converged.sum()),
        G,
        result.trace,
        em.warning(name, result, options.iterations),
    )
