"""The problems of the ranking track: one query each, fitted or synthetic.

B_LB(L, K, p, gap, gamma) has K items with attraction p, L - K items with attraction p - gap,
and K positions with termination gamma (cascading-bandits, equation 6; dcm-bandits, section
4.3). With gamma = 1 it is the cascade model. With changes = 3 there are four periods of equal
length, and in each the next K items are the attractive ones.

Synthetic problems of the ranking track with every parameter given.

    PBM(w=0.5/0.4/0.3,e=1/0.6)      examination e of the K positions; reward: expected clicks
    CM(w=0.5/0.4/0.3,K=2)           K positions; reward: satisfaction, 1 - prod(1 - w)
    DCM(w=0.5/0.4/0.3,v=0.8/0.4)    termination v of the K positions; reward: satisfaction
    DBN(w=0.5/0.4/0.3,s=0.7,gamma=0.9,K=2)
                                    every click satisfies with s, all others go on with gamma;
                                    reward: satisfaction

w are the attractions of the L items. ``base=2>1`` names the list (items from 1) that a policy with
need of one starts from.

Regret bounds of the papers for lists, to draw beside the curves.

Upper bounds are given without the terms that the papers leave open (the constants C_2 and beta
of Garivier and Cappe, which vanish with n) and with epsilon = 0: what is left are the leading
term and 7 K log log n. Lower bounds hold in the limit, R(n) / log n >= slope.
The rank-1 track has its bound in ``tracks.rank1``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from logeval.clicks.lists import Ranker
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.registry import MODELS
from logeval.clicks.users.browsing import Browsing
from logeval.clicks.users.chain import Chain
from logeval.clicks.users.mixture import Users, classes_of
from logeval.errors import LogevalError, unknown_names
from logeval.policies.shared.bounds import kl
from logeval.running.arrays import Floats, Ints
from logeval.running.names import format_call
from logeval.tracks.fitted import FittedQuery, with_lists
from logeval.tracks.keys import numbers
from logeval.tracks.track import SYNTHETIC, Problem

MOST_CHANGES = 10_000
REWARDS = ("satisfaction", "clicks", "any-click")
B_LB: dict[str, type] = {"L": int, "K": int, "p": float, "gap": float, "gamma": float}
CHANGES: dict[str, type] = {"changes": int}  # that B_LB may have


@dataclass(frozen=True)
class RankingProblem(Problem):
    """One query of a simulator: its users, and the list that is best for them.

    Users that change are those of the first period, and ``later`` has the others, of equal length:
    the same items, other users, another best list.
    """

    track = "ranking"

    users: Users
    best: Ints  # (K,) the list with the highest expected reward
    base: Ints | None = None  # (K,) the list that the log shows most often
    ranker: Ranker | None = field(default=None, kw_only=True, repr=False)  # what the log shows
    serps: float = field(default=np.nan, kw_only=True)  # that the users were fitted to
    most_clicks: float = field(default=np.nan, kw_only=True)  # expected, of any list
    later: tuple[RankingProblem, ...] = field(default=(), kw_only=True, repr=False)

    @property
    def periods(self) -> tuple[RankingProblem, ...]:
        """The problem of each period; itself where users do not change."""
        return (self, *self.later)

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.users.w)

    @property
    def positions(self) -> int:
        """Number of positions."""
        return len(self.best)

    @property
    def changes(self) -> bool:
        """Whether its users are not the same in all periods."""
        first = replace(self, later=()).checksum()
        return any(period.checksum() != first for period in self.later)

    @property
    def best_items(self) -> Ints:
        """(K,) the items of the best list, the one that satisfies most (is clicked most) first."""
        share, classes = classes_of(self.users)
        value = share @ np.stack(
            [u.w * u.sat_item if isinstance(u, Chain) else u.w for u in classes]
        )
        return self.best[np.argsort(-value[self.best], kind="stable")]

    def checksum(self) -> str:
        """Equal for equal problems."""
        digest = hashlib.sha256(f"{self.reward} {self.best.tolist()}".encode())
        share, classes = classes_of(self.users)
        if len(classes) > 1:
            digest.update(np.ascontiguousarray(share, dtype="<f8").tobytes())
        for users in classes:
            for name, value in sorted(vars(users).items()):
                digest.update(name.encode())
                digest.update(np.ascontiguousarray(value, dtype="<f8").tobytes())
        for period in self.later:
            digest.update(period.checksum().encode())
        return digest.hexdigest()[:16]

    def position_weights(self) -> Floats | None:
        """By how much each position counts for the best list."""
        return position_weights(self.users, self.positions)

    def facts(self, n: int) -> dict[str, Any]:
        """The value of the best list, and of what the log shows, on average over periods."""
        each, ranker = self.periods, self.ranker
        found = super().facts(n) | {
            "serps": self.serps,
            "best": np.mean([p.users.expected_reward(p.best[None], self.reward)[0] for p in each]),
            "best_clicks": np.mean([p.most_clicks for p in each]),
        }
        if ranker is None:
            return found
        earned = np.mean([p.users.expected_reward(ranker.A, self.reward) for p in each], axis=0)
        clicks = np.mean([p.users.expected_reward(ranker.A, "clicks") for p in each], axis=0)
        return found | {
            "ranker": ranker.p @ earned,
            "top_list": earned[0],
            "covered": ranker.covered,
            "ranker_clicks": ranker.p @ clicks,
            "log_clicks": ranker.clicks,
            "log_clicks_error": ranker.error,
        }


def examination(users: Users, K: int) -> Floats | None:
    """e(k) of a PBM, whose clicks depend on item and position alone; None for other users.

    Of classes of users, the mean: what one would say of them all.
    """
    share, classes = classes_of(users)
    found = []
    for one in classes:
        if not isinstance(one, Browsing) or np.ptp(one.e[:K], axis=1).max() > 0.0:
            return None
        found.append(one.e[:K, 0])
    return np.ascontiguousarray(share @ np.array(found, dtype=float))


def click_matrix(users: Users, K: int) -> Floats:
    """P(click) of each item at each position, (L, K), of a PBM, or classes of them."""
    share, classes = classes_of(users)
    each: list[Any] = list(classes)
    return sum(p * np.outer(one.w, one.e[:K, 0]) for p, one in zip(share, each, strict=True))


def position_weights(users: Users, K: int) -> Floats | None:
    """e(k) of a PBM, v(k) of a chain, on average over classes; None for other users."""
    share, classes = classes_of(users)
    chains = [one.sat_position[:K] for one in classes if isinstance(one, Chain)]
    if len(chains) == len(classes):
        return np.asarray(share @ np.array(chains, dtype=float))
    return examination(users, K)


def b_lb(
    L: int,
    K: int,
    p: float,
    gap: float,
    gamma: float = 1.0,
    reward: str = "satisfaction",
    changes: int = 0,
) -> RankingProblem:
    """The problem B_LB of both papers; the optimal items stand first, at first."""
    called = {"L": L, "K": K, "p": p, "gap": gap, "gamma": gamma}
    name = format_call("B_LB", called | ({"changes": changes} if changes else {}))
    if not 1 <= K <= L:
        raise LogevalError(f"{name}: K must be between 1 and L")
    if not (0 <= p - gap <= p <= 1 and 0 <= gamma <= 1):
        raise LogevalError(f"{name}: 0 <= p - gap <= p <= 1 and 0 <= gamma <= 1 must hold")
    if not 0 <= changes <= MOST_CHANGES or (changes and not (L > K and gap > 0)):
        raise LogevalError(
            f"{name}: changes must be from 0 to {MOST_CHANGES:,}, and need L > K and gap > 0"
        )
    w, first = np.where(np.arange(L) < K, p, p - gap), np.arange(K)

    def at(period: int) -> Any:
        users = DCM(np.arange(L), K, np.roll(w, period * K), np.full(K, gamma)).users
        return users, (first + period * K) % L

    later = [RankingProblem(name, SYNTHETIC, *at(j + 1), reward=reward) for j in range(changes)]
    return RankingProblem(name, SYNTHETIC, *at(0), reward=reward, later=tuple(later))


def parse_b_lb(text: str, reward: str | None = None) -> RankingProblem:
    """B_LB from its name, ``B_LB(L=16,K=4,p=0.2,gap=0.15,gamma=0.5)``."""
    if reward is not None and reward not in REWARDS:
        raise unknown_names("reward", [reward], REWARDS)
    values = numbers(text, B_LB | CHANGES, optional=("gamma", "changes"))
    return b_lb(**values, reward=reward or "satisfaction")


def ranking_problems(fitted: Sequence[FittedQuery], reward: str | None) -> list[RankingProblem]:
    """The problems of fitted click models; ``reward`` replaces the model's own."""
    return [
        _problem(f, reward, tuple(_problem(f._replace(model=m), reward) for m in f.later))
        for f in with_lists(fitted)
    ]


