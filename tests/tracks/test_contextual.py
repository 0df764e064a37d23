"""The contextual track: rounds, rewards, problems from features, evaluate."""

import itertools

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.running.kernels import best_first_one
from logeval.tracks.contextual import parse_contextual
from logeval.tracks.registry import TRACKS
from tests.policies.contextual_worlds import PROBLEMS, environment, in_turn, policy_in

FIXED = "contextual(L=12,K=3,d=5,norm=2,contexts=fixed)"


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_list_has_more_reward_than_the_best(name):
    env = environment(name, R=1)
    for t in (1, 21, 41):  # in each query of those in turn
        env.at(t)
        L = env.w.shape[1]
        all_lists = itertools.permutations(range(min(L, 9)), 3)
        rewards = [env.reward(np.array([A]))[0] for A in all_lists]
        assert max(rewards) <= env.best_reward[0] + 1e-12
        if L <= 9:
            assert max(rewards) == pytest.approx(env.best_reward[0])
        assert env.reward(env.best)[0] == env.best_reward[0]


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_replica_does_not_depend_on_the_others_nor_on_who_asks(name):
    """Contexts, users and clicks are the same for all policies; only some ask for contexts."""
    together, alone = environment(name, R=3), environment(name, R=1)
    for t in range(1, 300):
        together.at(t)
        A = np.tile([0, 1, 2], (3, 1))
        assert together.step(A)[0].tolist() == alone.step(A[:1])[0].tolist()
        assert together.w[0].tolist() == alone.w[0].tolist()


def test_queries_take_turns_and_the_ground_set_changes():
    env = environment("in-turn")
    sizes = [env.at(t).row.shape[1] for t in range(1, 82)]
    assert sizes == [9] * 20 + [5] * 20 + [7] * 20 + [9] * 20 + [5]
    assert env.limits.tolist() == [[5] * 3] * 2
    assert [env.at(t).block for t in (81, 101, 121)] == [4, 5, 6]


def test_each_replica_sees_the_items_in_its_own_order():
    env = environment("in-turn", R=6)
    arms = env.at(1).arm
    assert len({tuple(row) for row in arms}) > 1
    assert all(sorted(row) == list(range(9)) for row in arms)


def test_fresh_contexts_are_fresh_and_fixed_ones_fixed():
    for name, same in (("fresh", False), ("fixed", True)):
        env = environment(name)
        first = env.at(1).X.copy()
        assert (env.at(2).X == first).all() == same
        assert np.linalg.norm(first, axis=2) == pytest.approx(1.0)
        assert np.linalg.norm(env.world.theta, axis=1) == pytest.approx(2.0)


def test_clicks_are_those_of_a_dcm():
    """P(click) at the first two positions over 20,000 rounds: w_1 and w_2 (1 - w_1 v_1)."""
    env = environment("fixed", R=1)
    A, n = np.array([[3, 4, 5]]), 20_000
    clicks = np.array([env.step(A)[0].copy() for _ in range(n)])
    w, v = env.w[0, [3, 4, 5]], env.v[0]
    expected = np.array([w[0], w[1] * (1 - w[0] * v[0])])
    assert np.abs(clicks[:, :2].mean(axis=0) - expected).max() < 4.5 * np.sqrt(0.25 / n)


def test_tastes_change_the_best_list_and_one_list_for_all_has_regret():
    env = environment("tastes, item")
    oracle, common = (policy_in(env, f"Oracle(users={u})") for u in ("each", "common"))
    best, regret = [], 0.0
    for t in range(1, 21):  # one block
        best.append(oracle.recommend(t)[0].tolist())
        shown = common.recommend(t)
        regret += env.best_reward[0] - env.reward(shown)[0]
        assert env.reward(oracle.recommend(t))[0] == env.best_reward[0]
        env.step(shown)
    assert len({tuple(b) for b in best}) > 1
    assert regret > 0.05


def test_the_order_of_ties_is_random_and_positions_are_told():
    A = np.empty(2, dtype=np.int64)
    top = np.empty(2, dtype=np.int64)
    best_first_one(np.array([1.0, 1.0, 0.5]), np.array([0.1, 0.9, 0.5]), np.array([1, 0]), top, A)
    assert A.tolist() == [0, 1]  # the larger u wins and stands at position 2


def test_evaluate_stores_regret_and_cosine_distance(tmp_path):
    policies = ["GL-CDCM", "LR(update=sgd)", "dcmKL-UCB", "Random", "Oracle"]
    ask = {"problem": FIXED, "policies": policies, "horizon": 300, "quiet": True}
    ask["out"] = tmp_path / "runs"
    evaluate(runs=2, **ask)
    done = evaluate(runs=4, **ask)  # goes on with two more
    rows = done.to_pandas()
    assert set(done.only(["dcmKL-UCB(restart=never)"]).to_pandas()["policy"]) == {"dcmKL-UCB"}
    last = rows[rows["t"] == 300].set_index(["policy", "run"])
    assert len(last) == 20
    assert (last.loc["Oracle", "regret"] == 0).all()
    earned = (last["regret"] + last["reward"]).to_numpy()
    assert last["optimal_reward"].to_numpy() == pytest.approx(earned)
    mean = last["regret"].groupby("policy").mean()
    assert mean["GL-CDCM"] < mean["Random"] / 2
    cosine = rows.pivot_table(index="t", columns="policy", values="cosine_distance")
    assert set(cosine.columns) == {"GL-CDCM", "LR(update=sgd)"}
    assert cosine["GL-CDCM"].iloc[-1] < cosine["GL-CDCM"].iloc[0]
    alone = evaluate(
        problem=FIXED, policies=["Random", "GL-CDCM"], runs=4, horizon=300, quiet=True
    ).to_pandas()
    alone = alone[alone["t"] == 300].set_index(["policy", "run"])["regret"]
    assert alone.to_dict() == last["regret"].loc[["GL-CDCM", "Random"]].to_dict()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("contextual(L=10,K=3)", "d is missing"),
        ("contextual(L=2,K=3,d=4)", "1 <= K <= L"),
        ("contextual(L=10,K=3,d=4,contexts=stale)", "fixed or fresh"),
        ("contextual(L=10,K=3,d=x)", "d=x is not a number"),
        ("contextual(L=10,K=3,d=4,noise=1)", "unknown parameter of contextual"),
    ],
)
def test_wrong_problems_are_named(text, message):
    with pytest.raises(LogevalError, match=message):
        parse_contextual(text)


def test_the_name_of_a_problem_prints_as_it_parses():
    problem = parse_contextual(FIXED)
    assert problem.simulator == FIXED
    assert parse_contextual(problem.simulator).checksum() == problem.checksum()
    assert in_turn().checksum() == in_turn().checksum()


def test_policies_of_other_tracks_are_refused():
    with pytest.raises(LogevalError, match="cannot run on a contextual problem"):
        evaluate(problem=FIXED, policies=["CascadeKL-UCB"], horizon=10, runs=1, quiet=True)
    with pytest.raises(LogevalError, match="apart"):
        evaluate(
            problem=[FIXED, "B_LB(L=8,K=2,p=0.2,gap=0.1)"], policies=["Random"], horizon=10,
            runs=1, quiet=True,
        )  # fmt: skip
    assert TRACKS["contextual"].environment(
        [parse_contextual(FIXED)], [(0, 0)], 0
    ).limits.shape == (1, 3)
