import numpy as np
import pytest

from logeval.tracks.problems import problems_of
from logeval.tracks.ranking import RankingEnvironment
from tests.policies.running import RANKING, make
from tests.stand_in import NAMES, models, stand_in

REPLICAS = [(0, 0), (1, 0), (1, 1), (2, 0)]


def environment_of(name, reward=None, positions=None, seed=3):
    problems = problems_of(models(name, (3, 5, 6), K=3), positions, reward)
    return RankingEnvironment(problems, REPLICAS, seed)


def random_lists(environment, rng):
    return np.array([rng.permutation(L)[: environment.K] for L in environment.L])


@pytest.mark.parametrize("name", NAMES)
def test_rewards_of_a_batch_are_those_of_its_models(name):
    rng = np.random.default_rng(0)
    for reward in stand_in(name, 3, 3, 0).rewards:
        environment = environment_of(name, reward)
        for _ in range(20):
            A = random_lists(environment, rng)
            expected = [
                environment.problems[q].users.expected_reward(A[r : r + 1], reward)[0]
                for r, q in enumerate(environment.query)
            ]
            assert environment.reward(A) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_click_rates_of_a_batch_are_those_of_its_models(name):
    environment = environment_of(name)
    A = random_lists(environment, np.random.default_rng(1))
    n = 20_000
    rates = sum(environment.step(A).astype(float) for _ in range(n)) / n
    for r, q in enumerate(environment.query):
        p = environment.problems[q].users.click_probs(A[r : r + 1])[0]
        assert np.abs(rates[r] - p).max() < 4.5 * np.sqrt(0.25 / n)


@pytest.mark.parametrize("name", NAMES)
def test_fewer_positions_cut_the_model(name):
    environment = environment_of(name, positions=2)
    A = random_lists(environment, np.random.default_rng(2))
    assert A.shape[1] == environment.step(A).shape[1] == 2
    reward = environment.problems[0].reward
    expected = environment.problems[0].users.expected_reward(A[:1], reward)
    assert environment.reward(A)[0] == pytest.approx(expected[0], abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("policy", RANKING)
def test_regret_is_never_negative_and_the_oracles_is_zero(name, policy):
    environment = environment_of(name)
    bandit = make(policy, environment, horizon=60)
    for t in range(1, 61):
        A = bandit.recommend(t)
        regret = environment.regret(A)
        assert regret.min() >= -1e-12
        if policy == "Oracle":
            assert (regret == 0.0).all()
        bandit.update(t, A, environment.step(A))


def test_users_do_not_depend_on_the_other_replicas():
    together = environment_of("DCM")
    alone = RankingEnvironment(together.problems[1:2], [(0, 1)], seed=3)
    A = np.array([[2, 0, 1]])
    for _ in range(600):  # more than a block of uniforms
        clicks = together.step(np.repeat(A, len(REPLICAS), axis=0))[2]
        assert clicks.tolist() == alone.step(A)[0].tolist()
    assert (together.free_samples(2, 2) == alone.free_samples(0, 2)).all()


def test_users_depend_on_the_run_and_the_seed():
    A = np.array([[0, 1, 2]] * 4)
    first, other = environment_of("DCM"), environment_of("DCM", seed=4)
    clicks = np.array([first.step(A).copy() for _ in range(50)])
    others = np.array([other.step(A).copy() for _ in range(50)])
    assert (clicks[:, 1] != clicks[:, 2]).any()
    assert (clicks[:, 1] != others[:, 1]).any()


def test_free_samples_are_clicks_at_the_first_position():
    for name in ("DCM", "UBM"):
        environment = environment_of(name)
        users = environment.problems[1].users
        p = users.click_probs(np.arange(5)[:, None])[:, 0]
        rates = environment.free_samples(1, 20_000).mean(axis=0)
        assert np.abs(rates - p).max() < 4.5 * np.sqrt(0.25 / 20_000)
