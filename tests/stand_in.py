"""Small click models with random parameters; their best lists are found by brute force."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from logeval.clicks.users.browsing import Browsing
from logeval.clicks.users.chain import Chain
from logeval.clicks.users.choice import Choice
from logeval.tracks.fitted import fitted_queries
from logeval.tracks.lists import RankingProblem, ranking_problems

NAMES = ("CM", "DCM", "DBN", "CCM", "PBM", "UBM", "Choice")


@dataclass(frozen=True)
class StandIn:
    name: str
    users: Chain | Browsing | Choice
    K: int

    @property
    def items(self):
        return np.arange(len(self.users.w)) + 100

    @property
    def rewards(self):
        own = "satisfaction" if self.name in ("CM", "DCM", "DBN") else "clicks"
        others = ("satisfaction",) if isinstance(self.users, Chain) else ()
        return tuple(dict.fromkeys((own, *others, "clicks", "any-click")))

    def best_rows(self, K, reward):
        lists = np.array(list(itertools.permutations(range(len(self.items)), K)))
        return lists[np.argmax(self.users.expected_reward(lists, reward))]


def stand_in(name: str, L: int, K: int, seed: int) -> StandIn:
    rng = np.random.default_rng([seed, L, K])
    w, s, v = rng.random(L), rng.random(L), rng.random(K)
    one_L, one_K = np.ones(L), np.ones(K)
    if name == "CM":
        users = Chain(w, one_L, 0 * one_K, 1.0, one_L, one_K)
    elif name == "DCM":
        users = Chain(w, one_L, 1 - v, 1.0, one_L, v)
    elif name == "DBN":
        gamma = rng.random()
        users = Chain(w, 1 - s, gamma * one_K, gamma, s, one_K)
    elif name == "CCM":
        tau1, tau2, tau3 = rng.random(3)
        users = Chain(w, tau2 * (1 - w) + tau3 * w, one_K, tau1, one_L, 0 * one_K)
    elif name == "PBM":
        users = Browsing(w, np.repeat(v[:, None], K + 1, axis=1))
    elif name == "UBM":
        users = Browsing(w, rng.random((K, K + 1)))
    else:
        users = Choice(w, s, rng.random((K, K + 1)), v, rng.random(K), float(rng.random()))
    return StandIn(name, users, K)


def models(name: str, lengths, K: int, seed: int = 0):
    """(name, query, model) like a collection of fitted models."""
    return [(name, f"{7 + i}@0", stand_in(name, L, K, seed + i)) for i, L in enumerate(lengths)]


def lists(models, positions=None, reward=None, queries=None) -> list[RankingProblem]:
    """Their problems in the ranking track."""
    return ranking_problems(fitted_queries(models, positions, reward, queries), reward)


def large_dcm(L: int, K: int, seed: int = 0) -> RankingProblem:
    """A DCM whose best list has a closed form: too large for brute force."""
    rng = np.random.default_rng([seed, L])
    w, v = rng.beta(1, 8, L), np.sort(rng.random(K))[::-1]
    users = Chain(w, np.ones(L), 1 - v, 1.0, np.ones(L), v)
    return RankingProblem("DCM", f"L{L}", users, np.argsort(-w)[:K])
