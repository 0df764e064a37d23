"""GRAB and S-GRAB (Gauthier, Gaudel, Fromont, Lompo: Parametric graph for unimodal ranking bandit,
ICML 2021), and KL-CombUCB1 (Combes et al. 2015, as they use it)."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from logeval.running.arrays import Floats, Ints
from tests.references.bounds import kl_index_at, kl_ucb
from tests.references.lists import Cells
from tests.references.replica import Replica


def best_assignment(M: Any) -> Any:
    """The item of each position, for the largest sum of M[item, position].

    By shortest augmenting paths, position after position, as in the kernel: of several best lists,
    which are common early on, scipy's ``linear_sum_assignment`` may return another one.
    """
    L, K = M.shape
    cost = np.zeros((L + 1, K + 1))
    cost[1:, 1:] = -M
    y, x = np.zeros(K + 1), np.zeros(L + 1)  # potentials of positions and items
    position = np.zeros(L + 1, dtype=int)  # of each item; 0: none. Item 0 looks for a place
    for k in range(1, K + 1):
        position[0], item = k, 0
        slack, way = np.full(L + 1, np.inf), np.zeros(L + 1, dtype=int)
        used = np.zeros(L + 1, dtype=bool)
        while position[item] != 0:
            used[item] = True
            p = position[item]
            reduced = cost[:, p] - y[p] - x
            closer = ~used & (reduced < slack)
            slack[closer], way[closer] = reduced[closer], item
            nearest = int(np.argmin(np.where(used, np.inf, slack)))
            step = slack[nearest]
            y[position[used]] += step
            x[used] -= step
            slack[~used] -= step
            item = nearest
        while item:
            position[item] = position[way[item]]
            item = way[item]
    A = np.empty(K, dtype=int)
    for i in range(1, L + 1):
        if position[i]:
            A[position[i] - 1] = i - 1
    return A


class Leader:
    """The best list, which stays as long as it is one of the best."""

    def __init__(self, A: Ints) -> None:
        self.A = np.array(A)

    def update(self, M: Any) -> Ints:
        """The best list of the values M."""
        k = np.arange(len(self.A))
        A = best_assignment(M)
        if M[A, k].sum() > M[self.A, k].sum() + 1e-9:
            self.A = A
        return self.A


class GRAB(Cells):
    """GRAB; the first leader is random, as labels are."""

    neighbours = "chain"

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica)
        K, L = self.K, self.L
        self.leader = Leader(np.arange(K))
        self.tau: Counter[Any] = Counter()
        self.gamma = L - 1 if self.neighbours == "chain" else K * (2 * L - K - 1) // 2

    def candidates(self, A: Ints, rho: Any) -> Any:
        """The leader, then its neighbours: exchanges, then replacements."""
        k = np.arange(self.K)
        yield A
        pi = np.argsort(-rho[A, k], kind="stable")
        if self.neighbours == "chain":
            exchanges, replaced = list(pairwise(pi)), pi[-1:]
        else:
            exchanges, replaced = list(combinations(range(self.K), 2)), k
        for a, b in exchanges:
            other = A.copy()
            other[a], other[b] = A[b], A[a]
            yield other
        for a in replaced:
            for item in np.setdiff1d(np.arange(self.L), A):
                other = A.copy()
                other[a] = item
                yield other

    def choose(self, t: int, u: Floats) -> Any:
        """The list that the rule says."""
        A, rho, k = self.leader.A, self.rho(), np.arange(self.K)
        tau = self.tau[tuple(A)]
        self.tau[tuple(A)] += 1
        if self.gamma == 0 or tau % self.gamma == 0:
            return A.copy()
        U = kl_index_at(tau, rho, self.N)
        played, best = A, 0.0
        for other in self.candidates(A, rho):
            changed = other != A
            gain = (U[other, k] - U[A, k])[changed].sum()
            if gain > best + 1e-10:
                played, best = other, gain
        return played.copy()

    def learn(self, t: int, A: Ints, clicks: Ints) -> Any:
        """Count, and find the best assignment."""
        super().learn(t, A, clicks)
        self.leader.update(self.rho())


class SGRAB(GRAB):
    """S-GRAB: all exchanges and replacements."""

    neighbours = "all"


class KLCombUCB1(Cells):
    """The best assignment of KL-UCB indices at budget log n."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica)
        self.list = Leader(np.arange(self.K))

    def choose(self, t: int, u: Floats) -> Any:
        """The list that the rule says."""
        return self.list.A.copy()

    def learn(self, t: int, A: Ints, clicks: Ints) -> Any:
        """Count, and find the best assignment."""
        super().learn(t, A, clicks)
        self.list.update(kl_ucb(self.rho(), self.N, np.log(self.n)))
