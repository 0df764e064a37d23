"""Today's ranker: the lists of the log with the log's frequencies, in every track that has them."""

from dataclasses import replace

import numpy as np
import pytest

from logeval.clicks.lists import Ranker
from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.policies.registry import parse_policies
from logeval.tracks.rank1 import Rank1Environment, Rank1Problem
from logeval.tracks.ranking import RankingEnvironment
from logeval.tracks.registry import synthetic_problem
from tests.policies.running import make, setting_of
from tests.references import as_policy

LISTS = np.array([[2, 0, 1], [0, 3, 2], [2, 1, 0]])
SHARES = np.array([0.5, 0.3, 0.2])
RANKER = Ranker(LISTS, SHARES, 10.0, 1.0, 0.7, 0.1)


def lists():
    problem = replace(synthetic_problem("DCM(w=0.2/0.6/0.4/0.5,v=0.1/0.9/0.5)"), ranker=RANKER)
    return RankingEnvironment([problem], [(0, 0), (0, 1)], seed=3)


def pairs():
    problem = Rank1Problem("PBM", "1", np.array([0.2, 0.6, 0.4, 0.5]), np.array([0.9, 0.5]))
    return Rank1Environment([replace(problem, ranker=RANKER)], [(0, 0), (0, 1)], seed=3)


@pytest.mark.parametrize("users", [lists(), pairs()])
@pytest.mark.parametrize("name", ["Logged", "Logged(top)"])
def test_the_kernel_shows_what_the_reference_shows(users, name):
    policy = make(name, users, 300)
    reference = as_policy(name, setting_of(users, 300))
    for t in range(1, 301):
        assert policy.recommend(t).tolist() == reference.recommend(t).tolist()


def test_lists_are_shown_as_often_as_in_the_log():
    users, n = lists(), 4000
    policy = make("Logged", users, n)
    shown = np.concatenate([users.items(policy.recommend(t)) for t in range(1, n + 1)])
    count = [(shown == one).all(axis=1).mean() for one in LISTS]
    error = np.sqrt(SHARES * (1 - SHARES) / (2 * n))
    assert (np.abs(count - SHARES) < 4 * error).all()
    assert sum(count) == pytest.approx(1.0)


def test_a_pair_is_the_first_item_at_the_first_position():
    users, n = pairs(), 4000
    policy = make("Logged", users, n)
    shown = np.concatenate([users.items(policy.recommend(t)) for t in range(1, n + 1)])
    assert set(shown[:, 1]) == {0}
    assert abs((shown[:, 0] == 2).mean() - 0.7) < 4 * np.sqrt(0.7 * 0.3 / (2 * n))


def test_the_most_frequent_list_alone():
    users = lists()
    policy = make("Logged(top)", users, 10)
    assert users.items(policy.recommend(1)).tolist() == [[2, 0, 1]] * 2
    assert parse_policies(["Logged(top)"])[0].name == "Logged(lists=top)"


def test_a_word_alone_must_be_a_value_of_one_parameter():
    with pytest.raises(LogevalError, match="'bottom' is not parameter=value"):
        parse_policies(["Logged(bottom)"])
    with pytest.raises(LogevalError, match="given twice"):
        parse_policies(["Logged(top,all)"])


def test_where_there_is_no_log_the_error_says_what_to_do():
    with pytest.raises(
        LogevalError, match=r"needs logged, which this .* .* fit-models` fitted to a log"
    ):
        evaluate(problem="B_LB(L=4,K=2,p=0.4,gap=0.3)", policies=["Logged"], horizon=5, runs=1)
