"""Upper and lower confidence bounds on Bernoulli means, by bisection."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import rel_entr

from logeval.running.arrays import Floats


def kl(p: Floats, q: Floats) -> Floats:
    """d(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q)), with 0 log 0 = 0."""
    return np.asarray(rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q))


def kl_ucb(p: Floats, T: Floats | float, budget: float) -> Floats:
    """max { q in [p, 1] : T d(p, q) <= budget } (dcm-bandits, equation 1); 1 where T = 0."""
    low, width = np.array(p, dtype=float), 1.0 - p
    for _ in range(45):  # to 3e-14
        width = 0.5 * width
        q = low + width
        low = np.where(T * kl(p, q) <= budget, q, low)
    return np.where((p >= 1.0) | (np.asarray(T) == 0), 1.0, low)


def kl_lcb(p: Floats, T: Floats | float, budget: float) -> Floats:
    """min { q in [0, p] : T d(p, q) <= budget }: d(p, q) = d(1 - p, 1 - q)."""
    return 1.0 - kl_ucb(1.0 - p, T, budget)


def ucb1(p: Floats, T: Floats, budget: float) -> Floats:
    """p + sqrt(budget / T)."""
    return p + np.sqrt(budget / T)


def budget_at(t: int) -> float:
    """log t + 3 log log t, 0 where that is negative or undefined."""
    return max(math.log(t) + 3.0 * math.log(math.log(t)), 0.0) if t > 1 else 0.0


def kl_ucb_at(t: int, p: Floats, T: Floats) -> Floats:
    """KL-UCB at step t."""
    return kl_ucb(p, T, budget_at(t))


def kl_index_at(t: int, p: Floats, T: Floats) -> Floats:
    """``kl_ucb_at``, but 1 for t < 3, where there is no budget (GRAB, UniRank)."""
    return kl_ucb_at(t, p, T) if t >= 3 else np.ones_like(p)


def ucb1_at(t: int, p: Floats, T: Floats) -> Floats:
    """UCB1 at step t: p + sqrt(1.5 log(t - 1) / T) (cascading-bandits, section 3.2)."""
    return ucb1(p, T, 1.5 * math.log(t - 1) if t > 1 else 0.0)


def ucb_v_at(t: int, p: Floats, T: Floats) -> Floats:
    """UCB-V at step t: p + sqrt(4 p (1 - p) log t / T) + 6 log t / T (Vial et al. 2022)."""
    return p + np.sqrt(4.0 * p * (1.0 - p) * math.log(t) / T) + 6.0 * math.log(t) / T
