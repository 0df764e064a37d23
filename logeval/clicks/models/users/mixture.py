"""Users that differ: each is of one of C classes, and follows that class's chain or browsing.

    P(clicks | list) = sum_c share(c) P_c(clicks | list)

What is linear in the users (click probabilities, rewards) is the mean over classes. What depends on
earlier clicks is the mean over the posterior of the class, which they change:

    P(c_k = 1 | c_<k) = sum_c P(c | c_<k) P_c(c_k = 1 | c_<k),   P(c | c_<k) ~ share(c) P_c(c_<k).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.clicks.models.users.browsing import Browsing
from logeval.clicks.models.users.chain import Chain
from logeval.running.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class Mixture:
    """The users of one query: the share of each class, and its users."""

    share: Floats  # (C,)
    classes: tuple[Chain | Browsing, ...]

    @property
    def w(self) -> Floats:
        """(L,) attraction, on average over the classes."""
        return self._mean([users.w for users in self.classes])

    def _mean(self, values: list[Floats]) -> Floats:
        mean: Floats = np.tensordot(self.share, np.stack(values), axes=1)
        return mean

    def click_probs(self, A: Ints) -> Floats:
        """P(c_k = 1) for each list (row of A)."""
        return self._mean([users.click_probs(A) for users in self.classes])

    def conditional_click_probs(self, A: Ints, clicks: Ints | Bools) -> Floats:
        """P(c_k = 1 | c_<k) for each list and its clicks."""
        clicked = np.asarray(clicks).astype(np.bool_)
        p = np.stack([users.conditional_click_probs(A, clicked) for users in self.classes])
        with np.errstate(divide="ignore"):
            seen = np.log(np.where(clicked, p, 1.0 - p))  # (C, n, K)
            prior = np.log(self.share)[:, None, None]
        before = np.concatenate([np.zeros_like(seen[:, :, :1]), seen[:, :, :-1]], axis=2)
        weight = np.cumsum(before, axis=2) + prior
        most = weight.max(axis=0)
        weight = np.exp(weight - np.where(np.isfinite(most), most, 0.0))
        total = weight.sum(axis=0)
        weight /= np.where(total > 0.0, total, 1.0)
        found: Floats = (weight * p).sum(axis=0)
        return np.where(total > 0.0, found, self.click_probs(A))  # after clicks that cannot happen

    def sample(self, A: Ints, uniforms: Floats) -> Ints:
        """Clicks (n, K) of one user per list, from one uniform per position.

        The first one decides the class too: given the class, where it lies within the class's share
        is uniform again.
        """
        up_to, clicks = np.cumsum(self.share), np.zeros(A.shape, dtype=np.int8)
        up_to[-1] = 1.0
        drawn = np.searchsorted(up_to, uniforms[:, 0], side="right")
        for c, users in enumerate(self.classes):
            mine = np.flatnonzero(drawn == c)
            if len(mine):
                u = uniforms[mine]
                u[:, 0] = np.clip((u[:, 0] - up_to[c] + self.share[c]) / self.share[c], 0.0, 1.0)
                clicks[mine] = users.sample(A[mine], u)
        return clicks

    def expected_reward(self, A: Ints, reward: str) -> Floats:
        """The expected reward of each list, on average over the classes."""
        return self._mean([users.expected_reward(A, reward) for users in self.classes])


Users = Chain | Browsing | Mixture


def classes_of(users: Users) -> tuple[Floats, tuple[Chain | Browsing, ...]]:
    """Shares and classes; one class of all where users do not differ."""
    if isinstance(users, Mixture):
        return users.share, users.classes
    return np.ones(1), (users,)
