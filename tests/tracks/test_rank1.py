import math

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.tracks.fitted import fitted_queries
from logeval.tracks.rank1 import RANK1, needle, rank1_hardness, rank1_problems, rank1_upper
from tests.stand_in import models
from tests.tracks.contract import EnvironmentContract


@pytest.mark.parametrize("name", ["fitted", "synthetic"])
class TestContract(EnvironmentContract):
    TRACK = RANK1

    def problems(self, name):
        if name == "fitted":
            return rank1_problems(fitted_queries(models("PBM", (3, 5, 6), K=3)))
        return [needle(rows, 4, 0.25, 0.5) for rows in (6, 2, 1)]


def test_the_reward_of_a_pair_is_its_product():
    problem = needle(3, 2, 0.25, 0.5)
    environment = RANK1.environment([problem], [(0, 0)], 0)
    for i, j in np.ndindex(3, 2):
        A = np.array([[i, j]])
        row, column = environment.items(A)[0]
        expected = problem.u_bar[row] * problem.v_bar[column]
        assert environment.reward(A)[0] == pytest.approx(expected)


def test_only_a_pbm_has_pairs():
    mixed = fitted_queries([*models("PBM", (5,), K=3), *models("UBM", (5,), K=3)])
    assert [problem.simulator for problem in rank1_problems(mixed)] == ["PBM"]
    with pytest.raises(LogevalError, match="UBM: the rank-1 track needs a PBM"):
        rank1_problems(mixed[1:])


@pytest.mark.parametrize("policy", ["UCB1", "Rank1ElimKL", "Random", "Oracle"])
def test_queries_may_have_fewer_items_than_positions(policy):
    """A pair needs one item and one position; a list needs as many items as positions."""
    few = models("PBM", (1, 2, 5), K=3)
    done = evaluate(few, policies=[policy], track="rank1", horizon=30, runs=2, quiet=True)
    assert done.to_pandas()["query"].nunique() == 3
    with pytest.raises(LogevalError, match="fewer than 3 items"):
        evaluate(few, policies=["dcmKL-UCB"], horizon=30, runs=2, quiet=True)


def test_hardness_and_theorem_1_of_rank1elimkl_by_hand():
    u, v = np.array([0.75, 0.25, 0.25]), np.array([0.75, 0.25])
    hard = rank1_hardness(u, v)
    assert hard == pytest.approx((1.25 / 3, 0.75, 1.25 / 3))
    expected = 160 / hard.mu**2 * (5 / 0.5) * math.log(1000) + (6 * math.e + 82) * 5
    assert rank1_upper(u, v, 1000) == pytest.approx(expected)
    assert rank1_upper(np.full(2, 0.5), v, 1000) == math.inf
