"""A mixture of fitted click models: each user follows one of several models with classes of users.

    P(clicks | list) = sum_m weight_q(m) sum_c share_qm(c) P(clicks | list; class c of member m)

A member predicts well what its own picture of users gets right, and these pictures differ: of two
models that predict equally well, the mean predicts better. The weights of a query are the most
probable ones given the clicks of SERPs that the members did not see, by EM, with

    weight_q ~ Dirichlet(``STRENGTH`` weight),

where ``weight``, that of the log, is fitted along. All classes of all members together are one
``Classes`` of several kinds, with shares weight_q(m) share_qm(c).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.models.classes import BLEND
from logeval.clicks.models.model import ClickModel
from logeval.clicks.users.mixture import Users
from logeval.errors import LogevalError
from logeval.running.arrays import Floats, Ints, sum_by

MEMBERS = "UBM:3+CCM:4+DCM:5+DBN:3"  # by default: each with its number of classes
HELD_OUT = 0.2  # of the SERPs, for the weights; the members are then fitted to all
STRENGTH = 30.0  # SERPs that the weights of all queries count for in one's own
ROUNDS, CHANGE = 2_000, 1e-6  # of EM: it ends when no weight changes by more
THINNED = 10  # steps of the chain per draw


class Blend(ClickModel):
    """Each user follows one of several fitted models, ``mixture(members=ubm:3+dcm:5)``."""

    name = BLEND
    PARAMETERS = ()
    methods = ("em",)

    @property
    def users(self) -> Users:
        """Those of a query are ``Classes`` of several kinds."""
        raise LogevalError("users of a mixture are those of its members, in a fitted model")

    @classmethod
    def fit(cls, data: Any, options: Any) -> Any:
        """Its members are fitted one by one (``fitting.fit_mixture``)."""
        raise LogevalError("a mixture is fitted member by member, with logeval.fit_models")


def weights(log_p: Floats, n: Floats, query: Ints, Q: int) -> tuple[Floats, Floats]:
    """Of members (M,) in the log, and in each query (Q, M), from ln P (P, M) of P patterns."""
    p, M = np.exp(log_p - log_p.max(axis=1, keepdims=True)), log_p.shape[1]
    overall, each = np.full(M, 1.0 / M), np.full((Q, M), 1.0 / M)
    for _ in range(ROUNDS):
        r = each[query] * p
        counted = _by_query(n[:, None] * r / r.sum(axis=1, keepdims=True), query, Q)
        before, overall = overall, (counted.sum(axis=0) + 1.0) / (n.sum() + M)
        each = counted + STRENGTH * overall
        each /= each.sum(axis=1, keepdims=True)
        if np.abs(overall - before).max() < CHANGE:
            break
    return overall, each


def drawn_weights(
    log_p: Floats, n: Floats, query: Ints, overall: Floats, each: Floats, draws: int,
    rng: np.random.Generator,
) -> Floats:  # fmt: skip
    """Draws of the weights of each query (draws, Q, M): Gibbs sampling, from the fitted ones."""
    p, kept = np.exp(log_p - log_p.max(axis=1, keepdims=True)), []
    for _ in range(draws):
        for _ in range(THINNED):
            r = each[query] * p
            dealt = rng.multinomial(n.astype(np.int64), r / r.sum(axis=1, keepdims=True))
            gamma = rng.standard_gamma(_by_query(dealt, query, len(each)) + STRENGTH * overall)
            each = gamma / gamma.sum(axis=1, keepdims=True)
        kept.append(each)
    return np.array(kept)


def _by_query(x: Any, query: Ints, Q: int) -> Floats:
    return np.stack([sum_by(query, column, Q) for column in x.T], axis=1)


def blended(
    each: Floats, drawn: Floats | None, shares: list[ParameterEstimate]
) -> ParameterEstimate:
    """Shares of all classes of all members (Q, C), from the weights and the members' shares."""

    def of(weight: Floats, parts: list[Floats]) -> Floats:
        found = [weight[:, [m]] * part for m, part in enumerate(parts)]
        return np.concatenate(found, axis=1)

    value = of(each, [share.value for share in shares])
    unknown = np.full(value.shape, np.nan)
    if drawn is None:
        return ParameterEstimate(value, unknown, unknown, unknown)
    every = [np.asarray(share.draws) for share in shares]
    draws = np.stack([of(w, [x[d] for x in every]) for d, w in enumerate(drawn)])
    return ParameterEstimate(value, unknown, unknown, unknown, draws=draws)
