"""Logistic regression that follows the clicks, against scipy and plain loops."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from logeval.policies import logistic_fits
from logeval.policies.contextual import observed_one
from logeval.policies.logistic_fits import Folded, FoldedGram, Gradient, GradientGram, Unfolded
from tests.policies.contextual_worlds import environment, policy_in


def scipys_theta(X, y, ridge):
    """The same objective, by a quasi-Newton method of scipy."""

    def loss(theta):
        z = X @ theta
        value = np.logaddexp(0.0, z).sum() - y @ z + ridge / 2 * theta @ theta
        return value, X.T @ (expit(z) - y) + ridge * theta

    return minimize(loss, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", tol=1e-12).x


def history(name, estimates, n=120):
    """Run a policy; all estimates learn from the same lists. Returns rows and clicks."""
    env = environment(name)
    policy = policy_in(env, "UCB-GLM(m=1)", n)
    rows = [[] for _ in env.limits]
    ys = [[] for _ in env.limits]
    made = [make(env) for make in estimates]
    for t in range(1, n + 1):
        A = policy.recommend(t)
        now, clicks = env.at(t), env.step(A)
        C = np.array([observed_one(0, c) for c in clicks])
        for one in made:
            one.learn(t, now, A, clicks, C)
        for r in range(len(rows)):
            rows[r] += list(now.X[now.table[r], now.row[r, A[r, : C[r]]]].copy())
            ys[r] += clicks[r, : C[r]].tolist()
        policy.update(t, A, clicks)
    return env, made, [np.array(x) for x in rows], [np.array(y, dtype=float) for y in ys]


@pytest.mark.parametrize("ridge", [1.0, 0.01])
@pytest.mark.parametrize("name", ["fixed", "in-turn"])
def test_folded_newton_finds_what_scipy_finds(name, ridge):
    ways = [lambda e: Folded(e, 2, ridge), lambda e: FoldedGram(e, 2, ridge)]
    _, made, rows, ys = history(name, ways)
    for r in range(2):
        expected = rows[r] @ scipys_theta(rows[r], ys[r], ridge)
        for folded in made:
            assert np.abs(rows[r] @ folded.theta[r] - expected).max() < 2e-3


def test_predictions_in_the_space_of_the_rows_are_those_of_theta():
    """After 400 rounds of rank-one corrections that were never renewed."""
    env, (folded,), _, _ = history("in-turn", [lambda e: FoldedGram(e, 2, 0.001)], n=400)
    now = env.at(401)
    for r in range(2):
        expected = now.X[0, now.row[r]] @ folded.theta[r]
        assert folded.scores(now)[r] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", [Folded, FoldedGram])
def test_a_fresh_inverse_changes_nothing(kind, monkeypatch):
    """Rank-one corrections over the whole run against an inversion in every round."""
    ways = [lambda e: kind(e, 2, 0.1)]
    _, (corrected,), _, _ = history("in-turn", ways)
    monkeypatch.setattr(logistic_fits, "FRESH", 1)
    _, (inverted,), _, _ = history("in-turn", ways)
    assert np.abs(corrected.theta - inverted.theta).max() < 2e-3


def test_folded_and_unfolded_agree():
    ways = [lambda e: Folded(e, 2, 0.1), lambda e: Unfolded(e, 2, 0.1)]
    _, (folded, unfolded), rows, ys = history("in-turn", ways)
    for r in range(2):
        exact = rows[r] @ scipys_theta(rows[r], ys[r], 0.1)
        assert np.abs(rows[r] @ folded.theta[r] - exact).max() < 2e-3
        # fitted again at every 5% more rows, in between steps on the rows of the round
        assert np.abs(rows[r] @ unfolded.theta[r] - exact).max() < 0.05


@pytest.mark.parametrize("name", ["fresh", "user*item"])
def test_unfolded_is_near_scipys(name):
    _, (unfolded,), rows, ys = history(name, [lambda e: Unfolded(e, 2, 0.1)])
    for r in range(2):
        exact = rows[r] @ scipys_theta(rows[r], ys[r], 0.1)
        assert np.abs(rows[r] @ unfolded.theta[r] - exact).max() < 0.05


@pytest.mark.parametrize("kind", [Folded, FoldedGram])
def test_separable_clicks_stay_finite(kind):
    """Every item is clicked or never clicked: without the ridge theta would run away."""
    env = environment("fixed")
    folded = kind(env, 2, 1e-3)
    now = env.at(1)
    A, clicks = np.array([[0, 1, 2]] * 2), np.array([[1, 0, 1]] * 2, dtype=np.int8)
    for t in range(1, 400):
        folded.learn(t, now, A, clicks, np.array([3, 3]))
    X, y = now.X[0, [0, 1, 2]], np.array([1.0, 0.0, 1.0])
    expected = scipys_theta(np.repeat(X, 399, axis=0), np.repeat(y, 399), 1e-3)
    assert folded.scores(now)[0, :3] == pytest.approx(X @ expected, abs=0.02)


@pytest.mark.parametrize(
    ("name", "kinds"), [("fixed", (Gradient, GradientGram)), ("fresh", (Gradient,))]
)
def test_sgd_is_the_plain_loop(name, kinds):
    _, made, _, _ = history(name, [lambda e, kind=kind: kind(e, 2, 0.3) for kind in kinds])
    env = environment(name)
    policy = policy_in(env, "UCB-GLM(m=1)", 120)
    theta = np.zeros(env.d)
    for t in range(1, 121):
        A = policy.recommend(t)
        now, clicks = env.at(t), env.step(A)
        last = np.flatnonzero(clicks[0])
        C = last[-1] + 1 if len(last) else 3
        g = np.zeros(env.d)
        for k in range(C):
            x = now.X[now.table[0], now.row[0, A[0, k]]]
            g += (expit(theta @ x) - clicks[0, k]) * x
        theta = theta - 0.3 * g
        policy.update(t, A, clicks)
    now = env.at(121)
    for sgd in made:
        assert sgd.theta[0] == pytest.approx(theta, abs=1e-12)
        assert sgd.scores(now)[0] == pytest.approx(now.X[0, now.row[0]] @ theta, abs=1e-12)


@pytest.mark.parametrize(
    ("clicks", "dcm", "literal", "first"),
    [([0, 0, 0], 3, 0, 3), ([0, 1, 0], 2, 2, 2), ([1, 0, 1], 3, 3, 1), ([1, 1, 0], 2, 2, 1)],
)
def test_what_was_observed(clicks, dcm, literal, first):
    assert [observed_one(f, np.array(clicks)) for f in range(3)] == [dcm, literal, first]


def test_draws_in_the_space_of_the_rows_have_the_mean_and_covariance_of_laplace():
    """theta ~ N(theta, scale^2 H^-1), H = ridge I + sum of p (1 - p) x x' over the rows seen."""
    ridge, scale, n = 0.5, 0.7, 4000
    env, (folded,), rows, _ = history("in-turn", [lambda e: FoldedGram(e, 2, ridge)])
    now, rngs = env.at(121), [np.random.default_rng(r) for r in range(2)]
    drawn = np.array([folded.sample(now, scale, rngs).copy() for _ in range(n)])
    for r in range(2):
        p = expit(rows[r] @ folded.theta[r])
        H = ridge * np.eye(env.d) + (rows[r].T * (p * (1 - p))) @ rows[r]
        X = now.X[now.table[r], now.row[r]]
        covariance = scale**2 * X @ np.linalg.solve(H, X.T)
        sd = np.sqrt(np.diag(covariance))
        error = np.abs(drawn[:, r].mean(0) - X @ folded.theta[r])
        assert (error < 4 * sd / np.sqrt(n) + 1e-3).all()
        found = np.cov(drawn[:, r].T) / np.outer(sd, sd)
        assert np.abs(found - covariance / np.outer(sd, sd)).max() < 5 * np.sqrt(2 / n)
