"""Confidence bounds on the mean of Bernoulli variables, from p = S / T and a budget b.

KL-UCB: the largest q with T d(p, q) <= b, where d is the divergence between Bernoulli means,
and the smallest such q below p (Garivier and Cappe 2011; dcm-bandits, equation 1; rank1elimkl,
lines 27 and 28). UCB1: p + sqrt(b / T) (cascading-bandits, section 3.2). UCB-V:
p + sqrt(2 v b / T) + 3 b / T with the variance v = p (1 - p) (Audibert, Munos, Szepesvari 2009).

All grow with b, so an upper bound stays below q exactly until the budget reaches
``budget_at(q)``: their inverse, which needs no root finding. ``shared.topk`` lives on it.
"""

from __future__ import annotations

import math

from logeval.running.kernels import njit_views

KL, UCB1, UCBV = range(3)  # kinds of bounds


@njit_views
def kl(p, q):
    """d(p, q) = p log(p/q) + (1-p) log((1-p)/(1-q)), with 0 log 0 = 0."""
    d = 0.0
    if p > 0.0:
        if q <= 0.0:
            return math.inf
        d += p * math.log(p / q)
    if p < 1.0:
        if q >= 1.0:
            return math.inf
        d += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return max(d, 0.0)


@njit_views
def kl_upper(p, delta):
    """The largest q in [p, 1] with d(p, q) <= delta, to 1e-12.

    d(p, .) is convex on [p, 1]: a Newton step from any q lands on the right of the root, or
    beyond 1, and from the right Newton's method comes down to it. It starts from the solution
    of the third-order expansion of d around p.
    """
    if delta <= 0.0 or p >= 1.0:
        return min(p, 1.0)
    if p <= 0.0:
        return -math.expm1(-delta)
    v = p * (1.0 - p)
    q = p + math.sqrt(2.0 * delta * v) + (2.0 / 3.0) * (1.0 - 2.0 * p) * delta
    q = min(max(q, p + 1e-3 * (1.0 - p) * min(delta, 1.0)), p + 0.99 * (1.0 - p))
    if q == p:  # so close to 1 that the start is lost in rounding
        q = p + 0.5 * (1.0 - p)
        if q == p or q == 1.0:  # no number in between
            return p
    c = p * math.log(p) + (1.0 - p) * math.log(1.0 - p) - delta
    for _ in range(100):
        excess = c - p * math.log(q) - (1.0 - p) * math.log(1.0 - q)
        step = excess * q * (1.0 - q) / (q - p)
        if q - step >= 1.0:
            q = 0.5 * (q + 1.0)
            if q == 1.0:
                return q
            continue
        q -= step
        if q <= p:  # delta is below the rounding of d
            return p
        if abs(step) <= 1e-6 * min(q - p, 1.0 - q):
            break
    return q


@njit_views
def kl_lower(p, delta):
    """The smallest q in [0, p] with d(p, q) <= delta."""
    return 1.0 - kl_upper(1.0 - p, delta)


@njit_views
def upper(kind, S, T, b):
    """Upper confidence bound after T observations with sum S, at budget b; infinite without any."""
    if T == 0.0:
        return math.inf
    if kind == KL:
        return kl_upper(S / T, b / T)
    if kind == UCBV:
        p = S / T
        return p + math.sqrt(2.0 * p * (1.0 - p) * b / T) + 3.0 * b / T
    return S / T + math.sqrt(b / T)


@njit_views
def budget_at(kind, S, T, q):
    """The budget at which the upper bound reaches q >= S / T."""
    p = S / T
    if kind == KL:
        return T * kl(p, q)
    if kind == UCBV:  # 3 x^2 + sqrt(2 v) x = q - p for x = sqrt(b / T)
        twice_v = 2.0 * p * (1.0 - p)
        x = (math.sqrt(twice_v + 12.0 * (q - p)) - math.sqrt(twice_v)) / 6.0
        return T * x * x
    return T * (q - p) * (q - p)


def kl_budget(t: int) -> float:
    """log t + 3 log log t, zero where that is negative or undefined."""
    return max(0.0, math.log(t) + 3.0 * math.log(math.log(t))) if t > 1 else 0.0


def ucb1_budget(t: int) -> float:
    """1.5 log(t - 1), zero where undefined: the radius c_{t-1,s} of cascading-bandits."""
    return 1.5 * math.log(t - 1) if t > 1 else 0.0


def ucbv_budget(t: int) -> float:
    """2 log t: sqrt(4 v log t / T) + 6 log t / T (Vial et al. 2022)."""
    return 2.0 * math.log(t)


BUDGETS = {KL: kl_budget, UCB1: ucb1_budget, UCBV: ucbv_budget}
