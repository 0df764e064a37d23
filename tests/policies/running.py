"""Run a policy outside of the engine and look at every list."""

import numpy as np

from logeval.policies.registry import POLICIES, parse_policies
from logeval.policies.setting import Setting
from logeval.policies.shared.bounds import upper
from logeval.policies.shared.kernel_policy import allocate, plain, view_of
from logeval.running import seeds
from logeval.tracks.ranking import RankingEnvironment
from logeval.tracks.registry import synthetic_problem
from tests.references import as_policy

W = "0.5/0.45/0.4/0.35/0.3/0.25/0.2/0.15/0.1/0.05"
SETTING_A = synthetic_problem(f"PBM(w={W},e=1/0.8/0.6/0.4/0.2)")

RANKING = [name for name in POLICIES if parse_policies([name])[0].track in ("ranking", None)]


def setting_of(environment, horizon, seed=0):
    generators = [seeds.generator(seed, "test", r) for r in environment.rows]
    return Setting.of(environment, horizon, generators)


def make(name, environment, horizon, **options):
    spec = parse_policies([name])[0]
    setting = setting_of(environment, horizon).tell(spec.cls, spec.name)
    return spec.cls(setting, **spec.parameters, **options)


def reference_of(name, environment, horizon):
    """The paper's pseudocode of a policy, for the first replica."""
    return as_policy(name, setting_of(environment, horizon)).replicas[0]


def lists_of(name, problems, replicas, horizon, **options):
    """All lists (horizon, R, K) and clicks of a policy."""
    environment = RankingEnvironment(problems, replicas, seed=5)
    policy = make(name, environment, horizon, **options)
    lists, clicks = [], []
    for t in range(1, horizon + 1):
        A = policy.recommend(t)
        c = environment.step(A)
        policy.update(t, A, c)
        lists.append(A.copy())
        clicks.append(c.copy())
    return np.array(lists), np.array(clicks)


def one_replica(memory, L, K=1):
    """The memory of a single replica, as its kernels see it."""
    arrays = plain(allocate(memory, 1, L=L, K=K))
    return view_of(memory).py_func(0, L, arrays)


def by_bound(kind, S, T, b):
    """The arms from the largest bound down, all of them solved; equal bounds by label."""
    pairs = list(zip(S.tolist(), T.tolist(), strict=True))
    bound = {pair: upper(kind, *pair, b) for pair in set(pairs)}
    return np.argsort([-bound[pair] for pair in pairs], kind="stable")


def users_of(problem, runs=1, seed=5):
    return RankingEnvironment([problem], [(0, run) for run in range(runs)], seed)


def steps(policy, users, horizon):
    """(t, lists, clicks) before the policy learns from them."""
    for t in range(1, horizon + 1):
        A = policy.recommend(t).copy()
        clicks = users.step(A)
        yield t, A, clicks
        policy.update(t, A, clicks)
