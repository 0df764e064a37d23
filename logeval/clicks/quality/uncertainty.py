"""How far the true parameters may be from the fitted ones, jointly, from the lists fitted to.

The logits of the parameters are taken as normal around their estimates with the inverse of

    J = sum over training SERPs of E[score score'] + prior

as covariance: Fisher's expected information, by simulated users of the fitted model, with the
prior's (a + b) x (1 - x) added. Marginal intervals would not do: in a PBM attraction and
examination share a scale that is hardly known, while their product is known well.
Items of different queries meet only in parameters that all queries share (scope ``pooled``), so J
is an arrow, and is factored query by query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.model import ClickModel
from logeval.clicks.quality.sensitivity import (
    item_fields,
    logit_values,
    score,
    shared_size,
    sized_like_score,
)
from logeval.clicks.quality.simulate import BLOCK, QueryRows
from logeval.log.queries import Query
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit

USERS = 10  # simulated per pattern, at least
MAX_DENSE = 2500  # beyond this many parameters of a query, their correlations are ignored
FLAT = 2.0  # a + b of Beta(1, 1), for parameters of models from elsewhere


@njit(cache=True, nogil=True)
def add_outer(score: Floats, parameter: Ints, weight: Floats, out: Floats) -> None:
    """Add weight * score score' of each row."""
    for i in range(score.shape[0]):
        for a in range(score.shape[1]):
            x = weight[i] * score[i, a]
            for b in range(score.shape[1]):
                out[parameter[i, a], parameter[i, b]] += x * score[i, b]


def information(
    model: ClickModel, query: Query, train: QueryRows, K: int, rng: np.random.Generator
) -> Floats:
    """The expected information of the training lists of one query, (P, P)."""
    P = model.L * len(item_fields(type(model))) + shared_size(type(model), K)
    out = np.zeros((P, P))
    for b in train.batches(query, model):
        times = np.maximum(b.count, USERS).astype(np.int64)
        each = np.repeat(np.arange(len(times)), times)
        for start in range(0, len(each), BLOCK):
            rows = each[start : start + BLOCK]
            A = b.A[rows]
            clicks = model.sample(A, rng.random(A.shape))
            s, parameter = score(model, A, clicks, K)
            add_outer(s, parameter, b.count[rows] / times[rows], out)
    return out


def prior_information(fitted: FittedModel, query: Query, model: ClickModel, K: int) -> Floats:
    """(a + b) x (1 - x) of each parameter of a query; at least that of one pseudo-count."""
    of_items, shared = [], []
    for p in model.PARAMETERS:
        prior = fitted.report.get("priors", {}).get(p.name, {})
        if p.kind == "item":
            pair = prior.get("queries", {}).get(str(query), [1.0, 1.0])
            of_items.append(np.full(model.L, sum(pair)))
        else:
            shared.append(sized_like_score(p, prior.get("strength", FLAT), K))
    strength = np.maximum(np.concatenate([*of_items, *shared]), 1.0)
    x = logit_values(model, K)
    return strength * np.maximum(x * (1 - x), 1e-6)


@dataclass(frozen=True)
class Factor:
    """The information of one query, factored: of its own parameters, and their tie to others."""

    own: Floats  # (P, P) lower Cholesky factor, or (P,) the diagonal
    tie: Floats  # (P, S) own^-1 cross, for the S parameters that all queries share

    def errors(self, z: Floats, shared: Floats) -> Floats:
        """Errors of the own parameters from normal z (P, n), given those of the shared ones."""
        if self.own.ndim == 1:
            own = z / np.sqrt(self.own)[:, None]
        else:
            own = solve_triangular(self.own, z, lower=True, trans="T")
        return np.concatenate([own - self.tie @ shared, shared])


class ParameterErrors:
    """Draws of (true - fitted) logits of one model: n for each query, the same for shared ones."""

    def __init__(
        self, fitted: FittedModel, train: QueryRows, queries: list[Query], K: int, n: int, seed: int
    ) -> None:
        self._name, self._seed, self._n = fitted.model, seed, n
        self._factors: dict[Query, Factor] = {}
        pooled = fitted.scope == "pooled"
        S = shared_size(fitted.kind, K) if pooled else 0
        schur, wanted = np.zeros((S, S)), set(queries)
        for query in fitted.queries if pooled else queries:
            model = fitted.of(query, unseen=True, K=K)
            rng = seeds.generator(seed, "checks", "information", fitted.model, str(query))
            J = information(model, query, train, K, rng)
            prior = prior_information(fitted, query, model, K)
            P = len(J) - S
            J[np.arange(P), np.arange(P)] += prior[:P]
            factor, added = _eliminated(J, P)
            schur += added
            if query in wanted:
                self._factors[query] = factor
        self._shared = np.zeros((S, n))
        if S:
            schur[np.diag_indices(S)] += prior[P:]
            z = seeds.generator(seed, "checks", "shared", fitted.model).standard_normal((S, n))
            self._shared[:] = solve_triangular(_cholesky(schur), z, lower=True, trans="T")

    def draw(self, query: Query) -> Floats:
        """The errors of all parameters of a query, in the numbering of ``score``, (P, n)."""
        factor = self._factors[query]
        rng = seeds.generator(self._seed, "checks", "errors", self._name, str(query))
        return factor.errors(rng.standard_normal((len(factor.own), self._n)), self._shared)


def _eliminated(J: Floats, P: int) -> tuple[Factor, Floats]:
    """The first P parameters factored, and what is left for the others."""
    own, cross, rest = J[:P, :P], J[:P, P:], J[P:, P:]
    if P > MAX_DENSE:
        diagonal = np.diag(own).copy()
        tie = cross / diagonal[:, None]
        return Factor(diagonal, tie), rest - cross.T @ tie
    lower = _cholesky(own)
    tie = cho_solve((lower, True), cross) if cross.shape[1] else cross
    return Factor(lower, tie), rest - cross.T @ tie


def _cholesky(J: Floats) -> Floats:
    """The lower factor; the prior makes J positive definite, up to rounding."""
    ridge = 1e-10 * float(np.abs(np.diag(J)).max(initial=1.0))
    lower, _ = cho_factor(J + ridge * np.eye(len(J)), lower=True)
    return np.tril(lower)
