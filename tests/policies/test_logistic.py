"""Logistic regression that follows the clicks, against scipy and plain loops."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from logeval.policies import logistic
from logeval.policies.contextual import observed_one
from logeval.policies.logistic import Fit, Gradient
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
def test_newton_finds_what_scipy_finds(name, ridge):
    _, (fit,), rows, ys = history(name, [lambda e: Fit(e, 2, ridge)])
    for r in range(2):
        expected = rows[r] @ scipys_theta(rows[r], ys[r], ridge)
        assert np.abs(rows[r] @ fit.theta[r] - expected).max() < 2e-3


@pytest.mark.parametrize("name", ["fresh", "user*item"])
def test_where_contexts_do_not_repeat_it_is_near(name):
    """All rows are fitted again at every 5% more, in between steps on the rows of the round."""
    _, (fit,), rows, ys = history(name, [lambda e: Fit(e, 2, 0.1)])
    for r in range(2):
        exact = rows[r] @ scipys_theta(rows[r], ys[r], 0.1)
        assert np.abs(rows[r] @ fit.theta[r] - exact).max() < 0.05


@pytest.mark.parametrize(("name", "error"), [("in-turn", 2e-3), ("fresh", 1e-2)])
def test_a_fresh_inverse_changes_nothing(name, error, monkeypatch):
    """Rank-one corrections over the whole run against an inversion in every round."""
    _, (corrected,), _, _ = history(name, [lambda e: Fit(e, 2, 0.1)])
    monkeypatch.setattr(logistic, "FRESH", 1)
    _, (inverted,), rows, _ = history(name, [lambda e: Fit(e, 2, 0.1)])
    for r in range(2):
        assert np.abs(rows[r] @ (corrected.theta - inverted.theta)[r]).max() < error


def test_separable_clicks_stay_finite():
    """Every item is clicked or never clicked: without the ridge theta would run away."""
    env = environment("fixed")
    fit = Fit(env, 2, 1e-3)
    now = env.at(1)
    A, clicks = np.array([[0, 1, 2]] * 2), np.array([[1, 0, 1]] * 2, dtype=np.int8)
    for t in range(1, 400):
        fit.learn(t, now, A, clicks, np.array([3, 3]))
    X, y = now.X[0, [0, 1, 2]], np.array([1.0, 0.0, 1.0])
    expected = scipys_theta(np.repeat(X, 399, axis=0), np.repeat(y, 399), 1e-3)
    assert fit.scores(now)[0, :3] == pytest.approx(X @ expected, abs=0.02)


@pytest.mark.parametrize("name", ["fixed", "fresh"])
def test_sgd_is_the_plain_loop(name):
    _, (sgd,), _, _ = history(name, [lambda e: Gradient(e, 2, 0.3)])
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
    assert sgd.theta[0] == pytest.approx(theta, abs=1e-12)
    assert sgd.scores(now)[0] == pytest.approx(now.X[0, now.row[0]] @ theta, abs=1e-12)


@pytest.mark.parametrize(
    ("clicks", "dcm", "first"),
    [([0, 0, 0], 3, 3), ([0, 1, 0], 2, 2), ([1, 0, 1], 3, 1), ([1, 1, 0], 2, 1)],
)
def test_what_was_observed(clicks, dcm, first):
    assert [observed_one(f, np.array(clicks)) for f in range(2)] == [dcm, first]
