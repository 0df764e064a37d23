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
from typing import Any, NamedTuple

import numpy as np

from logeval.policies.pbm.kernel import PBM, Views, learn
from logeval.policies.setting import Setting
from logeval.policies.shared.memory import floats, ints
from logeval.policies.shared.places import insert_best, show
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views

CELLS = 128
DROP, RISEN = 32.0, 18.0  # logarithms: of the borders when laid, and when to lay anew


class Posteriors(NamedTuple):
    """Tabulated densities of one replica, 2 KB per item."""

    low: Floats = floats("L")
    high: Floats = floats("L", fill=1.0)
    log: Floats = floats("L", CELLS)  # logarithm of the density in the middle of each cell
    mass: Floats = floats("L", CELLS)  # cumulative
    views: Views = Views()
    held: Ints = ints("K", shared=True)
    value: Floats = floats("K", shared=True)


@njit_views
def log_density(x, i, views):
    """S_i log x + sum_l (N_il - S_il) log(1 - kappa_l x)."""
    value = views.clicks[i] * math.log(x) if views.clicks[i] > 0.0 else 0.0
    for k in range(views.kappa.shape[0]):
        missed = views.N[i, k] - views.S[i, k]
        if missed > 0:
            left = 1.0 - views.kappa[k] * x
            if left <= 0.0:
                return -math.inf
            value += missed * math.log(left)
    return value


@njit_views
def mode(i, views):
    """Where the density of item i is largest, by bisection of its slope."""
    low, high = 0.0, 1.0
    for _ in range(50):
        x = 0.5 * (low + high)
        slope = views.clicks[i] / x
        for k in range(views.kappa.shape[0]):
            missed = views.N[i, k] - views.S[i, k]
            slope -= missed * views.kappa[k] / (1.0 - views.kappa[k] * x)
        if slope > 0.0:
            low = x
        else:
            high = x
    return 0.5 * (low + high)


@njit_views
def border(top, end, i, views):
    """The point between the mode and an end of [0, 1] where the density has fallen, or the end."""
    level = log_density(top, i, views) - DROP
    inside, outside = top, end
    if (end > 0.0 or views.clicks[i] == 0.0) and log_density(end, i, views) >= level:
        return end
    for _ in range(40):
        x = 0.5 * (inside + outside)
        if log_density(x, i, views) >= level:
            inside = x
        else:
            outside = x
    return outside


@njit_views
def add_up(i, p):
    """The cumulative masses of item i; whether its cells cover the density, and not much more."""
    log, top = p.log[i], p.log[i, 0]
    for g in range(1, CELLS):
        top = max(top, log[g])
    above, total = 0, 0.0
    for g in range(CELLS):
        total += math.exp(log[g] - top)
        p.mass[i, g] = total
        above += log[g] > top - RISEN
    low = p.low[i] > 0.0 and log[0] > top - RISEN
    high = p.high[i] < 1.0 and log[CELLS - 1] > top - RISEN
    return above >= CELLS // 2 and not low and not high


@njit_views
def lay(i, p):
    """New cells for item i."""
    views = p.views
    top = mode(i, views)
    p.low[i], p.high[i] = border(top, 0.0, i, views), border(top, 1.0, i, views)
    width = (p.high[i] - p.low[i]) / CELLS
    for g in range(CELLS):
        p.log[i, g] = log_density(p.low[i] + (g + 0.5) * width, i, views)
    add_up(i, p)


@njit_inline
def observe(i, k, click, p):
    """One more view of item i at position k."""
    width = (p.high[i] - p.low[i]) / CELLS
    for g in range(CELLS):
        x = p.low[i] + (g + 0.5) * width
        p.log[i, g] += math.log(x) if click else math.log(1.0 - p.views.kappa[k] * x)
    if not add_up(i, p):
        lay(i, p)


@njit_views
def draw(u, low, high, mass):
    """The place of the uniform u."""
    target = u * mass[CELLS - 1]
    g, last = 0, CELLS - 1  # the first cell whose cumulative mass is above the target
    while g < last:
        middle = (g + last) // 2
        if mass[middle] > target:
            last = middle
        else:
            g = middle + 1
    before = mass[g - 1] if g > 0 else 0.0
    inside = (target - before) / (mass[g] - before)
    return low + (g + inside) * (high - low) / CELLS


@njit_inline
def recommend_one(now, u, p, A):
    """The largest draws."""
    size = ZERO
    for i in range(p.low.shape[0]):
        x = draw(u[i], p.low[i], p.high[i], p.mass[i])
        size = insert_best(p.held, p.value, size, i, x)
    show(p.held, p.views.best, A)


@njit_inline
def learn_one(now, p, A, clicks):
    """``learn``, and the posteriors of what was shown; of all items if kappa is another one."""
    if learn(now, A, clicks, p.views):
        for i in range(p.low.shape[0]):
            lay(i, p)
    else:
        for k in range(A.shape[0]):
            observe(A[k], k, clicks[k], p)


class PBMTS(PBM):
    """PBM-TS."""

    NAME, COST = "PBM-TS", "L + 128 K"
    FIGURE = 25
    KERNELS = Posteriors(), recommend_one, learn_one

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=setting.L)
        self.memory.mass[:] = np.arange(1.0, CELLS + 1.0)  # uniform
