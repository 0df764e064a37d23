"""The power of a test in n searches, and the searches that a power needs.

Both tests are two-sided z-tests of a mean: an A/B test, which sends every search to either ranker
by a coin, of the difference in what a search earns; an interleaving of the credit of a search.
What searches of different queries earn differs too, and is part of the variance.

Interleaving: one list from two rankers, whose clicks are credited to either.

Team draft: Radlinski, Kurup, Joachims, How does clickthrough data reflect retrieval quality?
(CIKM 2008). Before each pair of picks a coin says who picks first; each ranker adds its best item
that is not there yet to its team, and a click counts for the team of the item.

Probabilistic interleaving: Hofmann, Whiteson, de Rijke, A probabilistic method for inferring
preferences from clicks (CIKM 2011). At each position a coin chooses the ranker, and the item is
drawn from its softmax over ranks, P(item) ~ 1 / rank^3. Whose item it was is averaged out: a click
counts for each ranker by the probability that the item came from it.

The credit of a search is the difference of its clicks; both papers keep only its sign.

First and second moments of what one search earns, exactly.

With credits s_k for a click at position k, X = sum_k s_k c_k. From the last position to the first,
with m and q the moments of what is still to come (after a click m', q', after a skip m'', q''),

    E X   = p (s + m') + (1 - p) m''
    E X^2 = p (s^2 + 2 s m' + q') + (1 - p) q''.

Credits of 1 count clicks. Of users that differ, both are means over the classes.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from logeval.clicks.users.browsing import Browsing
from logeval.clicks.users.chain import Chain
from logeval.clicks.users.mixture import Users, classes_of
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit

MOST = 1e12  # searches, beyond which none are named


class Effect(NamedTuple):
    """What a test looks for: the mean, and the standard deviation of one search (A/B: see of)."""

    mean: float
    sd: float

    @classmethod
    def of_interleaving(cls, traffic: Floats, first: Floats, second: Floats) -> Effect:
        """From the moments of the credit in each query, (Q,)."""
        mean = float(traffic @ first)
        return cls(mean, math.sqrt(max(float(traffic @ second) - mean**2, 0.0)))

    @classmethod
    def of_ab(
        cls, traffic: Floats, control: tuple[Floats, Floats], treatment: tuple[Floats, Floats]
    ) -> Effect:
        """From the moments of both arms; half of n searches each: sd^2 = 2 (var + var)."""
        means = [float(traffic @ first) for first, _ in (control, treatment)]
        variances = [
            float(traffic @ second) - mean**2
            for (_, second), mean in zip((control, treatment), means, strict=True)
        ]
        return cls(means[1] - means[0], math.sqrt(max(2.0 * sum(variances), 0.0)))


def power(effects: list[Effect], n: Floats | float, level: float = 0.05) -> Floats:
    """The probability that a test of n searches finds the effect, with its sign.

    Of several effects (draws of the users' parameters), the mean.
    """
    z = -ndtri(level / 2.0)
    n = np.asarray(n, dtype=float)
    total = np.zeros(n.shape)
    for mean, sd in effects:
        shift = np.sqrt(n) * abs(mean) / sd if sd > 0.0 else np.full(n.shape, np.inf * abs(mean))
        total += ndtr(np.nan_to_num(shift, nan=0.0, posinf=1e9) - z)
    found: Floats = total / len(effects)
    return found


def searches_needed(effects: list[Effect], wanted: float = 0.8, level: float = 0.05) -> float:
    """The fewest searches with that power; infinite where there are none."""
    low, high = 1.0, MOST
    if float(power(effects, high, level)) < wanted:
        return math.inf
    while high / low > 1.0 + 1e-9:
        middle = math.sqrt(low * high)
        if float(power(effects, middle, level)) < wanted:
            low = middle
        else:
            high = middle
    return math.ceil(high * (1.0 - 1e-9))


TAU = 3.0  # of the softmax over ranks


class Interleaved(NamedTuple):
    """Lists that an interleaving may show, and what a click on each position says."""

    A: Ints  # (n, K) items
    credit: Floats  # (n, K) of a click: 1 is for the second ranker, -1 for the first
    p: Floats  # (n,) how likely each list is


class Interleaving(Protocol):
    """A way to interleave."""

    name: ClassVar[str]

    def lists(self, a: Ints, b: Ints, rng: np.random.Generator, n: int) -> Interleaved:
        """The lists made of the lists a and b, (K,) each: all of them, or n that are drawn."""


class TeamDraft:
    """Both rankers pick in turn; all outcomes of the coins are listed."""

    name: ClassVar[str] = "team-draft interleaving"

    def lists(self, a: Ints, b: Ints, rng: np.random.Generator, n: int) -> Interleaved:
        """One list for each sequence of coins, 2^(K/2) of them; equal ones are one."""
        found: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        rankers = {-1: [int(item) for item in a], 1: [int(item) for item in b]}

        def draft(shown: tuple[int, ...], teams: tuple[int, ...], p: float) -> None:
            if len(shown) == len(a):
                found[shown, teams] = found.get((shown, teams), 0.0) + p
                return
            ahead = sum(teams)
            turns = [-1, 1] if ahead == 0 else [-1 if ahead > 0 else 1]
            for team in turns:
                pick = next(item for item in rankers[team] if item not in shown)
                draft((*shown, pick), (*teams, team), p / len(turns))

        draft((), (), 1.0)
        A, credit = (np.array(column) for column in zip(*found, strict=True))
        return Interleaved(A, credit.astype(float), np.array(list(found.values())))


class Probabilistic:
    """Items drawn from the softmax of either ranker; lists are drawn, credits are exact."""

    name: ClassVar[str] = "probabilistic interleaving"

    def lists(self, a: Ints, b: Ints, rng: np.random.Generator, n: int) -> Interleaved:
        """n lists; an item that one ranker does not have comes after those that it has."""
        items = np.array(list(dict.fromkeys([*a.tolist(), *b.tolist()])))
        chances = np.stack([softmax(items, own) for own in (a, b)])  # (2, U)
        K, every = len(a), np.arange(n)
        left = np.ones((n, len(items)))
        A, credit = np.empty((n, K), dtype=np.int64), np.empty((n, K))
        for k in range(K):
            p = chances[:, None] * left  # (2, n, U)
            p /= p.sum(axis=2, keepdims=True)
            either = p.mean(axis=0)
            u = ((rng.permutation(n) + rng.random(n)) / n)[:, None]  # even over [0, 1)
            drawn = np.minimum((np.cumsum(either, axis=1) < u).sum(axis=1), len(items) - 1)
            A[:, k] = items[drawn]
            first, second = p[:, every, drawn]
            credit[:, k] = (second - first) / (second + first)
            left[every, drawn] = 0.0
        return Interleaved(A, credit, np.full(n, 1.0 / n))


def softmax(items: Ints, ranker: Ints) -> Floats:
    """P(item) ~ 1 / rank^3 of all items, those first that the ranker has."""
    order = [*ranker.tolist(), *(i for i in items.tolist() if i not in ranker)]
    rank = np.array([order.index(item) + 1 for item in items.tolist()], dtype=float)
    p: Floats = rank**-TAU
    return p / p.sum()


INTERLEAVINGS: tuple[Interleaving, ...] = (TeamDraft(), Probabilistic())


def credit_moments(users: Users, A: Ints, credit: Floats) -> tuple[Floats, Floats]:
    """E X and E X^2 of each list of rows (n, K) with its credits (n, K)."""
    share, classes = classes_of(users)
    each = [
        _of_chain(one, A, credit) if isinstance(one, Chain) else _of_browsing(one, A, credit)
        for one in classes
    ]
    first, second = (share @ np.stack(column) for column in zip(*each, strict=True))
    return first, second


def metric_moments(users: Users, A: Ints, metric: str) -> tuple[Floats, Floats]:
    """E Y and E Y^2 of clicks, of satisfaction, or of any click."""
    if metric == "clicks":
        return credit_moments(users, A, np.ones(A.shape))
    p = users.expected_reward(A, metric)
    return p, p  # 0 or 1


def _of_chain(users: Chain, A: Ints, credit: Floats) -> tuple[Floats, Floats]:
    stay = users.stay_item[:, None] * users.stay_position[: A.shape[1]]
    m, q = chain_moments(users.w, stay, float(users.skip), A, credit)
    return m, q


@njit(cache=True, nogil=True)
def chain_moments(w, stay, skip, A, credit):
    """E X and E X^2 of each row, by the formulas above; stay (L, K) is after a click."""
    n, K = A.shape
    first, second = np.empty(n), np.empty(n)
    for i in range(n):
        m = q = 0.0
        for k in range(K - 1, -1, -1):
            a, s = A[i, k], credit[i, k]
            p, on = w[a], stay[a, k]
            q = p * (s * s + 2.0 * s * on * m + on * q) + (1.0 - p) * skip * q
            m = p * (s + on * m) + (1.0 - p) * skip * m
        first[i], second[i] = m, q
    return first, second


def _of_browsing(users: Browsing, A: Ints, credit: Floats) -> tuple[Floats, Floats]:
    n, K = A.shape
    w = users.w[A]
    m, q = np.zeros((n, K + 1)), np.zeros((n, K + 1))  # by the previous click
    for k in reversed(range(K)):
        p, s = w[:, k, None] * users.e[k, : k + 1], credit[:, k, None]
        after_m, after_q = m[:, k + 1, None], q[:, k + 1, None]
        q[:, : k + 1] = p * (s**2 + 2.0 * s * after_m + after_q) + (1.0 - p) * q[:, : k + 1]
        m[:, : k + 1] = p * (s + after_m) + (1.0 - p) * m[:, : k + 1]
    return m[:, 0], q[:, 0]
