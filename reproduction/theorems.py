"""Upper bounds on regret that the papers prove."""

from __future__ import annotations

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.shared.bounds import kl
from logeval.running.arrays import Floats


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


def _gaps(w: Floats, K: int) -> Floats:
    gaps = w[K - 1] - w[K:]
    if (gaps <= 0.0).any():
        raise LogevalError(f"the bound needs a gap between the {K} best items and the others")
    return gaps
