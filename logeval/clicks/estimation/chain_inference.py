"""Exact inference for chains (DCM, SDBN, DBN, CCM): which results were examined?

Up to the last click l everything was examined. Below it nothing was clicked, and the user may
have left anywhere. With n results and B_k = P(no click from k down | k examined),

    B_n = 1 - w_n,   B_k = (1 - w_k) [1 - skip + skip B_{k+1}]            (backward)
    P(l+1 examined | clicks) = stay_l B_{l+1} / (1 - stay_l + stay_l B_{l+1})
    P(k+1 examined | k examined, clicks) = skip B_{k+1} / (1 - skip + skip B_{k+1})   (forward)

Whether the user would have gone on past the end of the list is not observed and not counted. All
models need from this is in ``Tally``: expected examinations, and expected continuations after
clicks and after skips; or, from uniform numbers, how often they happened in one drawing of what
was not observed, with these probabilities. Guo, Liu, Wang: Efficient multiple-click models in web
search (WSDM 2009) for the DCM; Chapelle and Zhang (WWW 2009) for the DBN; Guo et al. (WWW 2009)
for the CCM.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.clicks.estimation.binomial import share_of
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit


@dataclass(frozen=True)
class Tally:
    """Expected (or drawn) counts, by item (I,), by group and position (G, K), and by group (G,)."""

    examined: Floats  # by item
    clicked: Floats  # by item: clicks after which going on was observable
    went_on: Floats  # by item: expected continuations after those
    examined_squared: Floats  # by item: sum of P(examined | clicks)^2
    left_squared: Floats  # by item: sum of P(left after the click | clicks)^2
    position_clicked: Floats
    position_went_on: Floats
    skipped: Floats  # by group: expected examined skips, likewise
    skip_went_on: Floats
    log_likelihood: Floats  # by group


@njit(cache=True, nogil=True)
def tally_rows(
    items: Ints,
    clicks: Bools,
    length: Ints,
    count: Floats,
    group: Ints,
    active: Bools,
    w: Floats,
    stay_item: Floats,
    stay_position: Floats,
    skip: Floats,
    u: Floats,
    examined: Floats,
    clicked: Floats,
    went_on: Floats,
    examined_squared: Floats,
    left_squared: Floats,
    position_clicked: Floats,
    position_went_on: Floats,
    skipped: Floats,
    skip_went_on: Floats,
    log_likelihood: Floats,
) -> None:
    """Add the expected counts of every pattern of an active group; with u (P, K), drawn ones."""
    B = np.empty(items.shape[1] + 1)
    drawn = u.shape[0] > 0
    for p in range(items.shape[0]):
        g = group[p]
        if not active[g]:
            continue
        n, last, m = length[p], -1, count[p]
        for k in range(n):
            if clicks[p, k]:
                last = k
        go = skip[g]
        likelihood = 1.0
        total = 0.0
        for k in range(last + 1):
            i = items[p, k]
            examined[i] += m
            examined_squared[i] += m
            if not clicks[p, k]:
                skipped[g] += m
                skip_went_on[g] += m
                likelihood *= (1.0 - w[i]) * go
            else:
                likelihood *= w[i]
                if k < n - 1:
                    clicked[i] += m
                    position_clicked[g, k] += m
                if k < last:
                    went_on[i] += m
                    position_went_on[g, k] += m
                    likelihood *= stay_item[i] * stay_position[g, k]
            if likelihood < 1e-200:
                total += np.log(max(likelihood, 1e-300))
                likelihood = 1.0
        B[n] = 1.0
        for k in range(n - 1, last, -1):
            left = 0.0 if k == n - 1 else (1.0 - go) * (1.0 - B[k + 1])
            B[k] = (1.0 - w[items[p, k]]) * (B[k + 1] + left)
        users, here = m, 1.0  # who examine the result, and their share
        if last < 0:
            likelihood *= B[0]
        elif last < n - 1:
            i = items[p, last]
            stay = stay_item[i] * stay_position[g, last]
            none = 1.0 - stay + stay * B[last + 1]
            likelihood *= none
            here = stay * B[last + 1] / max(none, 1e-300)
            users = share_of(m, here, u[p, last] if drawn else -1.0)
            went_on[i] += users
            left_squared[i] += m * (1.0 - here) ** 2
            position_went_on[g, last] += users
        for k in range(last + 1, n):
            examined[items[p, k]] += users
            examined_squared[items[p, k]] += m * here**2
            if k < n - 1:
                skipped[g] += users
                on = go * B[k + 1] / max(1.0 - go + go * B[k + 1], 1e-300)
                here *= on
                users = share_of(users, on, u[p, k] if drawn else -1.0)
                skip_went_on[g] += users
        log_likelihood[g] += m * (total + np.log(max(likelihood, 1e-300)))


def tally(
    data: FoldedClicks,
    group: Ints,
    active: Bools,
    w: Floats,
    stay_item: Floats,
    stay_position: Floats,
    skip: Floats,
    rng: np.random.Generator | None = None,
) -> Tally:
    """The expected counts of active groups; ``group`` is the group of each query.

    With ``rng``, counts are drawn instead.
    """
    G = len(active)
    by_item = [np.zeros(data.I) for _ in range(5)]
    by_position = [np.zeros((G, data.K)) for _ in range(2)]
    by_group = [np.zeros(G) for _ in range(3)]
    for block in data.blocks():
        tally_rows(
            block.items,
            block.clicks,
            block.length,
            block.count,
            group[block.query],
            active,
            w,
            stay_item,
            stay_position,
            skip,
            np.zeros((0, 0)) if rng is None else rng.random(block.items.shape),
            *by_item,
            *by_position,
            *by_group,
        )
    return Tally(*by_item, *by_position, *by_group)
