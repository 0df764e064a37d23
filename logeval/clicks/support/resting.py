"""Parameters of a fit that rest on the prior more than on the clicks.

The attraction of items, and the examination of places, that the clicks do not compare with the
largest part of their query (``identified``); likewise the continuation of users (gamma, tau1) that
nothing decides; and every parameter with fewer observations than its prior counts for.
"""

from __future__ import annotations

import numpy as np

from logeval.clicks.estimation.estimates import ModelEstimate
from logeval.clicks.models.model import ClickModel, Parameter
from logeval.clicks.support.identified import Identified
from logeval.running.arrays import Bools, Ints

CONTINUATION = ("gamma", "tau1")  # of users who did not click


def resting(
    kind: type[ClickModel], fit: ModelEstimate, found: Identified | None, item_query: Ints
) -> dict[str, Bools]:
    """By field of a parameter, in the shape of its estimate: which values rest on the prior."""
    return {p.field: _resting(p, fit, found, item_query) for p in kind.PARAMETERS}


def _resting(p: Parameter, fit: ModelEstimate, found: Identified | None, item_query: Ints) -> Bools:
    seen = fit.estimates[p.field].observations
    if p.kind == "item":
        strength = fit.priors[p.field].strength[item_query]
    else:
        strength = np.broadcast_to(fit.shared_strength.get(p.field, 0.0), seen.shape)
    marked: Bools = ~(seen >= strength)
    if found is None:
        return marked
    if p.name == "attraction" and p.kind == "item":
        marked = marked | ~found.items
    if p.name == "examination" and found.places is not None:
        marked = marked | ~found.places.reshape(marked.shape)
    if p.field in CONTINUATION and found.decay is not None:
        marked = marked | ~found.decay
    return marked
