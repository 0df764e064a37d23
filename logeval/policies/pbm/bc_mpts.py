"""BC-MPTS: Thompson sampling in the position-based model with a bias-corrected Beta posterior.

The K largest theta_i ~ Beta(1 + S_i, 1 + sum_l max(0, kappa_l N_il - S_il)), the largest at the
position with the largest kappa. Fast and biased: its regret has a heavy tail.

Komiyama, Honda, Nakagawa: Optimal regret analysis of Thompson sampling in stochastic multi-armed
bandit problem with multiple plays (ICML 2015), bias-corrected MP-TS.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from logeval.policies.pbm.kernel import PBM, Views, learning
from logeval.policies.setting import Setting
from logeval.policies.shared.memory import ints
from logeval.policies.shared.places import show
from logeval.policies.shared.top_betas import Betas, set_beta, top_draws
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_inline


class Memory(NamedTuple):
    """Of one replica."""

    views: Views = Views()
    betas: Betas = Betas()
    held: Ints = ints("K", shared=True)


@njit_inline
def correct_bias(i, mine):
    """The posterior of item i."""
    views, failures = mine.views, 0.0
    for k in range(views.kappa.shape[0]):
        failures += max(0.0, views.kappa[k] * views.N[i, k] - views.S[i, k])
    set_beta(i, 1.0 + views.clicks[i], 1.0 + failures, mine.betas)


@njit_inline
def recommend_one(now, u, mine, A):
    """The largest draws."""
    top_draws(u, mine.betas, mine.held)
    show(mine.held, mine.views.best, A)


class BCMPTS(PBM):
    """BC-MPTS."""

    NAME, PAPER = "BC-MPTS", "Komiyama et al., ICML 2015"
    COST = "L + K^2"
    FIGURE = 26
    KERNELS = Memory(), recommend_one, learning(correct_bias)

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=setting.L)