def _problem(
    f: FittedQuery, reward: str | None, later: tuple[RankingProblem, ...] = ()
) -> RankingProblem:
    """The problem of a fitted model."""
    chosen = reward or f.model.rewards[0]
    best, gap = _best(f.model, f.K, chosen)
    users: Users = f.model.users
    base = None if f.base is None else f.base[: f.K]
    most = best if chosen == "clicks" else _best(f.model, f.K, "clicks")[0]
    return RankingProblem(
        f.simulator, f.query, users, best, base, draw=f.draw, reward=chosen,
        gap=float(np.mean([gap, *(p.gap for p in later)])), ranker=f.ranker, serps=f.serps,
        most_clicks=float(users.expected_reward(most[None], "clicks")[0]), later=later,
    )  # fmt: skip


def _best(model: Any, K: int, reward: str) -> tuple[Ints, float]:
    """The best list, and its gap to a bound; a user's own model is taken at its word."""
    if not hasattr(model, "optimum"):
        return np.asarray(model.best_rows(K, reward), dtype=np.int64), 0.0
    optimum = model.optimum(K, reward)
    return np.asarray(optimum.A, dtype=np.int64), float(optimum.gap)


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


def cascade_lower_slope(L: int, K: int, p: float, gap: float) -> float:
    """Any consistent algorithm on B_LB, cascading-bandits, Theorem 4; multiply by log n."""
    return (L - K) * gap * (1.0 - p) ** (K - 1) / kl(p - gap, p)


def dcm_lower_slope(L: int, K: int, p: float, gap: float, gamma: float) -> float:
    """Any consistent algorithm on B_LB, dcm-bandits, Theorem 3; multiply by log n."""
    return gamma * cascade_lower_slope(L, K, p, gap)


def b_lb_lower_slope(problem: str) -> float | None:
    """That of ``dcm_lower_slope`` for B_LB by its name; None where the theorem does not hold."""
    given = numbers(problem, B_LB | CHANGES, optional=("gamma", "changes"))
    if given.pop("changes", 0):
        return None
    values = {"gamma": 1.0, **given}
    return dcm_lower_slope(**values) if 0.0 < values["gap"] < values["p"] else None
