"""CTS and TS-Cascade: Thompson sampling in the cascade model.

S_i clicks on item i in N_i examinations, where a list is examined up to its first click, or to the
end without one (``feedback=last``: up to the last click, all of which count, as in the DCM).

- CTS: theta_i ~ Beta(1 + S_i, 1 + N_i - S_i), independent; the K largest, in that order.
- TS-Cascade: m_i + Z sd_i with m_i = S_i / N_i (0 if N_i = 0), one Z ~ N(0, 1) per round for all
  items, and sd_i = max(sqrt(m_i (1 - m_i) log(t+1) / (N_i + 1)), log(t+1) / (N_i + 1)).

Zhong, Cheung, Tan: Thompson sampling algorithms for cascading bandits (JMLR 22, 2021), and the
authors' programs of that paper.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from scipy.special import ndtri

from logeval.policies.setting import Setting
from logeval.policies.shared.draws import top_betas
from logeval.policies.shared.kernel_policy import floats
from logeval.policies.shared.options import ORDER
from logeval.policies.shared.places import ByPlaces, Places, insert_best, read, show
from logeval.running.arrays import Floats
from logeval.running.kernels import ZERO, njit_inline, njit_views
from logeval.running.seeds import Uniforms


@njit_views
def examined(c, last):
    """How many positions were examined: up to the first (or last) click, all without one."""
    end = 0
    for k in range(c.shape[0]):
        if c[k]:
            end = k + 1
            if not last:
                break
    return end if end else c.shape[0]


class Memory(NamedTuple):
    """Of one replica, for CTS."""

    a: Floats = floats("L", fill=1.0)  # 1 + S
    b: Floats = floats("L", fill=1.0)  # 1 + N - S
    value: Floats = floats("K", shared=True)  # of the items on the list
    places: Places = Places()


@njit_inline
def recommend_one(now, u, mine, A):
    """The largest draws."""
    top_betas(u[0], mine.a, mine.b, mine.places.held, mine.value)
    show(mine.places.held, mine.places.order, A)


@njit_inline
def learn_one(now, mine, A, clicks):
    """A click adds to a, an examination without one to b."""
    (last,), (_, held, c) = now, mine.places
    read(A, clicks, mine.places)
    for k in range(examined(c, last)):
        mine.a[held[k]] += c[k]
        mine.b[held[k]] += 1 - c[k]


class CTS(ByPlaces):
    """A Beta draw for each item, learned up to the first click."""

    NAME, PAPER = "CTS", "Zhong et al., JMLR 2021"
    KNOWS, READS, COST = ORDER, "up to the first click", "L"
    FIGURE = 16
    PARAMETERS: ClassVar = {"feedback": ("first", "last"), **ByPlaces.PARAMETERS}
    KERNELS = Memory(), recommend_one, learn_one

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=1)
        self.rule = (self.given.feedback == "last",)


class Gaussians(NamedTuple):
    """Counts, and what makes the draws, of one replica, for TS-Cascade."""

    S: Floats = floats("L")
    N: Floats = floats("L")
    m: Floats = floats("L")  # S / N
    root: Floats = floats("L")  # sqrt(m (1 - m) / (N + 1))
    inverse: Floats = floats("L", fill=1.0)  # 1 / (N + 1)
    value: Floats = floats("K", shared=True)  # of the items on the list
    places: Places = Places()


@njit_inline
def rank_one(now, z, mine, A):
    """The K largest m + Z sd."""
    (log,), held, size = now, mine.places.held, ZERO
    root = math.sqrt(log)
    for i in range(mine.m.shape[0]):
        x = mine.m[i] + z[0] * max(mine.root[i] * root, mine.inverse[i] * log)
        size = insert_best(held, mine.value, size, i, x)
    show(held, mine.places.order, A)


@njit_inline
def count_one(now, mine, A, clicks):
    """Learn from the examined positions."""
    _, held, c = mine.places
    read(A, clicks, mine.places)
    for k in range(examined(c, False)):
        i = held[k]
        mine.S[i] += c[k]
        mine.N[i] += 1.0
        mine.m[i] = mine.S[i] / mine.N[i]
        mine.inverse[i] = 1.0 / (mine.N[i] + 1.0)
        mine.root[i] = math.sqrt(mine.m[i] * (1.0 - mine.m[i]) * mine.inverse[i])


class Normals(Uniforms):
    """Standard normal numbers, made of uniforms."""

    def at(self, t: int) -> Floats:
        """Those of step t, (R, width)."""
        z: Floats = ndtri(super().at(t))
        return z


class TSCascade(ByPlaces):
    """A normal draw for each item, from one random number a step."""

    NAME, PAPER = "TS-Cascade", "Zhong et al., JMLR 2021"
    KNOWS, READS, COST = ORDER, "up to the first click", "L"
    FIGURE = 17
    KERNELS = Gaussians(), rank_one, count_one

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)
        self._uniforms = Normals(setting.generators, 1)

    def now(self, t: int) -> tuple[float]:
        """The logarithm of the next step."""
        return (math.log(t + 1.0),)
