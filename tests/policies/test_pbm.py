"""Bandits of the position-based model: what they must know, where they explore, what they draw."""

import numpy as np
import pytest
from scipy import special, stats

from logeval.errors import LogevalError
from logeval.policies import pbm
from logeval.tracks.registry import synthetic_problem
from tests.policies.running import SETTING_A, W, make, steps, users_of


@pytest.mark.parametrize("name", ["PBM-UCB", "PBM-PIE", "PBM-TS", "BC-MPTS"])
def test_examination_is_refused_where_there_is_none(name):
    users = users_of(synthetic_problem(f"CM(w={W},K=5)"))
    with pytest.raises(LogevalError, match=r"examination.*kappa=estimated"):
        make(name, users, 10)
    make(f"{name}(kappa=estimated)", users, 10).recommend(1)


def test_pie_explores_at_the_last_place_only_and_among_all_items():
    users = users_of(SETTING_A, runs=20)
    policy = make("PBM-PIE", users, 10**5)
    explored = set()
    for t, lists, _ in steps(policy, users, 600):
        for r in range(20):
            if t > 10:
                theta = policy.memory.theta[r]
                greedy = np.argsort(-theta, kind="stable")[:5]
                labels = lists[r]
                assert labels[:4].tolist() == greedy[:4].tolist()
                if labels[4] != greedy[4]:
                    explored.add(int(labels[4]))
    assert explored == set(range(10))


def test_estimated_examination_finds_the_true_one():
    users = users_of(synthetic_problem("PBM(w=0.9/0.8/0.7/0.6/0.5,e=0.3/1/0.6)"), runs=4)
    policy = make("PBM-UCB(kappa=estimated,lag=10)", users, 20_000)
    for _ in steps(policy, users, 20_000):
        pass
    assert policy.memory.views.best.tolist() == [[1, 2, 0]] * 4


def test_pbm_ts_draws_from_the_posterior():
    """With kappa = 1 it is a Beta distribution; otherwise compared with an integral."""
    rng = np.random.default_rng(2)
    for e, shown in [((1.0,), 7), ((1.0, 0.5), 40), ((1.0, 0.5), 3000)]:
        K = len(e)
        text = f"PBM(w={'/'.join(['0.3'] * K)},e={'/'.join(map(str, e))})"
        users = users_of(synthetic_problem(text))
        policy = make("PBM-TS", users, shown)
        for _ in steps(policy, users, shown):
            pass
        p = policy.memory
        S, N = p.views.S[0, 0], p.views.N[0, 0]
        u = rng.random(4000)
        draws = [pbm.draw(x, p.low[0, 0], p.high[0, 0], p.mass[0, 0]) for x in u]
        x = np.linspace(0, 1, 200_001)[1:-1]
        log = S.sum() * np.log(x) + sum((N - S)[k] * np.log1p(-e[k] * x) for k in range(K))
        mass = np.cumsum(np.exp(log - log.max()))
        exact = np.interp(draws, x, mass / mass[-1])
        assert stats.kstest(exact, "uniform").pvalue > 1e-3
        assert np.abs(exact - u).max() < 2e-3
        if K == 1:
            beta = special.betainc(1 + S[0], 1 + N[0] - S[0], draws)
            assert np.abs(beta - u).max() < 2e-3
