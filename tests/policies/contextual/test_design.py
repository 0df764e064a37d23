"""Gram form and Woodbury against the direct inverse, over a whole run."""

import numpy as np
import pytest

from logeval.policies.contextual import Gram, Inverse, design
from tests.policies.contextual.worlds import environment, moments, policy_in

LAM = 2.0


def run(name, kinds, n=90, check=lambda *args: None):
    env = environment(name)
    made = [kind(env, 2, LAM) for kind in kinds]
    policy = policy_in(env, "CascadeLinUCB", n)
    V = np.tile(LAM * np.eye(env.d), (2, 1, 1))
    b = np.zeros((2, env.d))
    for t in range(1, n + 1):
        A = policy.recommend(t)
        now, clicks = env.at(t), env.step(A)
        check(env, now, made, V, b)
        C = np.array([2, 3]) - (t % 3 == 0)
        for one in made:
            one.add(now, A, clicks, C)
        for r in range(2):
            x = now.X[now.table[r], now.row[r, A[r, : C[r]]]]
            V[r] += x.T @ x
            b[r] += clicks[r, : C[r]] @ x
        policy.update(t, A, clicks)
    return env, made, V, b


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("fixed", (Gram, Inverse)), ("in-turn", (Gram, Inverse)), ("fresh", (Inverse,)),
     ("user+item", (Inverse,))],
)  # fmt: skip
def test_widths_means_and_log_det_are_those_of_the_direct_inverse(name, kinds):
    def check(env, now, made, V, b):
        for r in range(2):
            x = now.X[now.table[r], now.row[r]]
            V_inv = np.linalg.inv(V[r])
            width = np.sqrt(np.einsum("ai,ij,aj->a", x, V_inv, x))
            for one in made:
                assert one.widths(now)[r] == pytest.approx(width, abs=1e-10)
                assert one.scores(now)[r] == pytest.approx(x @ V_inv @ b[r], abs=1e-10)
                log_det = np.linalg.slogdet(V[r] / LAM)[1]
                assert one.log_det[r] == pytest.approx(log_det, abs=1e-9)

    run(name, kinds, check=check)


@pytest.mark.parametrize("kind", [Gram, Inverse])
def test_a_sample_has_mean_and_covariance_of_theta(kind):
    env, (made,), V, b = run("in-turn", (kind,))
    now = env.at(91)
    mean, covariance = moments(lambda rng: made.sample(now, 0.5, [rng, rng])[0], env.d + env.M)
    x, V_inv = now.X[now.table[0], now.row[0]], np.linalg.inv(V[0])
    assert mean == pytest.approx(x @ V_inv @ b[0], abs=1e-10)
    assert covariance == pytest.approx(0.25 * x @ V_inv @ x.T, abs=1e-10)


def test_the_cheaper_form_is_chosen():
    many, few = environment("many-rows"), environment("few-rows")
    assert isinstance(design(many, 2, 1.0), Inverse)
    assert isinstance(design(few, 2, 1.0), Gram)
    assert isinstance(design(environment("fresh"), 2, 1.0), Inverse)
