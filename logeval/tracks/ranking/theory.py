"""Regret bounds of the papers for lists, to draw beside the curves.

Upper bounds are given without the terms that the papers leave open (the constants C_2 and beta
of Garivier and Cappe, which vanish with n) and with epsilon = 0: what is left are the leading
term and 7 K log log n. Lower bounds hold in the limit, R(n) / log n >= slope.
The rank-1 track has its bound in ``tracks.rank1``.
"""

from __future__ import annotations

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.shared.bounds import kl
from logeval.running.arrays import Floats
from logeval.tracks.keys import numbers
from logeval.tracks.ranking.problems import B_LB, CHANGES


def cascade_ucb1_upper(w_bar: Floats, K: int, n: int) -> float:
    """CascadeUCB1, cascading-bandits, Theorem 2: sum_e 12 / gap_e log n + pi^2 / 3 L."""
    w = np.sort(w_bar)[::-1]
    gaps = _gaps(w, K)
    return float(12.0 * np.log(n) * (1.0 / gaps).sum() + np.pi**2 / 3.0 * len(w))


def cascade_kl_upper(w_bar: Floats, K: int, n: int) -> float:
    """CascadeKL-UCB, cascading-bandits, Theorem 3 (and dcm-bandits, Proposition 1)."""
    w = np.sort(w_bar)[::-1]
    gaps = _gaps(w, K)
    divergences = np.array([kl(q, w[K - 1]) for q in w[K:]])
    terms = gaps * (1.0 + np.log(1.0 / gaps)) / divergences
    loglog = np.log(np.log(n))
    return float(terms.sum() * (np.log(n) + 3.0 * loglog) + 7.0 * K * loglog)


def cascade_lower_slope(L: int, K: int, p: float, gap: float) -> float:
    """Any consistent algorithm on B_LB, cascading-bandits, Theorem 4; multiply by log n."""
    return (L - K) * gap * (1.0 - p) ** (K - 1) / kl(p - gap, p)


def dcm_upper(w_bar: Floats, v_bar: Floats, n: int) -> float:
    """dcmKL-UCB, dcm-bandits, Theorem 2; with equal terminations it is Theorem 1.

    sum_i (v(i) - v(i+1)) / alpha times the bound of the cascade with i positions, where
    alpha = (1 - max w)^(K-1). Both arguments are sorted here.
    """
    K = len(v_bar)
    v = np.append(np.sort(v_bar)[::-1], 0.0)
    alpha = (1.0 - np.max(w_bar)) ** (K - 1)
    if alpha == 0.0:
        return float("inf")
    return float(
        sum(
            (v[i - 1] - v[i]) / alpha * cascade_kl_upper(w_bar, i, n)
            for i in range(1, K + 1)
            if v[i - 1] > v[i]
        )
    )


def dcm_lower_slope(L: int, K: int, p: float, gap: float, gamma: float) -> float:
    """Any consistent algorithm on B_LB, dcm-bandits, Theorem 3; multiply by log n."""
    return gamma * cascade_lower_slope(L, K, p, gap)


def b_lb_lower_slope(problem: str) -> float | None:
    """That of ``dcm_lower_slope`` for B_LB by its name; None where the theorem does not hold."""
    given = numbers(problem, B_LB | CHANGES, optional=("gamma", "changes"))
    if given.pop("changes", 0):
        return None
    values = {"gamma": 1.0, **given}
    return dcm_lower_slope(**values) if 0.0 < values["gap"] < values["p"] else None


def _gaps(w: Floats, K: int) -> Floats:
    gaps = w[K - 1] - w[K:]
    if (gaps <= 0.0).any():
        raise LogevalError(f"the bound needs a gap between the {K} best items and the others")
    return gaps
