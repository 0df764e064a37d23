"""PBM-UCB, PBM-PIE, PBM-TS and BC-MPTS: bandits of the position-based model.

With S_il clicks in N_il views of item i at position l, N~_i = sum_l kappa_l N_il is the number of
views that were looked at, as far as the examination kappa is right; S_i and N_i are the sums over
positions. The item thought best goes to the position with the largest kappa.

``kappa=estimated``: the first right singular vector of (S_il + a) / (N_il + a), a = 1/2, scaled to
maximum 1, after every step up to the 100th and then after every ``lag`` steps. That is the "greedy
SVD" of the programs of Gauthier et al. (2021); nothing is proven for it. Unseen cells count as 1.

The first three: Lagree, Vernade, Cappe: Multiple-play bandits in the position-based model (NeurIPS
2016). BC-MPTS: Komiyama, Honda, Nakagawa: Optimal regret analysis of Thompson sampling in
stochastic multi-armed bandit problem with multiple plays (ICML 2015).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.setting import Setting
from logeval.policies.shared.bounds import kl
from logeval.policies.shared.draws import top_betas
from logeval.policies.shared.kernel_policy import KernelPolicy, floats, ints
from logeval.policies.shared.places import insert_best, show, sort_by
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views

ADDED = 0.5  # added to clicks and to views
EVERY_STEP = 100  # until then kappa is estimated after every step
DIGITS = 9  # of an estimate: ties shall not depend on rounding


class Views(NamedTuple):
    """Counts and examination of one replica."""

    S: Ints = ints("L", "K")  # clicks
    N: Ints = ints("L", "K")  # views
    clicks: Floats = floats("L")  # over positions
    views: Floats = floats("L")
    looked: Floats = floats("L")  # N~
    kappa: Floats = floats("K", fill=1.0)
    best: Ints = ints("K")  # positions from the most to the least examined
    M: Floats = floats("L", "K", fill=1.0)  # (S + a) / (N + a)
    gram: Floats = floats("K", "K")  # M'M
    image: Floats = floats("K", shared=True)  # scratch: M'M kappa


@njit_views
def look(i, views):
    """N~ of item i."""
    looked = 0.0
    for k in range(views.kappa.shape[0]):
        looked += views.kappa[k] * views.N[i, k]
    views.looked[i] = looked


@njit_views
def count(item, c, views):
    """Count the views of the item at each position, and the clicks c."""
    for k in range(item.shape[0]):
        i = item[k]
        views.S[i, k] += c[k]
        views.N[i, k] += 1
        views.clicks[i] += c[k]
        views.views[i] += 1.0
        look(i, views)


@njit_views
def is_due(t, lag):
    """Whether kappa is estimated after step t."""
    return t <= EVERY_STEP or t % lag == 0


@njit_views
def note(item, views):
    """The cells of M that a step has changed, and M'M."""
    K = item.shape[0]
    for k in range(K):
        i = item[k]
        old, new = views.M[i, k], (views.S[i, k] + ADDED) / (views.N[i, k] + ADDED)
        for j in range(K):
            if j != k:
                views.gram[k, j] += (new - old) * views.M[i, j]
                views.gram[j, k] = views.gram[k, j]
        views.gram[k, k] += new * new - old * old
        views.M[i, k] = new


@njit_views
def estimate(views):
    """kappa from M'M by power iteration, which starts at the last estimate."""
    K = views.kappa.shape[0]
    x, y = views.kappa, views.image
    for _ in range(10_000):
        largest, change = 0.0, 0.0
        for k in range(K):
            y[k] = 0.0
            for j in range(K):
                y[k] += views.gram[k, j] * x[j]
            largest = max(largest, y[k])
        for k in range(K):
            new = y[k] / largest
            change = max(change, abs(new - x[k]))
            x[k] = new
        if change < 1e-14:
            break
    scale = 10.0**DIGITS
    for k in range(K):
        x[k] = max(math.floor(x[k] * scale + 0.5) / scale, 1.0 / scale)
    sort_by(x, views.best)
    for i in range(views.looked.shape[0]):
        look(i, views)


@njit_views
def learn(now, item, c, views):
    """Count a list; whether kappa was estimated anew (lag 0: it is known)."""
    t, lag = now[0], now[1]
    count(item, c, views)
    if lag == 0:
        return False
    note(item, views)
    if not is_due(t, lag):
        return False
    estimate(views)
    return True


def learning(renew: Any) -> Any:
    """The kernel that learns from a list, and then renews what is remembered of an item.

    ``renew(i, mine)`` is called for the items shown; for all items if kappa is another one.
    """

    @njit_inline
    def learn_one(now, mine, A, clicks):
        if learn(now, A, clicks, mine.views):
            for i in range(mine.views.clicks.shape[0]):
                renew(i, mine)
        else:
            for k in range(A.shape[0]):
                renew(A[k], mine)

    return learn_one


