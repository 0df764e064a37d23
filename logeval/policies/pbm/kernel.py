"""What the bandits of the position-based model share: counts, and the examination they go by.

With S_il clicks in N_il views of item i at position l, N~_i = sum_l kappa_l N_il is the number of
views that were looked at, as far as kappa is right (Lagree, Vernade, Cappe 2016, section 3).

``kappa=estimated``: the first right singular vector of (S_il + a) / (N_il + a), a = 1/2, scaled to
maximum 1, after every step up to the 100th and then after every ``lag`` steps. That is the "greedy
SVD" of the programs of Gauthier et al. (2021); nothing is proven for it. Unseen cells count as 1.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.setting import Setting
from logeval.policies.shared.memory import floats, ints
from logeval.policies.shared.places import sort_by
from logeval.policies.shared.policy import KernelPolicy
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_inline, njit_views

A = 0.5  # added to clicks and to views
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
        old, new = views.M[i, k], (views.S[i, k] + A) / (views.N[i, k] + A)
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
