"""CascadeDUCB and CascadeSWUCB as in the paper, and the same for dcmKL-UCB.

Li, de Rijke: Cascading non-stationary bandits (IJCAI 2019), after Garivier, Moulines: On
upper-confidence bound policies for non-stationary bandit problems (ALT 2011), sections 2.1 and 2.2.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from logeval.policies.shared.options import discount_of, positions, steps_in_memory, window_of
from logeval.running.arrays import Floats, Ints
from tests.references.bounds import kl_ucb
from tests.references.replica import Replica, largest

NEAR_1 = 1.0 - 1e-9  # a bound above is as good as 1


class SlidingWindow:
    """The last tau steps count; an item not observed in them comes first."""

    all_clicks = False

    def __init__(self, replica: Replica) -> None:
        self.K, self.L, self.given = replica.K, replica.L, replica.given
        self.order = positions(replica.given.order, self.K)
        self.begin(replica)

    def begin(self, replica: Replica) -> None:
        """Nothing is remembered."""
        self.tau = window_of(replica.given.tau, replica.n)
        self.window: deque[tuple[Ints, Ints]] = deque(maxlen=self.tau)

    def sums(self) -> tuple[Floats, Floats]:
        """N_t(e) and the clicks."""
        T, S = np.zeros(self.L), np.zeros(self.L)
        for examined, clicked in self.window:
            T[examined] += 1.0
            S[clicked] += 1.0
        return T, S

    def steps(self, t: int) -> float:
        """How many steps are remembered."""
        return float(min(t, self.tau))

    def bound(self, m: float, p: Floats, T: Floats) -> Floats:
        """sqrt(eps ln m / T) above the mean."""
        return p + np.sqrt(self.given.eps * max(math.log(m), 0.0) / T)

    def recommend(self, t: int) -> Ints:
        """The K items with the largest bounds."""
        T, S = self.sums()
        U, seen = np.full(self.L, np.inf), T > 0
        U[seen] = self.bound(self.steps(t), S[seen] / T[seen], T[seen])
        A = np.empty(self.K, dtype=np.int64)
        A[self.order] = largest(U)[: self.K]
        return A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Remember which items were surely examined, and which of them were clicked."""
        at = np.flatnonzero(clicks)
        last = at[-1 if self.all_clicks else 0] if len(at) else self.K - 1
        self.remember(A[: last + 1], A[at[at <= last]])

    def remember(self, examined: Ints, clicked: Ints) -> None:
        """The newest step; the oldest is forgotten."""
        self.window.append((examined.copy(), clicked.copy()))


class Discounted(SlidingWindow):
    """A step that is one older counts gamma times as much."""

    def begin(self, replica: Replica) -> None:
        """Nothing is remembered."""
        self.gamma = discount_of(replica.given.gamma, replica.n)
        self.T, self.S = np.zeros(self.L), np.zeros(self.L)

    def sums(self) -> tuple[Floats, Floats]:
        """N_t(gamma, e) and the clicks, as much."""
        return self.T, self.S

    def steps(self, t: int) -> float:
        """1 + gamma + ..., of the steps before."""
        return max(steps_in_memory(t, self.gamma), 1.0)

    def bound(self, m: float, p: Floats, T: Floats) -> Floats:
        """2 sqrt(eps ln m / T) above the mean."""
        return p + 2.0 * np.sqrt(self.given.eps * max(math.log(m), 0.0) / T)

    def remember(self, examined: Ints, clicked: Ints) -> None:
        """The newest step counts 1."""
        self.T, self.S = self.gamma * self.T, self.gamma * self.S
        self.T[examined] += 1.0
        self.S[clicked] += 1.0


class CascadeSWUCB(SlidingWindow):
    """Li, de Rijke 2019, Algorithm 1 with a window."""


class CascadeDUCB(Discounted):
    """Li, de Rijke 2019, Algorithm 1 with a discount."""


def kl_bound(m: float, p: Floats, T: Floats) -> Floats:
    """KL-UCB with as many steps as are remembered: ln m + 3 ln ln m."""
    budget = max(math.log(m) + 3.0 * math.log(math.log(m)), 0.0) if m > 1.0 else 0.0
    return np.minimum(kl_ucb(p, T, budget), NEAR_1)


class SlidingDcmKLUCB(SlidingWindow):
    """dcm-bandits, Algorithm 1, on the last tau steps."""

    all_clicks = True

    def bound(self, m: float, p: Floats, T: Floats) -> Floats:
        """U_t(e)."""
        return kl_bound(m, p, T)


class DiscountedDcmKLUCB(Discounted):
    """dcm-bandits, Algorithm 1, with a discount."""

    all_clicks = True

    def bound(self, m: float, p: Floats, T: Floats) -> Floats:
        """U_t(e)."""
        return kl_bound(m, p, T)
