"""Synthetic problems with every parameter given."""

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.tracks.ranking import RankingEnvironment
from logeval.tracks.registry import synthetic_problem


def test_rewards_worked_out_by_hand():
    pbm = synthetic_problem("PBM(w=0.5/0.4/0.3,e=0.5/1)")
    assert pbm.best.tolist() == [1, 0]  # the best item at the most examined position
    assert pbm.users.expected_reward(pbm.best[None], "clicks")[0] == pytest.approx(0.5 + 0.2)
    cm = synthetic_problem("CM(w=0.5/0.4/0.3,K=2)")
    assert cm.users.expected_reward(cm.best[None], "satisfaction")[0] == pytest.approx(0.7)
    dcm = synthetic_problem("DCM(w=0.5/0.4/0.3,v=0.5/1)")
    assert dcm.best.tolist() == [1, 0]
    assert dcm.users.expected_reward(dcm.best[None], "satisfaction")[0] == pytest.approx(
        1 - (1 - 0.2) * (1 - 0.5)
    )


@pytest.mark.parametrize(
    "text",
    ["PBM(w=0.5/0.4/0.3,e=1/0.6,base=3>1)", "CM(w=0.5/0.4/0.3,K=2)", "DCM(w=0.5/0.25,v=0.8)"],
)
def test_names_print_as_they_parse(text):
    problem = synthetic_problem(text)
    assert problem.simulator == text
    assert synthetic_problem(problem.simulator).checksum() == problem.checksum()


@pytest.mark.parametrize(
    "text", ["PBM(w=0.9/0.5/0.4/0.1,e=0.3/1/0.6)", "DCM(w=0.9/0.5/0.1,v=0.2/0.7)"]
)
@pytest.mark.parametrize("reward", [None, "any-click"])
def test_no_list_is_better_than_the_best(text, reward):
    if reward is not None and text.startswith("DCM"):
        with pytest.raises(LogevalError, match="satisfaction"):
            synthetic_problem(text, reward)
        return
    problem = synthetic_problem(text, reward)
    rng = np.random.default_rng(0)
    lists = np.array([rng.permutation(problem.size)[: problem.positions] for _ in range(300)])
    rewards = problem.users.expected_reward(lists, problem.reward)
    best = problem.users.expected_reward(problem.best[None], problem.reward)[0]
    assert rewards.max() == pytest.approx(best)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("PBM(w=0.5/1.4,e=1)", "w must be probabilities"),
        ("PBM(w=0.5,e=1/0.5)", "1 items for 2 positions"),
        ("PBM(w=0.5/0.4,e=1,base=3)", "base must hold 1 different items from 1 to 2"),
        ("PBM(w=0.5/0.4)", "e is missing"),
        ("CM(w=0.5/0.4,K=0)", "K must be at least 1"),
        ("DCM(w=0.5/x,v=1)", "not a number"),
    ],
)
def test_wrong_parameters_are_refused(text, said):
    with pytest.raises(LogevalError, match=said):
        synthetic_problem(text)


def test_an_environment_offers_what_all_its_queries_have():
    with_base = synthetic_problem("PBM(w=0.5/0.4/0.3,e=0.5/1,base=2>3)")
    without = synthetic_problem("PBM(w=0.5/0.4/0.3,e=0.2/1)")
    both = RankingEnvironment([with_base, without], [(1, 0), (0, 0)], seed=1)
    assert both.offers["examination"].tolist() == [[0.2, 1.0], [0.5, 1.0]]
    assert "base_list" not in both.offers
    one = RankingEnvironment([with_base], [(0, 0)], seed=1)
    assert one.labels.items(one.offers["base_list"]).tolist() == [[1, 2]]
    dcm = RankingEnvironment([synthetic_problem("DCM(w=0.5/0.4,v=0.5)")], [(0, 0)], seed=1)
    assert "examination" not in dcm.offers


def test_dbn_has_the_reward_of_cascading_bandits_section_5_3():
    problem = synthetic_problem("DBN(w=0.2/0.5/0.3,s=0.7,gamma=0.9,K=2)")
    assert problem.best.tolist() == [1, 2]
    reward = problem.users.expected_reward(problem.best[None], "satisfaction")[0]
    assert reward == pytest.approx(0.35 + 0.9 * 0.21 * (1 - 0.35))
    with pytest.raises(LogevalError, match="gamma must be probabilities"):
        synthetic_problem("DBN(w=0.2/0.5,s=0.7,gamma=1.9,K=2)")
