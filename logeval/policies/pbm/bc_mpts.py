"""BC-MPTS: Thompson sampling in the position-based model with a bias-corrected Beta posterior.

The K largest theta_i ~ Beta(1 + S_i, 1 + sum_l max(0, kappa_l N_il - S_il)), the largest at the
position with the largest kappa. Fast and biased: its regret has a heavy tail.

Komiyama, Honda, Nakagawa: Optimal regret analysis of Thompson sampling in stochastic multi-armed
bandit problem with multiple plays (ICML 2015), bias-corrected MP-TS.
"""

from __future__ import annotations

from logeval.policies.pbm import paper
from logeval.policies.pbm.examination import Views, views_of
from logeval.policies.pbm.kernel import PBM, learn
from logeval.policies.setting import Setting
from logeval.policies.shared.places import show
from logeval.policies.shared.top_betas import Betas, betas_of, set_beta, top_draws, uniform_betas
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_views
from logeval.running.uniforms import Uniforms


@njit_views
def correct_bias(i, views, betas):
    """The posterior of item i."""
    failures = 0.0
    for k in range(views.kappa.shape[0]):
        failures += max(0.0, views.kappa[k] * views.N[i, k] - views.S[i, k])
    set_beta(i, 1.0 + views.clicks[i], 1.0 + failures, betas)


@njit_views
def learn_one(t, lag, item, c, views, betas):
    """``learn``, and the posteriors of what was shown; of all items if kappa is another one."""
    if learn(t, lag, item, c, views):
        for i in range(betas.a.shape[0]):
            correct_bias(i, views, betas)
    else:
        for k in range(item.shape[0]):
            correct_bias(item[k], views, betas)


@njit_views
def recommend_all(u, held, A, L, views, betas):
    """The largest draws of each replica."""
    views, betas = Views(*views), Betas(*betas)
    for r in range(A.shape[0]):
        top_draws(u[r], betas_of(r, L[r], betas), held)
        show(held, views.best[r], A[r])


@njit_views
def learn_all(t, lag, A, clicks, L, views, betas):
    """``learn_one`` for each replica."""
    views, betas = Views(*views), Betas(*betas)
    for r in range(A.shape[0]):
        mine = views_of(r, L[r], views), betas_of(r, L[r], betas)
        learn_one(t, lag, A[r], clicks[r], *mine)


class BCMPTS(PBM):
    """BC-MPTS."""

    NAME, PAPER = "BC-MPTS", "Komiyama et al., ICML 2015"
    COST = "L + K^2"
    REFERENCE, FIGURE = paper.BCMPTS, 26

    def __init__(self, setting: Setting, *, kappa: str = "known", lag: int = 1) -> None:
        betas = uniform_betas(setting.R, int(max(setting.L)))
        super().__init__(setting, kappa, lag, betas, learn_all)
        self._uniforms = Uniforms(setting.generators, setting.L)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        recommend_all(self._uniforms.at(t), self._held, self._A, *self._state)
        return self._A