class PBM(KernelPolicy):
    """``kappa=estimated`` learns the examination, every ``lag`` steps. ``views`` are in its memory.

    Its kernels are told the step, the lag (0: kappa is known), and more.
    """

    PAPER = "Lagree et al., NeurIPS 2016"
    KNOWS, READS = "examination, or estimated", "all clicks"
    PARAMETERS: ClassVar[dict[str, Any]] = {"kappa": ("known", "estimated"), "lag": 1}
    NEEDS: ClassVar = ("examination",)

    def __init__(self, setting: Setting, given: dict[str, Any], uniforms: int | Ints = 0) -> None:
        super().__init__(setting, given, uniforms=uniforms)
        lag, views = self.given.lag, self.memory.views
        if lag < 1:
            raise LogevalError(f"lag={lag} must be at least 1")
        self._lag = lag if self.given.kappa == "estimated" else 0
        if self._lag == 0:
            views.kappa[:] = e = setting.ask("examination")
            if not ((e > 0.0).all() and (e <= 1.0).all()):
                raise LogevalError(
                    f"policy {setting.policy}: examination must be above 0 and at most 1 at every "
                    "position; ask for fewer positions"
                )
        views.best[:] = np.argsort(-views.kappa, axis=1, kind="stable")
        views.gram[:] = setting.L[:, None, None]

    def now(self, t: int) -> tuple[Any, ...]:
        """The step, the lag, and the rule."""
        return t, self._lag, *self.rule


class UCBScores(NamedTuple):
    """theta and the width of its bound, of one replica."""

    theta: Floats = floats("L")
    width: Floats = floats("L", fill=-1.0)  # sqrt(N / 2) / N~; -1: unseen
    views: Views = Views()
    held: Ints = ints("K", shared=True)
    value: Floats = floats("K", shared=True)


@njit_inline
def score_ucb(i, mine):
    """theta and width of item i, if it was seen."""
    views = mine.views
    if views.views[i] > 0.0:
        mine.theta[i] = views.clicks[i] / views.looked[i]
        mine.width[i] = math.sqrt(0.5 * views.views[i]) / views.looked[i]


@njit_inline
def recommend_ucb(now, u, mine, A):
    """The K items with the largest theta + width sqrt(delta)."""
    _, _, delta = now
    root, size = math.sqrt(delta), ZERO
    for i in range(mine.theta.shape[0]):
        U = mine.theta[i] + mine.width[i] * root if mine.width[i] >= 0.0 else math.inf
        size = insert_best(mine.held, mine.value, size, i, U)
    show(mine.held, mine.views.best, A)


class PBMUCB(PBM):
    """Upper confidence bounds on attraction, with clicks divided by examination.

    With theta_i = S_i / N~_i, which may exceed 1, the K largest

        theta_i + sqrt(N_i / N~_i) sqrt(delta / (2 N~_i)),    delta = log t,

    are shown, unseen items first.
    """

    NAME, COST = "PBM-UCB", "L + K^2"
    FIGURE = 22
    KERNELS = UCBScores(), recommend_ucb, learning(score_ucb)

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)

    def now(self, t: int) -> tuple[int, int, float]:
        """The step, the lag, and delta."""
        return t, self._lag, math.log(t)


class PIEScores(NamedTuple):
    """theta, and what is known of B, of one replica."""

    theta: Floats = floats("L")
    inside: Floats = floats("L", fill=-1.0)  # the largest x at which an item is known to be in B
    outside: Floats = floats("L", fill=math.inf)  # the smallest x at which it is known not to be
    views: Views = Views()
    held: Ints = ints("K", shared=True)
    value: Floats = floats("K", shared=True)
    candidates: Ints = ints("L", shared=True)


@njit_inline
def score_pie(i, mine):
    """A new theta of item i; what was known of B is forgotten."""
    views = mine.views
    mine.theta[i] = views.clicks[i] / views.looked[i] if views.views[i] > 0.0 else 0.0
    mine.inside[i], mine.outside[i] = -1.0, math.inf


@njit_views
def may_be_better(i, x, budget, views):
    """Whether U_i >= x: Phi_i'(x) <= 0 or Phi_i(x) <= budget."""
    if x <= 0.0:
        return True
    phi, slope = 0.0, 0.0
    for k in range(views.kappa.shape[0]):
        N, S = views.N[i, k], views.S[i, k]
        if N > 0:
            q = views.kappa[k] * x
            phi += N * kl(S / N, min(q, 1.0))
            slope -= S / x
            if N > S:
                slope += (N - S) * views.kappa[k] / (1.0 - q) if q < 1.0 else math.inf
    return slope <= 0.0 or phi <= budget


@njit_inline
def explore(budget, mine):
    """The items of B as candidates, and how many they are."""
    held, n = mine.held, 0
    x = mine.theta[held[held.shape[0] - 1]]
    if x > 1.0:
        return 0
    for i in range(mine.theta.shape[0]):
        if x >= mine.outside[i]:
            continue
        if x > mine.inside[i]:
            if may_be_better(i, x, budget, mine.views):
                mine.inside[i] = x
            else:
                mine.outside[i] = x
                continue
        taken = False
        for k in range(held.shape[0]):
            taken |= held[k] == i
        if not taken:
            mine.candidates[n] = i
            n += 1
    return n


