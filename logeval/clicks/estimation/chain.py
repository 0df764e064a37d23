"""Exact inference for chains (DCM, SDBN, DBN, CCM): which results were examined?

Up to the last click l everything was examined. Below it nothing was clicked, and the user may
have left anywhere. With n results and B_k = P(no click from k down | k examined),

    B_n = 1 - w_n,   B_k = (1 - w_k) [1 - skip + skip B_{k+1}]            (backward)
    P(l+1 examined | clicks) = stay_l B_{l+1} / (1 - stay_l + stay_l B_{l+1})
    P(k+1 examined | k examined, clicks) = skip B_{k+1} / (1 - skip + skip B_{k+1})   (forward)

Whether the user would have gone on past the end of the list is not observed and not counted. All
models need from this is in ``Tally``: expected examinations, and expected continuations after
clicks and after skips; or, from uniform numbers, how often they happened in one drawing of what
was not observed, with these probabilities. A model says, by ``ChainEM``, how its parameters make a
chain (its ``Formulas``) and which counts each of them has, given the tally. Guo, Liu, Wang:
Efficient multiple-click models in web search (WSDM 2009) for the DCM; Chapelle and Zhang (WWW 2009)
for the DBN; Guo et al. (WWW 2009) for the CCM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from logeval.clicks.estimation.beta import Split, share_of
from logeval.clicks.estimation.em import Params
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.latent import Count, Counts, Finish, Latent
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.users.chain import Formulas, Parameters, spread
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit


class Chains(NamedTuple):
    """The chains of all queries: by item (I,), by group and position (G, K), and by group (G,)."""

    w: Floats
    stay_item: Floats
    stay_position: Floats
    skip: Floats


class Tally(NamedTuple):
    """Expected (or drawn) counts, by item (I,), by group and position (G, K), and by group (G,)."""

    examined: Floats  # by item
    clicks: Floats  # by item: all of them
    clicked: Floats  # by item: clicks after which going on was observable
    went_on: Floats  # by item: expected continuations after those
    examined_squared: Floats  # by item: sum of P(examined | clicks)^2
    left_squared: Floats  # by item: sum of P(left after the click | clicks)^2
    position_clicked: Floats
    position_went_on: Floats
    skipped: Floats  # by group: expected examined skips, likewise
    skip_went_on: Floats
    log_likelihood: Floats  # by group

    @classmethod
    def zeros(cls, I: int, G: int, K: int) -> Tally:  # noqa: E741 - named as in the formulas
        """Nothing counted yet."""
        shapes = [(I,)] * 6 + [(G, K)] * 2 + [(G,)] * 3
        return cls(*map(np.zeros, shapes))


@njit(cache=True, nogil=True)
def tally_rows(
    items: Ints, clicks: Bools, length: Ints, count: Floats, group: Ints, active: Bools,
    users: Chains, u: Floats, tally: Tally,
) -> None:  # fmt: skip
    """Add the expected counts of every pattern of an active group; with u (P, K), drawn ones."""
    w, stay_item, stay_position = users.w, users.stay_item, users.stay_position
    B = np.empty(items.shape[1] + 1)
    drawn = u.shape[0] > 0
    for p in range(items.shape[0]):
        g = group[p]
        if not active[g]:
            continue
        n, last, m = length[p], -1, count[p]
        if m == 0.0:
            continue
        for k in range(n):
            if clicks[p, k]:
                last = k
        go = users.skip[g]
        likelihood = 1.0
        total = 0.0
        for k in range(last + 1):
            i = items[p, k]
            tally.examined[i] += m
            tally.examined_squared[i] += m
            if not clicks[p, k]:
                tally.skipped[g] += m
                tally.skip_went_on[g] += m
                likelihood *= (1.0 - w[i]) * go
            else:
                likelihood *= w[i]
                tally.clicks[i] += m
                if k < n - 1:
                    tally.clicked[i] += m
                    tally.position_clicked[g, k] += m
                if k < last:
                    tally.went_on[i] += m
                    tally.position_went_on[g, k] += m
                    likelihood *= stay_item[i] * stay_position[g, k]
            if likelihood < 1e-200:
                total += np.log(max(likelihood, 1e-300))
                likelihood = 1.0
        B[n] = 1.0
        for k in range(n - 1, last, -1):
            left = 0.0 if k == n - 1 else (1.0 - go) * (1.0 - B[k + 1])
            B[k] = (1.0 - w[items[p, k]]) * (B[k + 1] + left)
        remain, share = m, 1.0  # users who examine the result
        if last < 0:
            likelihood *= B[0]
        elif last < n - 1:
            i = items[p, last]
            stay = stay_item[i] * stay_position[g, last]
            none = 1.0 - stay + stay * B[last + 1]
            likelihood *= none
            share = stay * B[last + 1] / max(none, 1e-300)
            remain = share_of(m, share, u[p, last] if drawn else -1.0)
            tally.went_on[i] += remain
            tally.left_squared[i] += m * (1.0 - share) ** 2
            tally.position_went_on[g, last] += remain
        for k in range(last + 1, n):
            tally.examined[items[p, k]] += remain
            tally.examined_squared[items[p, k]] += m * share**2
            if k < n - 1:
                tally.skipped[g] += remain
                on = go * B[k + 1] / max(1.0 - go + go * B[k + 1], 1e-300)
                share *= on
                remain = share_of(remain, on, u[p, k] if drawn else -1.0)
                tally.skip_went_on[g] += remain
        tally.log_likelihood[g] += m * (total + np.log(max(likelihood, 1e-300)))


@njit(cache=True, nogil=True)
def log_likelihood_rows(
    items: Ints, clicks: Bools, length: Ints, group: Ints, active: Bools, users: Chains, out: Floats
) -> None:
    """ln P(clicks) of every pattern of an active group; very low for clicks that cannot happen."""
    w, stay_item, stay_position = users.w, users.stay_item, users.stay_position
    for p in range(items.shape[0]):
        g, n, last = group[p], length[p], -1
        if not active[g]:
            continue
        for k in range(n):
            if clicks[p, k]:
                last = k
        go, total = users.skip[g], 0.0
        for k in range(last + 1):
            i = items[p, k]
            likelihood = w[i] if clicks[p, k] else (1.0 - w[i]) * go
            if clicks[p, k] and k < last:
                likelihood *= stay_item[i] * stay_position[g, k]
            total += np.log(max(likelihood, 1e-12))
        none = 1.0  # P(no click from k + 1 down | k + 1 examined)
        for k in range(n - 1, last, -1):
            left = 0.0 if k == n - 1 else (1.0 - go) * (1.0 - none)
            none = (1.0 - w[items[p, k]]) * (none + left)
        if last >= 0 and last < n - 1:
            stay = stay_item[items[p, last]] * stay_position[g, last]
            none = 1.0 - stay + stay * none
        if last < n - 1:
            total += np.log(max(none, 1e-12))
        out[p] = total


def tallied(
    data: FoldedClicks,
    group: Ints,
    active: Bools,
    users: Chains,
    rng: np.random.Generator | None = None,
) -> Tally:
    """The expected counts of active groups; ``group`` is the group of each query.

    With ``rng``, counts are drawn instead.
    """
    tally = Tally.zeros(data.I, len(active), data.K)
    for block in data.blocks():
        u = np.zeros((0, 0)) if rng is None else rng.random(block.items.shape)
        tally_rows(
            block.items, block.clicks, block.length, block.count, group[block.query], active,
            users, u, tally,
        )  # fmt: skip
    return tally


@dataclass(frozen=True)
class ChainEM:
    """A chain model as EM sees it.

    ``counts`` gets the parameters as each item sees them, the tally, the group of each item, and
    how what is not observed is split: as expected, or by drawing.
    """

    items: tuple[str, ...]  # fields of item parameters, the others are shared
    formulas: Formulas
    counts: Callable[[Parameters, Tally, Ints, Split], Counts]
    steps: int = 3  # of a sweep of the posterior


def examination(x: Parameters, t: Tally) -> Count:
    """The counts of attraction: clicks, of expected examinations."""
    return Count(t.clicks, t.examined, x["w"] ** 2 * (t.examined - t.examined_squared))


class ChainClicks(Latent):
    """A chain model beside clicks."""

    def __init__(
        self,
        model: ChainEM,
        data: FoldedClicks,
        options: Options,
        start: Callable[[FoldedClicks], Params],
        finish: Finish | None = None,
    ) -> None:
        super().__init__(data, options, finish)
        self.model, self.items, self.steps = model, model.items, model.steps
        self.size = data.P * data.K
        self._start = start

    def start(self, data: FoldedClicks) -> Params:
        """As the model says."""
        return self._start(data)

    def expected(
        self,
        data: FoldedClicks,
        x: Params,
        active: Bools | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[Counts, Floats]:
        """The counts that the model makes of the tally."""
        active = np.ones(self.G, dtype=np.bool_) if active is None else active
        chains, at_items = self._chains(x)
        t = tallied(data, self.group, active, chains, rng)
        return self.model.counts(at_items, t, self.item_group, Split(rng)), t.log_likelihood

    def log_likelihood(self, data: Patterns, x: Params, active: Bools) -> Floats:
        """ln P(clicks) of each pattern of the active groups; 0 elsewhere."""
        out = np.zeros(data.P)
        group, (chains, _) = self.group[data.query], self._chains(x)
        log_likelihood_rows(data.items, data.clicks, data.length, group, active, chains, out)
        return out

    def _chains(self, x: Params) -> tuple[Chains, Params]:
        """The chains that these parameters make; and the parameters that each item has."""
        f, own = self.model.formulas, {name: x[name] for name in self.items}
        shared = {name: v for name, v in x.items() if name not in own}
        at_items = own | {n: v[self.item_group] for n, v in shared.items() if v.ndim == 1}
        shared = {name: v[:, None] if v.ndim == 1 else v for name, v in shared.items()}
        chains = Chains(
            x["w"],
            spread(f.stay_item(at_items), x["w"].shape),
            spread(f.stay_position(shared), (self.G, self.K)),
            spread(f.skip(shared), (self.G, 1))[:, 0],
        )
        return chains, at_items
