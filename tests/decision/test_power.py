"""Interleavings against the paper's examples, moments by brute force, power by simulation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from logeval.clicks.models.classes import Classes
from logeval.decision.power import (
    ab_test,
    credit_moments,
    interleaving,
    power,
    searches_needed,
    team_draft,
)
from tests.clicks.examples import all_patterns, random_model

NAMES = ["CM", "DCM", "SDBN", "DBN", "CCM", "PBM", "UBM", "RCTR", "classes"]


def random_users(name: str) -> Any:
    rng = np.random.default_rng(1)
    if name != "classes":
        return random_model(name, rng)
    return Classes.of(np.array([0.3, 0.7]), [random_model("DCM", rng), random_model("DCM", rng)])


@pytest.mark.parametrize("name", NAMES)
def test_moments_are_sums_over_all_click_patterns(name: str) -> None:
    model, rng = random_users(name), np.random.default_rng(2)
    A, credit = np.array([2, 0, 5, 1]), rng.normal(size=4)
    patterns = all_patterns(4)
    p = np.exp(model.log_likelihood(np.repeat(A[None], len(patterns), axis=0), patterns))
    for s in (credit, np.ones(4)):
        x = patterns @ s
        first, second = credit_moments(model.users, A[None], s[None])
        assert (first[0], second[0]) == pytest.approx((p @ x, p @ x**2))


def test_team_draft_has_the_lists_of_the_papers_example() -> None:
    # Radlinski, Kurup and Joachims (2008): rankings a b c d g h and b e a f g h; coins AAA give
    # a b c e d f with teams A B A B A B, coins BAA give b a c e d f, coins ABA a b e c d f
    a, b, c, d, e, f, g, h = range(8)
    A, credit, p = team_draft(np.array([a, b, c, d, g, h]), np.array([b, e, a, f, g, h]))
    lists = {tuple(x): tuple(s) for x, s in zip(A.tolist(), credit.tolist(), strict=True)}
    assert lists[a, b, c, e, d, f] == (-1, 1, -1, 1, -1, 1)
    assert lists[b, a, c, e, d, f] == (1, -1, -1, 1, -1, 1)
    assert lists[a, b, e, c, d, f] == (-1, 1, 1, -1, -1, 1)
    assert np.allclose(p, 1 / 8)


def draft(a: Any, b: Any, tosses: Any) -> Any:
    """The rule as the paper has it, one coin for each time that the teams are of equal size."""
    shown: list[int] = []
    team_a: list[int] = []
    team_b: list[int] = []
    coins = iter(tosses)
    while len(shown) < len(a):
        a_first = len(team_a) < len(team_b) or (len(team_a) == len(team_b) and next(coins))
        team, ranking = (team_a, a) if a_first else (team_b, b)
        item = next(i for i in ranking if i not in shown)
        shown.append(item)
        team.append(item)
    return tuple(shown), tuple(1 if i in team_b else -1 for i in shown)


@pytest.mark.parametrize("K", [1, 2, 3, 5])
def test_team_draft_is_the_rule_over_all_coins(K: int) -> None:
    rng = np.random.default_rng(K)
    a, b = rng.permutation(7)[:K], rng.permutation(7)[:K]
    n = (K + 1) // 2
    wanted: dict[Any, float] = {}
    for coins in itertools.product([True, False], repeat=n):
        key = draft(a.tolist(), b.tolist(), coins)
        wanted[key] = wanted.get(key, 0.0) + 0.5**n
    A, credit, p = team_draft(a, b)
    rows = zip(A.tolist(), credit.astype(int).tolist(), p, strict=True)
    assert {(tuple(x), tuple(s)): q for x, s, q in rows} == pytest.approx(wanted)


def test_searches_are_those_of_the_text_books_formula() -> None:
    def needs(effects: list[float]) -> float | None:
        return searches_needed(lambda _: np.array(effects), 0.8)

    n = needs([0.05])
    assert n == pytest.approx(((1.959964 + 0.841621) * 0.8 / 0.05) ** 2, rel=2e-3)
    assert (
        power(np.array([0.05]), 0.8, float(n or 0))
        >= 0.8
        > power(np.array([0.05]), 0.8, 0.99 * (n or 0))
    )
    assert needs([0.0]) is None
    assert needs([0.05, -0.05]) is None  # half of the draws lose


def test_an_ab_test_of_a_policy_has_it_in_half_of_its_searches() -> None:
    searches, variance = 10_000.0, 1.5
    ahead = np.linspace(0.1, 1.0, 10)[None] * 0.2 * searches  # .2 per search from the first on
    found = ab_test(ahead, searches, variance, 10.0)
    wanted = ((1.959964 + 0.841621) / 0.2) ** 2 * 4 * variance
    assert found.searches == pytest.approx(wanted, rel=3e-3)
    assert found.days == pytest.approx((found.searches or 0) / 1_000)
    late = np.maximum(ahead - 1_000, 0.0)  # it pays for its looks in the first half
    assert (ab_test(late, searches, variance, None).searches or 0) > 5_000


ONE = np.ones(1)


def test_the_power_of_an_interleaving_is_that_of_simulated_tests() -> None:
    rng = np.random.default_rng(3)
    model = random_model("PBM", rng, L=8, K=4)
    a, b = np.array([[0, 1, 2, 3]]), np.argsort(-model.w)[:4][None]  # type: ignore[attr-defined]
    at, n = np.array([1e4]), np.array([1e4])
    found = interleaving([[model.users]], [(a, np.ones(1))], [b[None]], at, n, None, ONE)
    n, R = int(found.searches or 0), 2_000
    A, credit, p = team_draft(a[0], b[0])
    which = rng.choice(len(p), size=R * n, p=p)
    clicks = model.sample(A[which], rng.random((R * n, 4)))
    x = (clicks * credit[which]).sum(axis=1).reshape(R, n)
    half = interleaving([[model.users]], [(a, ONE)], [b[None]], at, at, None, 0.5 * ONE)
    assert half.effect == pytest.approx(0.5 * found.effect)
    assert (half.searches or 0) / n == pytest.approx(4.0, rel=0.05)
    z = x.mean(axis=1) / (x.std(axis=1, ddof=1) / math.sqrt(n))
    assert (z > 1.96).mean() == pytest.approx(0.8, abs=0.03)


def test_an_interleaving_of_a_ranker_with_itself_finds_nothing() -> None:
    model = random_model("UBM", np.random.default_rng(0))
    same = np.array([[3, 1, 2, 0]])
    n = np.array([100.0])
    found = interleaving([[model.users]], [(same, np.ones(1))], [same[None]], n, n, 5.0, ONE)
    assert found.effect == pytest.approx(0.0)
    assert found.searches is None
