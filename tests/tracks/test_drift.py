"""Users that change: periods of equal length, and regret against the best list of each moment."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.evaluation.loop import run
from logeval.policies.registry import parse_policies
from logeval.policies.setting import Setting
from logeval.running import seeds
from logeval.tracks.lists import b_lb_lower_slope
from logeval.tracks.meters import Meters, Regret
from logeval.tracks.ranking import RankingEnvironment
from logeval.tracks.registry import synthetic_problem

CHANGING = "B_LB(L=6,K=2,p=0.5,gap=0.4,gamma=0.5,changes=2)"


def measured(policy, horizon, problem=CHANGING):
    """All lists shown, as items, and the totals of two runs."""
    problem = synthetic_problem(problem) if isinstance(problem, str) else problem
    users = RankingEnvironment([problem], [(0, 0), (0, 1)], seed=3)
    users.until(horizon)
    spec, shown = parse_policies([policy])[0], []
    generators = [seeds.generator(1, "test", r) for r in users.rows]
    made = spec.make(Setting.of(users, horizon, generators))
    meters = Meters((Regret,), users, made)

    class Watched:
        def recommend(self, t):
            A = made.recommend(t)
            shown.append(users.items(A).copy())
            return A

        def update(self, t, A, clicks):
            made.update(t, A, clicks)

    run(users, Watched(), meters, range(1, horizon + 1))
    return users, np.array(shown), meters.columns()


def test_regret_is_that_against_the_best_list_of_the_moment():
    users, shown, columns = measured("SW-dcmKL-UCB(tau=20)", 100)
    assert users.change_points == {35: 1, 68: 2}  # 34, 33 and 33 steps
    problem, regret = synthetic_problem(CHANGING), np.zeros(2)
    for t in range(1, 101):
        period = problem.periods[(t > 34) + (t > 67)]
        lists = np.concatenate([period.best[None], shown[t - 1]])
        best, *own = period.users.expected_reward(lists, "satisfaction")
        regret += best - np.array(own)
        assert columns["regret"][:, t - 1] == pytest.approx(regret)
    assert columns["optimal_reward"][:, -1] == pytest.approx(
        (columns["regret"] + columns["reward"])[:, -1]
    )


@pytest.mark.parametrize("policy", ["Random", "Oracle"])
def test_regret_where_the_best_lists_are_worth_more_or_less(policy):
    """By brute force: all lists of each period, whose best ones earn 0.65, 0.92 and 0.19."""
    first, *later = (
        synthetic_problem(f"CM(w={w},K=2)") for w in ("0.5/0.3/0.1", "0.1/0.2/0.9", "0.1/0.1/0.1")
    )
    problem = replace(first, later=tuple(later))
    _, shown, columns = measured(policy, 30, problem)
    lists, best, regret = np.array(list(permutations(range(3), 2))), 0.0, np.zeros(2)
    for t in range(1, 31):
        period = problem.periods[(t - 1) // 10]
        most = period.users.expected_reward(lists, "satisfaction").max()
        best += most
        regret += most - period.users.expected_reward(shown[t - 1], "satisfaction")
        assert columns["optimal_reward"][:, t - 1] == pytest.approx(best)
        assert columns["regret"][:, t - 1] == pytest.approx(regret)
    assert (regret.max() == pytest.approx(0.0)) == (policy == "Oracle")
    assert problem.changes
    assert not replace(first, later=(first, first)).changes


def test_the_oracle_changes_with_the_users():
    _, shown, columns = measured("Oracle", 90)
    assert columns["regret"].max() == 0.0
    assert [set(shown[t - 1, 0].tolist()) for t in (30, 31, 60, 61, 90)] == [
        {0, 1}, {2, 3}, {2, 3}, {4, 5}, {4, 5},
    ]  # fmt: skip


def test_more_changes_than_steps():
    _, _, columns = measured("Oracle", 3, "B_LB(L=6,K=2,p=0.5,gap=0.4,changes=50)")
    assert columns["regret"].max() == 0.0


def test_without_changes_nothing_is_different():
    rows = [
        evaluate(problem=[f"B_LB(L=6,K=2,p=0.5,gap=0.4{more})"], policies="dcmKL-UCB", horizon=200,
                 runs=2, quiet=True).to_pandas()
        for more in ("", ",changes=0")
    ]  # fmt: skip
    assert rows[0].equals(rows[1])


def test_who_starts_again_after_a_change_loses_less():
    name = "B_LB(L=16,K=4,p=0.2,gap=0.15,gamma=1,changes=3)"
    policies = ["CascadeKL-UCB(init=sample)", "GLRT-CascadeKL-UCB"]
    rows = evaluate(
        problem=[name], policies=policies, horizon=12_000, runs=6, quiet=True
    ).to_pandas()
    last = rows[rows.t == 12_000].groupby("policy").regret
    mean, error = last.mean(), last.sem()
    assert mean[policies[1]] + 4 * error.max() < mean[policies[0]]


def test_what_is_not_known_where_users_change():
    with pytest.raises(LogevalError, match="position_order"):
        evaluate(problem=[CHANGING], policies="dcmKL-UCB(order=known)", horizon=10, quiet=True)
    assert b_lb_lower_slope(CHANGING) is None


@pytest.mark.parametrize("wrong", ["changes=-1", "changes=20000", "changes=2,gap=0", "changes=x"])
def test_changes_that_cannot_be(wrong):
    with pytest.raises(LogevalError, match="changes"):
        synthetic_problem(f"B_LB(L=6,K=2,p=0.5,{'' if 'gap' in wrong else 'gap=0.4,'}{wrong})")
