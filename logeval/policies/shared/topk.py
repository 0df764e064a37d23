"""The K best of L arms without looking at all: of upper confidence bounds, and of Beta draws.

Both are exact: the lists are those of evaluating, or drawing, every arm. Equal bounds are ordered
by label. The environment gives the items of each replica random labels, which breaks ties at
random. What they need of the normal and the Beta distribution comes first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from logeval.policies.shared.bounds import budget_at, upper
from logeval.policies.shared.kernel_policy import floats, ints
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views

LARGEST = 700.0  # of the hazards: e^-700 is as good as 0


@njit_views
def continued_fraction(a, b, x):
    """The continued fraction 1 / (1 + d_1 / (1 + d_2 / ...)) of the incomplete beta function.

    Its convergents P_n / Q_n with P_n = P_{n-1} + d_n P_{n-2}, likewise Q, scaled to Q_n = 1 after
    every fourth: a division takes longer than all else. It is used where x is below the mean, or
    nearly so; there all Q_n are positive.
    """
    P, Q, P_odd, Q_odd = 1.0, 1.0, 1.0, 1.0 - (a + b) * x / (a + 1.0)
    value = 0.0
    for m in range(1, 200_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        P, Q = P_odd + even * P, Q_odd + even * Q
        P_odd, Q_odd = P + odd * P_odd, Q + odd * Q_odd
        if m % 2 == 0:
            scale = 1.0 / Q_odd
            P, Q, P_odd, Q_odd = P * scale, Q * scale, P_odd * scale, 1.0
            if abs(P_odd - value) < 1e-15 * P_odd:
                break
            value = P_odd
    return P_odd / Q_odd


@njit_views
def log_beta(a, b):
    """log B(a, b)."""
    return -(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))


@njit_views
def distribution(a, b, log_B, x):
    """F(x), 1 - F(x), the smaller one to full relative precision, and x^a (1-x)^b / B(a, b)."""
    if x <= 0.0:
        return 0.0, 1.0, 0.0
    if x >= 1.0:
        return 1.0, 0.0, 0.0
    density = math.exp(a * math.log(x) + b * math.log1p(-x) - log_B)
    if x < (a + 1.0) / (a + b + 2.0):
        F = min(density * continued_fraction(a, b, x) / a, 1.0)
        return F, 1.0 - F, density
    Q = min(density * continued_fraction(b, a, 1.0 - x) / b, 1.0)
    return 1.0 - Q, Q, density


@njit_views
def survival(a, b, x):
    """F(x) and 1 - F(x) of Beta(a, b)."""
    F, Q, _ = distribution(a, b, log_beta(a, b), x)
    return F, Q


@njit_views
def hazard(F, Q):
    """-log F, at most ``LARGEST``."""
    if F > 0.5:
        return -math.log1p(-Q)
    return min(-math.log(max(F, 1e-305)), LARGEST)


@njit_views
def normal_cdf(x):
    """P(Z <= x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@njit_views
def near_normal_quantile(p):
    """The quantile to 4.5e-4 by a rational function (Abramowitz and Stegun, 26.2.23)."""
    t = math.sqrt(-2.0 * math.log(min(p, 1.0 - p)))
    x = (
        t - (2.515517 + t * (0.802853 + t * 0.010328))
        / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    )  # fmt: skip
    return -x if p < 0.5 else x


@njit_views
def normal_quantile(p):
    """The x with P(Z <= x) = p, 0 < p < 1: two steps of Halley's method, which cube the error."""
    tail = min(p, 1.0 - p)
    x = near_normal_quantile(tail)
    for _ in range(2):
        e = (normal_cdf(x) - tail) * math.sqrt(2.0 * math.pi) * math.exp(0.5 * x * x)
        x -= e / (1.0 + 0.5 * x * e)
    return x if p < 0.5 else -x


BLOCK = 64  # arms in a block
SLACK = 1e-9  # more than the rounding of bounds and budgets
NO_BAR = -1.0  # the list has room for any arm
MEMO = 1024  # bounds remembered within a step
HELD = float("inf")  # the budget of arms on the list, which are always evaluated


def n_blocks(L: int) -> int:
    """How many blocks L arms have."""
    return -(-L // BLOCK)


class Bandit(NamedTuple):
    """Arms that are looked for the K largest upper confidence bounds.

    The bound of an arm that is not observed only grows with the budget, and slowly. When an arm
    is evaluated and found to be below the bar (the smallest bound on the list), it is parked: a
    level halfway between its bound and the bar is noted, and the budget at which the bound will
    reach that level (``bounds.budget_at``, no root finding). Until then, and as long as the bar is
    above the level, the arm cannot be on the list and costs one comparison. Blocks of arms keep
    the earliest budget and the highest level among theirs, so a sleeping block costs one
    comparison as a whole. Arms with equal statistics have equal bounds, which is common early on:
    the bounds solved in a step are remembered, for all replicas.
    """

    S: Floats = floats("L")  # sum of the observations of each arm
    T: Floats = floats("L")  # their number
    wake: Floats = floats("L")  # the budget at which it must be looked at again
    level: Floats = floats("L")  # the level at which it was parked
    block_wake: Floats = floats(n_blocks)  # the smallest of a block
    block_level: Floats = floats(n_blocks)  # the largest of a block
    held: Ints = ints("K", fill=-1)  # the list of the last call; -1: there was none
    U: Floats = floats("K")  # its bounds
    memo: Floats = floats(MEMO, 4, fill=-1.0, shared=True)  # bounds solved before: S, T, b, bound


@njit_views
def remembered_upper(kind, S, T, b, memo):
    """``bounds.upper``, looked up in ``memo`` where it is there."""
    row = memo[(int(T) * 61 + int(S)) % MEMO]
    if row[0] != S or row[1] != T or row[2] != b:
        row[0], row[1], row[2], row[3] = S, T, b, upper(kind, S, T, b)
    return row[3]


@njit_views
def insert(held, index, size, e, U):
    """Insert arm e with bound U into the sorted list of ``size`` arms; drops the last if full."""
    j = min(size, held.shape[0] - 1)
    while j > 0 and (U > index[j - 1] or (U == index[j - 1] and e < held[j - 1])):
        held[j], index[j] = held[j - 1], index[j - 1]
        j -= 1
    held[j], index[j] = e, U


@njit_inline
def park(kind, e, U, bar, arms):
    """Put arm e, with bound U <= bar, to sleep until its bound is halfway to the bar."""
    level = 0.5 * (U + bar)
    wake = 0.0  # a tie: look again at the next step
    if bar - U >= SLACK:
        wake = min(budget_at(kind, arms.S[e], arms.T[e], level), 1e300)
    arms.wake[e], arms.level[e] = wake, level
    block = e // BLOCK
    arms.block_wake[block] = min(arms.block_wake[block], wake)
    arms.block_level[block] = max(arms.block_level[block], level)


@njit_inline
def touch(e, arms):
    """Arm e was observed: its parking is void."""
    if arms.wake[e] != HELD:
        arms.wake[e] = 0.0
        arms.block_wake[e // BLOCK] = 0.0


@njit_inline
def select(kind, b, taken, arms):
    """Leave in ``held`` the arms with the largest bounds, from the largest down.

    Arms marked in ``taken`` are left out.
    """
    S, T, wake, level, block_wake, block_level, held, index, memo = arms
    m, L = held.shape[0], S.shape[0]
    size = ZERO
    for i in range(m):  # the last list first: it sets a high bar
        e = held[i]
        if e < 0:
            break
        if taken[e]:
            wake[e] = 0.0
            block_wake[e // BLOCK] = 0.0
        else:
            insert(held, index, size, e, remembered_upper(kind, S[e], T[e], b, memo))
            size += 1
    bar = index[m - 1] if size == m else NO_BAR
    for block in range(block_wake.shape[0]):
        if block_wake[block] > b and block_level[block] < bar - SLACK:
            continue
        block_wake[block], block_level[block] = HELD, -HELD
        for e in range(block * BLOCK, min((block + 1) * BLOCK, L)):
            if wake[e] > b and level[e] < bar - SLACK:
                block_wake[block] = min(block_wake[block], wake[e])
                block_level[block] = max(block_level[block], level[e])
                continue
            last = held[m - 1]
            if taken[e] or (size == m and e > last and S[e] == S[last] and T[e] == T[last]):
                block_wake[block] = 0.0  # taken, or tied with the last and behind it
                continue
            U = remembered_upper(kind, S[e], T[e], b, memo)
            if size < m:
                insert(held, index, size, e, U)
                wake[e], level[e] = HELD, -HELD
                size += 1
                bar = index[m - 1] if size == m else NO_BAR
            elif U > bar or (U == bar and e < last):
                out_U = index[m - 1]
                insert(held, index, m, e, U)
                wake[e], level[e] = HELD, -HELD
                bar = index[m - 1]
                park(kind, last, out_U, bar, arms)
            else:
                park(kind, e, U, bar, arms)


NEAR = 1e-3  # the last step of Halley's method, in sd; it leaves about 1e-9 of them
EXACT = 1024  # recurrences between two exact evaluations of F
TINY = 1e-250  # a density below this would vanish


class Betas(NamedTuple):
    """Posteriors, the level, and the draws of a step; at level 0 every item is drawn.

    theta_i = F_i^{-1}(u_i) for a uniform u_i, with F_i the distribution function of Beta(a_i, b_i).
    Two bounds save most of the exact draws:

    - At a level x, the same for all items, theta_i > x exactly if u_i > F_i(x), and F_i(x) changes
      only with a_i and b_i. If K or more are above the level, the largest are among them. The level
      is set so that about K + 3 sqrt(K) are, and set anew when there are fewer than K or far more.
    - An approximate quantile with a bound on its error orders most of the others. Only draws that
      it cannot tell apart are made exactly.
    """

    a: Floats = floats("L", fill=1.0)
    b: Floats = floats("L", fill=1.0)
    F: Floats = floats("L")  # F_i(level)
    density: Floats = floats("L")  # level (1 - level) F_i'(level)
    level: Floats = floats(1)
    above: Ints = ints("L", shared=True)  # the items above the level
    theta: Floats = floats("L", shared=True)  # their draws
    error: Floats = floats("L", shared=True)  # and bounds on the errors of these


@njit_views
def near_beta_quantile(a, b, u):
    """The quantile for a, b >= 1 by Abramowitz and Stegun, 26.5.22, and a bound on its error.

    Exact if a or b is 1. The bound was fitted to the errors found, which reach nine tenths of it;
    a test looks for larger ones. Where none is known it is infinite.
    """
    if a == 1.0:
        return -math.expm1(math.log1p(-u) / b), 0.0
    if b == 1.0:
        return u ** (1.0 / a), 0.0
    z = -near_normal_quantile(max(u, 1e-300))
    s, t = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
    r, zz = 0.5 * (s + t), z * z
    m = (zz - 3.0) / 6.0
    w = z * math.sqrt(max(r + m * r * r, 0.0)) - (t - s) * (m + (5.0 - 4.0 * r) / 6.0)
    x = a / (a + b * math.exp(2.0 * min(w, 300.0)))
    x = min(max(x, 1e-15), 1.0 - 1e-15)
    least = min(a, b)
    if least < 2.0 or abs(z) > 4.5:
        return x, math.inf
    sd = math.sqrt(a * b / (a + b + 1.0)) / (a + b)
    return x, sd * (1e-3 + (0.08 + 0.0015 * zz * zz + 0.25 / least) / least)


@njit_views
def beta_quantile(a, b, u, x):
    """The quantile by Halley's method from x: P(Beta(a, b) <= quantile) = u, for a, b >= 1.

    A step cubes the error in units of the standard deviation, or of the distance from 0 or 1 if
    that is less: for the normal distribution e becomes (1/6 + z^2/12) e^3.
    """
    if u <= 0.0:
        return 0.0
    log_B, sd = log_beta(a, b), math.sqrt(a * b / (a + b + 1.0)) / (a + b)
    low, high = 0.0, 1.0
    for _ in range(200):
        F, Q, density = distribution(a, b, log_B, x)
        error = F - u if u < 0.5 else (1.0 - u) - Q
        if error > 0.0:
            high = x
        else:
            low = x
        new = 0.5 * (low + high)
        if density > 0.0:
            step = error / density * x * (1.0 - x)
            bend = (a - 1.0) / x - (b - 1.0) / (1.0 - x)
            step /= max(1.0 - 0.5 * step * bend, 0.5)
            if abs(step) < NEAR * min(sd, x, 1.0 - x):
                return x - step
            if low < x - step < high:
                new = x - step
        x = new
    return x


@njit_views
def draw_exactly(i, u, betas):
    """The draw of item i without error."""
    if betas.error[i] > 0.0:
        betas.theta[i] = beta_quantile(betas.a[i], betas.b[i], u[i], betas.theta[i])
        betas.error[i] = 0.0


@njit_views
def is_before(i, j, u, betas):
    """Whether item i has a larger draw than j, or the same and a smaller label."""
    theta, error = betas.theta, betas.error
    if abs(theta[i] - theta[j]) <= error[i] + error[j]:
        draw_exactly(i, u, betas)
        draw_exactly(j, u, betas)
    return theta[i] > theta[j] or (theta[i] == theta[j] and i < j)


@njit_views
def top_draws(u, betas, held):
    """The labels of the K largest draws, in decreasing order."""
    L, K, above = betas.a.shape[0], held.shape[0], betas.above
    n = 0
    for i in range(L):
        above[n] = i
        n += u[i] > betas.F[i]
    off = n < K or n > 3 * K + 12
    if n < K:
        n = L
        for i in range(L):
            above[i] = i
    for m in range(n):
        i = above[m]
        betas.theta[i], betas.error[i] = near_beta_quantile(betas.a[i], betas.b[i], u[i])
    for m in range(n):
        i, k = above[m], min(m, K)
        while k > 0 and is_before(i, held[k - 1], u, betas):
            if k < K:
                held[k] = held[k - 1]
            k -= 1
        if k < K:
            held[k] = i
    if off:
        set_level(K, betas)


@njit_views
def set_level(K, betas):
    """A level that about K + 3 sqrt(K) of the draws will be above; 0 if L is not much more."""
    L = betas.a.shape[0]
    target = K + 3.0 * math.sqrt(K)
    if target >= 0.8 * L:
        return
    low, high = 0.0, 1.0
    for _ in range(30):
        betas.level[0] = 0.5 * (low + high)
        expected = 0.0
        for i in range(L):
            set_beta(i, betas.a[i], betas.b[i], betas)
            expected += 1.0 - betas.F[i]
        if abs(expected - target) < 0.1 * target:
            return
        if expected > target:
            low = betas.level[0]
        else:
            high = betas.level[0]


@njit_views
def set_beta(i, a, b, betas):
    """A new posterior of item i."""
    betas.a[i], betas.b[i] = a, b
    if betas.level[0] > 0.0:
        F, _, density = distribution(a, b, log_beta(a, b), betas.level[0])
        betas.F[i], betas.density[i] = F, density


@njit_views
def count_beta(i, click, betas):
    """The posterior of item i after a click, or none.

    With d = x^a (1-x)^b / B(a, b), F falls by d / a as a rises by 1, and rises by d / b with b.
    """
    a, b, x, d = betas.a[i], betas.b[i], betas.level[0], betas.density[i]
    if d < TINY or int(a + b) % EXACT == 0:
        set_beta(i, a + click, b + 1.0 - click, betas)
    elif click:
        betas.F[i] -= d / a
        betas.density[i] = d * x * (a + b) / a
        betas.a[i] = a + 1.0
    else:
        betas.F[i] += d / b
        betas.density[i] = d * (1.0 - x) * (a + b) / b
        betas.b[i] = b + 1.0
