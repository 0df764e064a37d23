"""What a test of a policy against today's ranker takes: searches, for a power of 80%.

Both tests are two-sided z-tests of a mean. An A/B test sends every search to either ranker by a
coin. The policy learns while it is tested: in n searches it has n / 2, and its effect is the mean
of what it is ahead in these, which is read off its curve. The variance of a search is that of the
log. An interleaving credits the clicks of one list made of both rankers' to either; what is
compared is what the policy shows meanwhile, some times in the period: it learns here, too.

Team draft: Radlinski, Kurup, Joachims, How does clickthrough data reflect retrieval quality?
(CIKM 2008). Before each pair of picks a coin says who picks first; each ranker adds its best item
that is not there yet to its team, and a click counts for the team of the item.

First and second moments of the credit of a search, exactly. With credits s_k for a click at
position k, X = sum_k s_k c_k. From the last position to the first, with m and q the moments of what
is still to come (after a click m', q', after a skip m'', q''),

    E X   = p (s + m') + (1 - p) m''
    E X^2 = p (s^2 + 2 s m' + q') + (1 - p) q''.

Of users that differ, both are means over the classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from logeval.clicks.users.browsing import Browsing
from logeval.clicks.users.chain import Chain
from logeval.clicks.users.choice import Choice
from logeval.clicks.users.mixture import Users, classes_of
from logeval.decision.decision import TestSize
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit

AB, TEAM_DRAFT = "A/B test", "team-draft interleaving"
POWER, LEVEL = 0.8, 0.05
MOST = 1e9  # searches, beyond which none are named
DRAWS = 8  # of the users, whom interleaved lists are shown
PAIRS = 4  # lists of today's ranker that are interleaved, by query and draw


def power(effects: Floats, sd: Floats | float, n: float) -> float:
    """The probability that a test of n searches finds the effect, as a gain, mean over draws."""
    shift = math.sqrt(n) * effects / np.maximum(sd, 1e-12)
    return float(ndtr(shift + ndtri(LEVEL / 2.0)).mean())


def searches_needed(effect: Callable[[float], Floats], sd: Floats | float) -> float | None:
    """The fewest searches n with the power, of effects (D,) that may depend on n."""
    steps = np.geomspace(10.0, MOST, 161)
    enough = [power(effect(n), sd, n) >= POWER for n in steps]
    if not any(enough):
        return None
    i = int(np.argmax(enough))
    low, high = steps[max(i - 1, 0)], steps[i]
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        if power(effect(middle), sd, middle) >= POWER:
            high = middle
        else:
            low = middle
    return float(math.ceil(high))


def ab_test(ahead: Floats, searches: float, variance: float, days: float | None) -> TestSize:
    """From what a policy is ahead (D, T) at even steps of so many searches.

    With half of n searches for each ranker, sd^2 = 2 (var + var).
    """
    at = searches * np.arange(ahead.shape[1] + 1) / ahead.shape[1]
    so_far = np.concatenate([np.zeros((len(ahead), 1)), ahead], axis=1)
    pace = (so_far[:, -1] - so_far[:, -2]) / (at[-1] - at[-2])

    def effect(n: float) -> Floats:
        m = n / 2.0
        known = np.array([np.interp(m, at, one) for one in so_far])
        return np.asarray((known + pace * max(m - at[-1], 0.0)) / m)

    n = searches_needed(effect, 2.0 * math.sqrt(variance))
    mean = float(effect(n or searches).mean())
    return TestSize(AB, "per search", mean, n, _days(n, searches, days))


def interleaving(
    users: Sequence[Sequence[Users]],
    today: Sequence[tuple[Ints, Floats]],
    policy: Sequence[Ints],
    at: Floats,
    searches: Floats,
    days: float | None,
    slopes: Floats,
) -> TestSize:
    """From the users, by query and draw, today's lists with their chances, and those of a policy.

    Lists (n, K) and (D, T, K) are of rows of the users' items; T: ``at`` so many searches. A
    predicted difference counts as much as its slope (D,) says.
    """
    share = searches / searches.sum()
    first, second = [], []
    for of_query, (A, p), own in zip(users, today, policy, strict=True):
        top = np.argsort(-p, kind="stable")[:PAIRS]
        each = [
            [[_credits(u, A[i], lists) for i in top] for lists in of_draw]
            for u, of_draw in zip(of_query, own, strict=True)
        ]
        m, q = np.moveaxis(np.array(each), 3, 0) @ (p[top] / p[top].sum())
        first.append(m)
        second.append(q)
    mean, square = (np.tensordot(share, np.array(x), 1) for x in (first, second))  # (D, T)
    sd = np.sqrt(np.maximum(square - mean**2, 0.0))[:, -1]
    mean = mean * slopes[:, None]
    t = np.concatenate([[0.0], at])
    so_far = np.concatenate([np.zeros((len(mean), 1)), mean * np.diff(t)], axis=1).cumsum(axis=1)

    def effect(n: float) -> Floats:
        known = np.array([np.interp(n, t, one) for one in so_far])
        return np.asarray((known + mean[:, -1] * max(n - at[-1], 0.0)) / n)

    total = float(searches.sum())
    n = searches_needed(effect, sd)
    return TestSize(
        TEAM_DRAFT, "credit", float(effect(n or total).mean()), n, _days(n, total, days)
    )


def _days(n: float | None, searches: float, days: float | None) -> float | None:
    return None if n is None or days is None else n / searches * days


def _credits(users: Users, a: Ints, b: Ints) -> tuple[float, float]:
    A, credit, p = team_draft(a, b)
    m, q = credit_moments(users, A, credit)
    return float(p @ m), float(p @ q)


def team_draft(a: Ints, b: Ints) -> tuple[Ints, Floats, Floats]:
    """Lists (n, K) made of the lists a and b, credits of a click (1 is for b), and their chances.

    One for each sequence of coins, 2^(K/2) of them; equal ones are one.
    """
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
    return A, credit.astype(float), np.array(list(found.values()))


def credit_moments(users: Users, A: Ints, credit: Floats) -> tuple[Floats, Floats]:
    """E X and E X^2 of each list of rows (n, K) with its credits (n, K)."""
    share, classes = classes_of(users)
    each = [
        one.credit_moments(A, credit)
        if isinstance(one, Choice)
        else _of_chain(one, A, credit)
        if isinstance(one, Chain)
        else _of_browsing(one, A, credit)
        for one in classes
    ]
    first, second = (share @ np.stack(column) for column in zip(*each, strict=True))
    return first, second


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
