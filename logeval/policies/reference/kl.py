"""KL-UCB indices by bisection."""

from __future__ import annotations

from typing import Any

import numpy as np


def kl(p: Any, q: Any) -> Any:
    """The divergence d(p, q) of Bernoulli means, with 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(p > 0, p * np.log(p / q), 0.0)
        right = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return left + right


def kl_ucb(p: Any, N: Any, budget: Any) -> Any:
    """The largest q >= p with N d(p, q) <= budget; 1 where N = 0 or p = 1."""
    low, high = np.array(p, dtype=float), np.ones_like(p, dtype=float)
    for _ in range(52):
        q = 0.5 * (low + high)
        inside = N * kl(p, q) <= budget
        low, high = np.where(inside, q, low), np.where(inside, high, q)
    return np.where((N == 0) | (p >= 1), 1.0, low)


def budget(t: int) -> Any:
    """log t + 3 log log t."""
    return np.log(t) + 3 * np.log(np.log(t))


def index(p: Any, N: Any, t: int) -> Any:
    """KL-UCB at budget(t); 1 for t < 3, where the budget is negative or undefined."""
    return kl_ucb(p, N, budget(t)) if t >= 3 else np.ones_like(p, dtype=float)
