"""PBM-TS: Thompson sampling from the posterior of the position-based model, kappa known.

With a uniform prior, theta_i has density proportional to

    theta^S_i prod_l (1 - kappa_l theta)^(N_il - S_il)    on (0, 1)

(Lagree, Vernade, Cappe 2016, section 5). The K largest draws go to the positions in order of kappa.

The density is log-concave. It is tabulated in ``CELLS`` equal cells between the two points where
it has fallen by e^-32 from its mode, eight standard deviations where it is nearly normal; a
uniform finds its cell and a place in it. A click or its absence adds one term to the logarithm in
every cell. The cells are laid anew when a border has risen above e^-18 of the largest, or fewer
than half of the cells lie above that.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
from numba import njit

from logeval.arrays import Floats, Ints
from logeval.policies.ranking.examination import views, views_of
from logeval.policies.ranking.pbm_bandits import KAPPA, lag_of, learn
from logeval.policies.ranking.places import insert_best, places, read, show
from logeval.policies.setting import Setting
from logeval.uniforms import Uniforms

CELLS = 128
DROP, RISEN = 32.0, 18.0  # logarithms: of the borders when laid, and when to lay anew


class Posteriors(NamedTuple):
    """Tabulated densities, of all replicas or of one."""

    low: Floats  # (L,)
    high: Floats  # (L,)
    log: Floats  # (L, CELLS) logarithm of the density in the middle of each cell
    mass: Floats  # (L, CELLS) cumulative


def flat(R: int, L: int) -> Posteriors:
    """Uniform on (0, 1): 2 KB per item."""
    mass = np.tile(np.arange(1.0, CELLS + 1.0), (R, L, 1))
    return Posteriors(np.zeros((R, L)), np.ones((R, L)), np.zeros((R, L, CELLS)), mass)


@njit(cache=True, nogil=True)
def log_density(x, S, missed, kappa):
    """S log x + sum_l missed_l log(1 - kappa_l x)."""
    value = S * math.log(x) if S > 0.0 else 0.0
    for k in range(kappa.shape[0]):
        if missed[k] > 0:
            left = 1.0 - kappa[k] * x
            if left <= 0.0:
                return -math.inf
            value += missed[k] * math.log(left)
    return value


@njit(cache=True, nogil=True)
def mode(S, missed, kappa):
    """Where the density is largest, by bisection of its slope."""
    low, high = 0.0, 1.0
    for _ in range(50):
        x = 0.5 * (low + high)
        slope = S / x
        for k in range(kappa.shape[0]):
            slope -= missed[k] * kappa[k] / (1.0 - kappa[k] * x)
        if slope > 0.0:
            low = x
        else:
            high = x
    return 0.5 * (low + high)


@njit(cache=True, nogil=True)
def border(top, end, S, missed, kappa):
    """The point between the mode and an end of [0, 1] where the density has fallen, or the end."""
    level = log_density(top, S, missed, kappa) - DROP
    inside, outside = top, end
    if (end > 0.0 or S == 0.0) and log_density(end, S, missed, kappa) >= level:
        return end
    for _ in range(40):
        x = 0.5 * (inside + outside)
        if log_density(x, S, missed, kappa) >= level:
            inside = x
        else:
            outside = x
    return outside


@njit(cache=True, nogil=True)
def lay(i, views, p):
    """New cells for item i."""
    S, missed, kappa = views.clicks[i], views.N[i] - views.S[i], views.kappa
    top = mode(S, missed, kappa)
    p.low[i] = border(top, 0.0, S, missed, kappa)
    p.high[i] = border(top, 1.0, S, missed, kappa)
    width = (p.high[i] - p.low[i]) / CELLS
    for g in range(CELLS):
        p.log[i, g] = log_density(p.low[i] + (g + 0.5) * width, S, missed, kappa)


@njit(cache=True, nogil=True)
def fits(i, p):
    """Whether the cells of item i still cover its density, and not much more."""
    log = p.log[i]
    top = log.max()
    if p.low[i] > 0.0 and log[0] > top - RISEN:
        return False
    if p.high[i] < 1.0 and log[CELLS - 1] > top - RISEN:
        return False
    return (log > top - RISEN).sum() >= CELLS // 2


@njit(cache=True, nogil=True)
def add_up(i, p):
    """The cumulative masses of item i."""
    top, total = p.log[i].max(), 0.0
    for g in range(CELLS):
        total += math.exp(p.log[i, g] - top)
        p.mass[i, g] = total


@njit(cache=True, nogil=True)
def observe(i, k, click, views, p):
    """One more view of item i at position k."""
    width = (p.high[i] - p.low[i]) / CELLS
    for g in range(CELLS):
        x = p.low[i] + (g + 0.5) * width
        p.log[i, g] += math.log(x) if click else math.log(1.0 - views.kappa[k] * x)
    if not fits(i, p):
        lay(i, views, p)
    add_up(i, p)


@njit(cache=True, nogil=True)
def draw(u, low, high, mass):
    """The place of the uniform u."""
    target = u * mass[CELLS - 1]
    g = min(np.searchsorted(mass, target, side="right"), CELLS - 1)
    before = mass[g - 1] if g > 0 else 0.0
    inside = (target - before) / (mass[g] - before)
    return low + (g + inside) * (high - low) / CELLS


@njit(cache=True, nogil=True)
def draw_all(u, labels, views, p, held, theta, A):
    """The largest draws of each replica."""
    for r in range(A.shape[0]):
        size = 0
        for i in range(labels.L[r]):
            x = draw(u[r, i], p.low[r, i], p.high[r, i], p.mass[r, i])
            size = insert_best(held, theta, size, i, x)
        show(held, labels.item[r], views.best[r], A[r])


@njit(cache=True, nogil=True)
def learn_all(t, lag, A, clicks, labels, views, p, item, c):
    """``learn``, and the posteriors of what was shown; of all items if kappa is another one."""
    for r in range(A.shape[0]):
        read(A[r], clicks[r], labels.label[r], labels.order, item, c)
        L = labels.L[r]
        mine, q = views_of(r, L, views), Posteriors(p.low[r], p.high[r], p.log[r], p.mass[r])
        if learn(t, lag, item, c, mine):
            for i in range(L):
                lay(i, mine, q)
                add_up(i, q)
        else:
            for k in range(item.shape[0]):
                observe(item[k], k, c[k], mine, q)


class PBMTS:
    """PBM-TS; ``kappa=estimated`` learns the examination, every ``lag`` steps."""

    PARAMETERS: ClassVar = {"kappa": KAPPA, "lag": int}
    NEEDS: ClassVar = ("examination",)

    def __init__(self, setting: Setting, *, kappa: str = "known", lag: int = 1) -> None:
        R, K, L = setting.R, setting.K, int(max(setting.L))
        self._labels = places(setting)
        self._views = views(setting, kappa)
        self._lag = lag_of(kappa, lag)
        self._posteriors = flat(R, L)
        self._uniforms = Uniforms(setting.generators, setting.L)
        self._held, self._c = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._theta = np.empty(K)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        draw_all(
            self._uniforms.at(t), self._labels, self._views, self._posteriors, self._held,
            self._theta, self._A,
        )  # fmt: skip
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        learn_all(
            t, self._lag, A, clicks, self._labels, self._views, self._posteriors, self._held,
            self._c,
        )  # fmt: skip
