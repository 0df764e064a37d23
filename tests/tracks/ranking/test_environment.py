import numpy as np
import pytest

from logeval.tracks.ranking import RANKING, RankingEnvironment
from tests.stand_in import NAMES, lists, models, stand_in
from tests.tracks.contract import REPLICAS, EnvironmentContract


def environment_of(name, reward=None, positions=None, seed=3):
    problems = lists(models(name, (3, 5, 6), K=3), positions, reward)
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
            items = environment.items(A)
            expected = [
                environment.problems[q].users.expected_reward(items[r : r + 1], reward)[0]
                for r, q in enumerate(environment.query)
            ]
            assert environment.reward(A) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_click_rates_of_a_batch_are_those_of_its_models(name):
    environment = environment_of(name)
    A = random_lists(environment, np.random.default_rng(1))
    n = 20_000
    rates = sum(environment.step(A).astype(float) for _ in range(n)) / n
    items = environment.items(A)
    for r, q in enumerate(environment.query):
        p = environment.problems[q].users.click_probs(items[r : r + 1])[0]
        assert np.abs(rates[r] - p).max() < 4.5 * np.sqrt(0.25 / n)


@pytest.mark.parametrize("name", NAMES)
def test_fewer_positions_cut_the_model(name):
    environment = environment_of(name, positions=2)
    A = random_lists(environment, np.random.default_rng(2))
    assert A.shape[1] == environment.step(A).shape[1] == 2
    reward = environment.problems[0].reward
    items = environment.items(A)
    expected = environment.problems[0].users.expected_reward(items[:1], reward)
    assert environment.reward(A)[0] == pytest.approx(expected[0], abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
class TestContract(EnvironmentContract):
    TRACK = RANKING

    def problems(self, name):
        return lists(models(name, (3, 5, 6), K=3))


def test_free_samples_are_clicks_at_the_first_position():
    for name in ("DCM", "UBM"):
        environment = environment_of(name)
        users = environment.problems[1].users
        p = users.click_probs(environment.labels.items_of(1)[:, None])[:, 0]
        rates = environment.free_samples(1, 20_000).mean(axis=0)
        assert np.abs(rates - p).max() < 4.5 * np.sqrt(0.25 / 20_000)
