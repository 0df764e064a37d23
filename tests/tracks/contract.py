"""What every track's environment promises; the tests of a track inherit it."""

import itertools

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.policies.registry import parse_policies
from logeval.policies.setting import CAPABILITIES, Setting
from logeval.tracks.meters import Meters

REPLICAS = [(0, 0), (1, 0), (1, 1), (2, 0)]


class EnvironmentContract:
    """A subclass names its ``TRACK``, is parametrized by ``name``, and has ``problems(name)``."""

    def environment(self, name, replicas=REPLICAS, seed=3):
        return self.TRACK.environment(self.problems(name), replicas, seed)

    def setting(self, environment, horizon=100):
        generators = [np.random.default_rng(r) for r in range(len(environment.limits))]
        return Setting.of(environment, horizon, generators)

    def random(self, environment):
        return parse_policies(["Random"])[0].make(self.setting(environment))

    def test_the_problem_says_where_it_belongs(self, name):
        for problem in self.problems(name):
            assert problem.track == self.TRACK.name
            assert problem.simulator
            assert problem.query
            assert problem.reward
            assert problem.positions > 0
        assert len({problem.checksum() for problem in self.problems(name)}) == 3

    def test_no_action_has_more_reward_than_the_best(self, name):
        """All actions of a small problem, one by one."""
        environment = self.environment(name, [(0, 0)])
        choices = [range(limit) for limit in environment.limits[0]]
        actions = [A for A in itertools.product(*choices)
                   if not environment.distinct or len(set(A)) == len(A)]  # fmt: skip
        regret = [environment.best_reward[0] - environment.reward(np.array([A]))[0]
                  for A in actions]  # fmt: skip
        assert min(regret) == pytest.approx(0.0, abs=1e-12)
        assert min(regret) >= -1e-12

    def test_the_best_action_has_regret_exactly_0(self, name):
        environment = self.environment(name)
        oracle = parse_policies(["Oracle"])[0].make(self.setting(environment))
        assert (environment.best_reward == environment.reward(oracle.recommend(1))).all()

    def test_clicks_are_0_or_1_and_as_many_as_the_reward_says(self, name):
        """Where the reward is the number of clicks; its standard error is at most sqrt(W / n)."""
        environment = self.environment(name)
        A = self.random(environment).recommend(1).copy()
        n = 4000
        clicks = np.array([environment.step(A).copy() for _ in range(n)])
        assert set(np.unique(clicks)) <= {0, 1}
        if environment.problems[0].reward == "clicks":
            W = clicks.shape[2]
            error = clicks.sum(axis=2).mean(axis=0) - environment.reward(A)
            assert np.abs(error).max() < 4.5 * W * np.sqrt(0.25 / n)

    def test_a_replica_does_not_depend_on_the_others(self, name):
        together, alone = self.environment(name), self.environment(name, [(1, 1)])
        A = self.random(together).recommend(1).copy()
        for _ in range(300):  # more than a block of uniforms
            assert together.step(A)[2].tolist() == alone.step(A[2:3])[0].tolist()
        free = [e.offers["free_samples"] for e in (together, alone)]
        assert (free[0](2, 5) == free[1](0, 5)).all()

    def test_labels_differ_between_runs_and_not_between_policies(self, name):
        """All actions of label 0, 1, ...: the runs of one query show different items."""
        replicas = [(1, run) for run in range(30)]
        environment, again = self.environment(name, replicas), self.environment(name, replicas)
        A = np.arange(environment.limits.shape[1]) % environment.limits
        items = environment.items(A)
        assert (again.items(A) == items).all()
        assert len(np.unique(items, axis=0)) > 1
        assert (items[2] == self.environment(name, [(0, 0), (1, 2)]).items(A[:2])[1]).all()

    def test_users_depend_on_the_run_and_the_seed(self, name):
        first, other = self.environment(name), self.environment(name, seed=4)
        A = self.random(first).recommend(1).copy()
        A[2] = A[1]
        clicks, others = (np.array([e.step(A).copy() for _ in range(300)]) for e in (first, other))
        assert (clicks[:, 1] != clicks[:, 2]).any()
        assert (clicks[:, 1] != others[:, 1]).any()

    def test_capabilities_are_known_and_refused_clearly(self, name):
        environment = self.environment(name)
        assert set(environment.offers) <= set(CAPABILITIES)
        oracle = parse_policies(["Oracle"])[0]
        environment.offers = {}
        with pytest.raises(LogevalError, match=r"policy Oracle: needs best.*leave this policy out"):
            oracle.make(self.setting(environment))

    def test_meters_have_a_column_each_for_the_rewards_of_the_track(self, name):
        environment = self.environment(name)
        policy = self.random(environment)
        meters = Meters(self.TRACK.meters, environment, policy)
        for t in range(1, 4):
            A = policy.recommend(t)
            meters.add(t, A, environment.step(A))
            if t > 1:
                meters.record(t)
        columns = meters.columns()
        assert {x.shape for x in columns.values()} == {(len(REPLICAS), 2)}
        assert {self.TRACK.rewards[0].regret, self.TRACK.rewards[0].optimal} <= set(columns)
        assert (np.diff(columns["regret"]) >= 0).all()
        assert columns["regret"] == pytest.approx(columns["optimal_reward"] - columns["reward"])
