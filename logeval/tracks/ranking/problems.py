"""The problems of the ranking track: one query each, fitted or synthetic.

B_LB(L, K, p, gap, gamma) has K items with attraction p, L - K items with attraction p - gap,
and K positions with termination gamma (cascading-bandits, equation 6; dcm-bandits, section
4.3). With gamma = 1 it is the cascade model. With changes = 3 there are four periods of equal
length, and in each the next K items are the attractive ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from logeval.clicks.lists import Ranker
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.users.browsing import Browsing
from logeval.clicks.models.users.chain import Chain
from logeval.clicks.models.users.mixture import Users, classes_of
from logeval.errors import LogevalError, unknown_names
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
