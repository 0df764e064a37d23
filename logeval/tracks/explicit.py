"""Synthetic problems of the ranking track with every parameter given.

    PBM(w=0.5/0.4/0.3,e=1/0.6)      examination e of the K positions; reward: expected clicks
    CM(w=0.5/0.4/0.3,K=2)           K positions; reward: satisfaction, 1 - prod(1 - w)
    DCM(w=0.5/0.4/0.3,v=0.8/0.4)    termination v of the K positions; reward: satisfaction
    DBN(w=0.5/0.4/0.3,s=0.7,gamma=0.9,K=2)
                                    every click satisfies with s, all others go on with gamma;
                                    reward: satisfaction

w are the attractions of the L items. ``base=2>1`` names the list (items from 1) that a policy with
need of one starts from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from logeval.clicks.models.browsing import Browsing
from logeval.clicks.models.chain import Chain
from logeval.errors import LogevalError, unknown_names
from logeval.policies.names import format_call
from logeval.running.arrays import Floats, Ints
from logeval.tracks.problems import REWARDS, RankingProblem, numbers
from logeval.tracks.track import SYNTHETIC


class Probabilities(tuple[float, ...]):
    """Probabilities written 0.5/0.4/0.3."""

    def __new__(cls, text: str) -> Probabilities:
        """From the text."""
        return super().__new__(cls, (float(part) for part in text.split("/")))

    def __str__(self) -> str:
        return "/".join(f"{p:.12g}" for p in self)


class Items(tuple[int, ...]):
    """Items from 1, written 2>1>3."""

    def __new__(cls, text: str) -> Items:
        """From the text."""
        return super().__new__(cls, (int(part) for part in text.split(">")))

    def __str__(self) -> str:
        return ">".join(str(i) for i in self)


def parse_pbm(text: str, reward: str | None = None) -> RankingProblem:
    """``PBM(w=0.5/0.4/0.3,e=1/0.6)``."""
    given = numbers(text, {"w": Probabilities, "e": Probabilities, "base": Items}, ("base",))
    w, e = _array(text, given, "w"), _array(text, given, "e")
    users = Browsing(w, np.repeat(e[:, None], len(e) + 1, axis=1))
    return _problem("PBM", text, given, users, e, ("clicks", "any-click"), reward)


def parse_cm(text: str, reward: str | None = None) -> RankingProblem:
    """``CM(w=0.5/0.4/0.3,K=2)``."""
    given = numbers(text, {"w": Probabilities, "K": int, "base": Items}, ("base",))
    if given["K"] < 1:
        raise LogevalError(f"{text}: K must be at least 1")
    w, v = _array(text, given, "w"), np.ones(given["K"])
    return _problem("CM", text, given, _chain(w, v), v, REWARDS, reward)


def parse_dcm(text: str, reward: str | None = None) -> RankingProblem:
    """``DCM(w=0.5/0.4/0.3,v=0.8/0.4)``."""
    given = numbers(text, {"w": Probabilities, "v": Probabilities, "base": Items}, ("base",))
    w, v = _array(text, given, "w"), _array(text, given, "v")
    return _problem("DCM", text, given, _chain(w, v), v, REWARDS, reward)


def parse_dbn(text: str, reward: str | None = None) -> RankingProblem:
    """``DBN(w=0.5/0.4/0.3,s=0.7,gamma=0.9,K=2)`` (cascading-bandits, section 5.3)."""
    kinds = {"w": Probabilities, "s": float, "gamma": float, "K": int, "base": Items}
    given = numbers(text, kinds, ("base",))
    w, K = _array(text, given, "w"), given["K"]
    s, gamma = (float(_array(text, given, key)) for key in ("s", "gamma"))
    if K < 1:
        raise LogevalError(f"{text}: K must be at least 1")
    L = len(w)
    users = Chain(
        w, np.full(L, 1.0 - s), np.full(K, gamma), gamma, np.full(L, s), sat_position=np.ones(K)
    )
    return _problem("DBN", text, given, users, np.ones(K), REWARDS, reward)


EXPLICIT = {"PBM": parse_pbm, "CM": parse_cm, "DCM": parse_dcm, "DBN": parse_dbn}


def _array(text: str, given: dict[str, Any], key: str) -> Floats:
    values = np.array(given[key], dtype=float)
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise LogevalError(f"{text}: {key} must be probabilities, from 0 to 1")
    return values


def _chain(w: Floats, v: Floats) -> Chain:
    L = len(w)
    return Chain(w, np.ones(L), 1.0 - v, 1.0, np.ones(L), v)


def _problem(
    name: str,
    text: str,
    given: dict[str, Any],
    users: Chain | Browsing,
    weight: Floats,
    rewards: tuple[str, ...],
    reward: str | None,
) -> RankingProblem:
    """The k-th best item at the position of the k-th largest weight is best for all of these.

    Only satisfaction (chains), clicks and any-click (PBM) are known to be so; other rewards are
    refused.
    """
    K, L = len(weight), len(users.w)
    if K > L:
        raise LogevalError(f"{text}: there are {L} items for {K} positions")
    own = rewards[:1] if isinstance(users, Chain) else rewards
    if reward is not None and reward not in own:
        raise unknown_names(f"reward of {name}", [reward], own)
    best = np.empty(K, dtype=np.int64)
    best[np.argsort(-weight, kind="stable")] = np.argsort(-users.w, kind="stable")[:K]
    base = _base(text, given.get("base"), K, L)
    name = format_call(name, given)
    return RankingProblem(name, SYNTHETIC, users, best, base, reward=reward or own[0])


def _base(text: str, items: Items | None, K: int, L: int) -> Ints | None:
    if items is None:
        return None
    if len(items) != K or len(set(items)) != K or not all(1 <= i <= L for i in items):
        raise LogevalError(f"{text}: base must hold {K} different items from 1 to {L}")
    return np.array(items, dtype=np.int64) - 1
