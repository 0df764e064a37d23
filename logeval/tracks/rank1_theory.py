"""How hard a rank-1 problem is, and the bound on the regret of Rank1ElimKL (rank1elimkl)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from logeval.running.arrays import Floats


class Hardness(NamedTuple):
    """What decides the regret of Rank1ElimKL (rank1elimkl, equations 3 to 5)."""

    mu: float  # the smaller of the mean row and the mean column
    p_max: float
    gamma: float  # max(mu, 1 - p_max)


def rank1_hardness(u_bar: Floats, v_bar: Floats) -> Hardness:
    """mu, p_max and gamma of a rank-1 problem."""
    mu = float(min(np.mean(u_bar), np.mean(v_bar)))
    p_max = float(max(np.max(u_bar), np.max(v_bar)))
    return Hardness(mu, p_max, max(mu, 1.0 - p_max))


def rank1_upper(u_bar: Floats, v_bar: Floats, n: int) -> float:
    """Rank1ElimKL, rank1elimkl, Theorem 1; infinite when all rows or all columns are equal."""
    hard = rank1_hardness(u_bar, v_bar)
    gaps_u, gaps_v = np.max(u_bar) - u_bar, np.max(v_bar) - v_bar
    if not (gaps_u.any() and gaps_v.any() and hard.mu > 0.0):
        return float("inf")
    smallest_u, smallest_v = gaps_u[gaps_u > 0].min(), gaps_v[gaps_v > 0].min()
    rows = np.where(gaps_u > 0, gaps_u, smallest_v)
    columns = np.where(gaps_v > 0, gaps_v, smallest_u)
    leading = 160.0 / (hard.mu * hard.gamma) * ((1.0 / rows).sum() + (1.0 / columns).sum())
    return float(leading * np.log(n) + (6.0 * math.e + 82.0) * (len(u_bar) + len(v_bar)))
