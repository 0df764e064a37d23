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

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.registry import MODELS
from logeval.errors import LogevalError, unknown_names
from logeval.running.arrays import Ints
from logeval.running.names import format_call
from logeval.tracks.keys import numbers
from logeval.tracks.ranking.problems import RankingProblem, position_weights
from logeval.tracks.track import SYNTHETIC


class Several(tuple[float, ...]):
    """Numbers in one text."""

    KIND: ClassVar[type] = float
    BETWEEN: ClassVar[str] = "/"

    def __new__(cls, text: str) -> Self:
        """From the text."""
        return super().__new__(cls, map(cls.KIND, text.split(cls.BETWEEN)))

    def __str__(self) -> str:
        return self.BETWEEN.join(f"{x:.12g}" for x in self)


class Items(Several):
    """Items from 1, written 2>1>3."""

    KIND, BETWEEN = int, ">"


PARAMETERS: dict[str, dict[str, type]] = {
    "PBM": {"w": Several, "e": Several},
    "CM": {"w": Several, "K": int},
    "DCM": {"w": Several, "v": Several},
    "DBN": {"w": Several, "s": float, "gamma": float, "K": int},
}


def parse_model(name: str, text: str, reward: str | None = None) -> RankingProblem:
    """A problem whose users are those of a click model; w sorted is best for all of these.

    The k-th best item stands at the position that counts k-th most. Only satisfaction (chains),
    clicks and any-click (PBM) are known to be so; other rewards are refused.
    """
    given = numbers(text, {**PARAMETERS[name], "base": Items}, ("base",))
    model = _model(name, text, given)
    K, L = model.K, model.L
    if K < 1:
        raise LogevalError(f"{text}: K must be at least 1")
    if K > L:
        raise LogevalError(f"{text}: there are {L} items for {K} positions")
    own = model.rewards[:1] if model.rewards[0] == "satisfaction" else model.rewards
    if reward is not None and reward not in own:
        raise unknown_names(f"reward of {name}", [reward], own)
    weights = position_weights(model.users, K)
    assert weights is not None
    best = np.empty(K, dtype=np.int64)
    best[np.argsort(-weights, kind="stable")] = np.argsort(-model.users.w, kind="stable")[:K]
    base = _base(text, given.get("base"), K, L)
    called = format_call(name, given)
    return RankingProblem(called, SYNTHETIC, model.users, best, base, reward=reward or own[0])


def _model(name: str, text: str, given: dict[str, Any]) -> ClickModel:
    """The click model with the parameters that are given."""
    values = {key: np.array(given[key]) for key in given if key not in ("K", "base")}
    for key, value in values.items():
        if not ((value >= 0.0) & (value <= 1.0)).all():
            raise LogevalError(f"{text}: {key} must be probabilities, from 0 to 1")
    L = len(values["w"])
    K = given["K"] if "K" in given else len(values["e" if "e" in values else "v"])
    if "s" in values:  # every click satisfies equally
        values["s"] = np.full(L, values["s"])
    kind: Any = MODELS[name]
    model: ClickModel = kind(items=np.arange(L), K=K, **values)
    return model


EXPLICIT = {name: partial(parse_model, name) for name in PARAMETERS}


def _base(text: str, items: Items | None, K: int, L: int) -> Ints | None:
    if items is None:
        return None
    if len(items) != K or len(set(items)) != K or not all(1 <= i <= L for i in items):
        raise LogevalError(f"{text}: base must hold {K} different items from 1 to {L}")
    return np.array(items, dtype=np.int64) - 1
