"""The position-based model (PBM): P(c_k = 1) = e(k) w(a_k), independently of other clicks.

Richardson, Dominowska, Ragno (WWW 2007); Chuklin et al. (2015), section 3.4. A list earns its
expected clicks, sum_k e_k w(a_k).

``em`` (latent examination) and ``mle`` (L-BFGS on the logits) maximise the same likelihood.
Only the product w e is observed: (w / x, e x) fits as well as (w, e). The values are given with
max e = 1 in each group, and the intervals are those of the parameters on that scale. With
``smoothing="pyclick"`` they are left as EM ends, as PyClick does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.arrays import Floats
from logeval.clicks.estimation import em
from logeval.clicks.estimation.browsing_em import fit_em, fit_mle, fold, variances
from logeval.clicks.estimation.counts import over_expected_clicks
from logeval.clicks.estimation.estimates import EstimationResult, Options, around
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.estimation.priors import Prior, item_prior, shared_prior
from logeval.clicks.models.browsing import Browsing
from logeval.clicks.models.model import ClickModel, Parameter


@dataclass(frozen=True)
class PBM(ClickModel):
    """Position-based model of one query."""

    w: Floats  # (L,) attraction
    e: Floats  # (K,) examination

    name = "PBM"
    PARAMETERS = (Parameter("w", "attraction", "item"), Parameter("e", "examination", "position"))
    rewards = ("clicks", "any-click")
    methods = ("em", "mle")

    @property
    def users(self) -> Browsing:
        """Examination depends on the position alone."""
        return Browsing(self.w, np.repeat(self.e[:, None], self.K + 1, axis=1))

    @classmethod
    def fit(cls, data: Patterns, options: Options) -> EstimationResult:
        """EM or direct maximisation, then the scale."""
        G, group = options.groups(data)
        cells = fold(data, data.shown.position, data.K, G, group)
        prior = item_prior(options.smoothing, data, *over_expected_clicks(data))
        a, b = prior.a[data.item_query], prior.b[data.item_query]
        c = shared_prior(options.smoothing)
        fit = fit_mle if options.method == "mle" else fit_em
        result = fit(cells, a, b, c, options)
        w, e = result.params["w"], result.params["e"].reshape(G, -1)

        seen_i, seen_j = cells.sums(cells.impressions)
        e = np.where(seen_j.reshape(G, -1) > 0, e, 0.0)  # beyond the lists of the group
        best = e.argmax(axis=1)
        notes = em.warning("PBM", result, options.iterations)
        fixed = np.zeros((G, data.K), dtype=np.bool_)
        if options.smoothing != "pyclick":
            scale = np.maximum(e.max(axis=1), 1e-12)
            e, w = e / scale[:, None], w * scale[group[data.item_query]]
            prior = _rescaled(prior, scale[group])
            notes.append("PBM: w and e are scaled so that the largest e is 1")
        fixed[np.arange(G), best] = True
        var_w, var_e = variances(
            cells, np.clip(w, 1e-9, 1 - 1e-9), np.minimum(e, 1 - 1e-9).ravel(), a + b, 2 * c,
            fixed.ravel(),
        )  # fmt: skip
        estimates = {
            "w": around(w, var_w, seen_i),
            "e": around(e, var_e.reshape(G, -1), seen_j.reshape(G, -1)),
        }
        return EstimationResult(
            estimates,
            {"w": prior},
            result.iterations,
            int(result.converged.sum()),
            G,
            result.trace,
            notes,
        )


def _rescaled(prior: Prior, scale: Floats) -> Prior:
    """The prior with the values of unseen items on the new scale."""
    mean = prior.mean * scale
    return Prior(prior.a, prior.b, prior.log_a, prior.log_b, mean, float(mean.mean()))
