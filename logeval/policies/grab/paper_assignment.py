"""The best assignment of items to positions by shortest augmenting paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from logeval.running.arrays import Ints


def best_assignment(M: Any) -> Any:
    """The item of each position, for the largest sum of M[item, position]."""
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
