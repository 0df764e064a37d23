"""Run a policy outside of the engine and look at every list."""

import numpy as np

from logeval import seeds
from logeval.policies.registry import POLICIES, parse_policies
from logeval.policies.setting import Setting
from logeval.tracks.ranking import RankingEnvironment

RANKING = [name for name in POLICIES if parse_policies([name])[0].track in ("ranking", None)]


def setting_of(environment, horizon, seed=0):
    generators = [seeds.generator(seed, "test", r) for r in environment.rows]
    return Setting.of(environment, horizon, generators)


def make(name, environment, horizon, **options):
    spec = parse_policies([name])[0]
    setting = setting_of(environment, horizon).tell(spec.cls, spec.name)
    return spec.cls(setting, **spec.parameters, **options)


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