@njit_inline
def recommend_pie(now, u, mine, A):
    """The greedy list, whose last place explores every other time."""
    (t, _, budget), held = now, mine.held
    L, K, size = mine.theta.shape[0], A.shape[0], ZERO
    if t <= L:
        for k in range(K):
            held[k] = (t - 1 + k) % L
    else:
        for i in range(L):
            size = insert_best(held, mine.value, size, i, mine.theta[i])
        n = explore(budget, mine) if u[0] < 0.5 else 0
        if n > 0:
            held[K - 1] = mine.candidates[min(int(u[1] * n), n - 1)]
    show(held, mine.views.best, A)


class PBMPIE(PBM):
    """The list thought best, whose last place explores.

    theta_i = S_i / N~_i as in PBM-UCB. Rounds 1 to L show the items in cyclic shifts. Then D = the
    K largest theta, in order. B holds the items i outside of D with U_i >= theta of the last of D;
    U_i is the largest q with Phi_i(q) = sum_l N_il d(S_il / N_il, kappa_l q) <= log n.
    With probability 1/2, if B is not empty, the last place shows a random item of B.

    No U is solved for: at x, item i is in B if Phi_i'(x) <= 0 or Phi_i(x) <= log n, and
    then also for smaller x, so what is known of an item holds until it is shown again.
    """

    NAME = "PBM-PIE"
    KNOWS, COST = "horizon, examination, or estimated", "L K"
    FIGURE = 24
    KERNELS = PIEScores(), recommend_pie, learning(score_pie)

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=2)
        self.rule = (math.log(setting.horizon),)


CELLS = 128
DROP = 32.0  # logarithm of the density from the mode to the borders


class Posteriors(NamedTuple):
    """Tabulated densities of one replica, 1 KB per item."""

    low: Floats = floats("L")
    high: Floats = floats("L", fill=1.0)
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


@njit_inline
def lay(i, p):
    """The cells of item i."""
    views, total = p.views, 0.0
    top = mode(i, views)
    p.low[i], p.high[i] = border(top, 0.0, i, views), border(top, 1.0, i, views)
    width, level = (p.high[i] - p.low[i]) / CELLS, log_density(top, i, views)
    for g in range(CELLS):
        total += math.exp(log_density(p.low[i] + (g + 0.5) * width, i, views) - level)
        p.mass[i, g] = total


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
def recommend_ts(now, u, p, A):
    """The largest draws."""
    size = ZERO
    for i in range(p.low.shape[0]):
        x = draw(u[i], p.low[i], p.high[i], p.mass[i])
        size = insert_best(p.held, p.value, size, i, x)
    show(p.held, p.views.best, A)


class PBMTS(PBM):
    """A draw from the posterior of each attraction.

    With a uniform prior its density is proportional to

        theta^S_i prod_l (1 - kappa_l theta)^(N_il - S_il)    on (0, 1)

    (section 5). The density is log-concave. It is tabulated in ``CELLS`` equal cells between the
    two points where it has fallen by e^-32 from its mode, eight standard deviations where it is
    nearly normal; a uniform finds its cell and a place in it.
    """

    NAME, COST = "PBM-TS", "L + 300 K^2"
    FIGURE = 25
    KERNELS = Posteriors(), recommend_ts, learning(lay)

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=setting.L)
        self.memory.mass[:] = np.arange(1.0, CELLS + 1.0)  # uniform


class CorrectedBetas(NamedTuple):
    """Of one replica."""

    a: Floats = floats("L", fill=1.0)
    b: Floats = floats("L", fill=1.0)
    views: Views = Views()
    held: Ints = ints("K", shared=True)
    value: Floats = floats("K", shared=True)


@njit_inline
def correct_bias(i, mine):
    """The posterior of item i."""
    views, failures = mine.views, 0.0
    for k in range(views.kappa.shape[0]):
        failures += max(0.0, views.kappa[k] * views.N[i, k] - views.S[i, k])
    mine.a[i], mine.b[i] = 1.0 + views.clicks[i], 1.0 + failures


@njit_inline
def recommend_mpts(now, u, mine, A):
    """The largest draws."""
    top_betas(u[0], mine.a, mine.b, mine.held, mine.value)
    show(mine.held, mine.views.best, A)


class BCMPTS(PBM):
    """The K largest draws theta_i ~ Beta(1 + S_i, 1 + sum_l max(0, kappa_l N_il - S_il)).

    Fast and biased: its regret has a heavy tail.
    """

    NAME, PAPER = "BC-MPTS", "Komiyama et al., ICML 2015"
    COST = "L + K^2"
    FIGURE = 26
    KERNELS = CorrectedBetas(), recommend_mpts, learning(correct_bias)

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=1)
