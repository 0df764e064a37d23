"""Small contextual environments, and a policy running in one."""

from functools import partial

import numpy as np

from logeval.policies.registry import parse_policies
from logeval.policies.setting import Setting
from logeval.running import seeds
from logeval.tracks.contextual import ContextualEnvironment, ContextualProblem, contextual
from logeval.tracks.contextual import in_turn as queries_in_turn
from logeval.tracks.worlds import GroundSet, People


def queries(sizes=(9, 5, 7), K=3, D=6, F=2, seed=0):
    """Queries with fewer and more items, one item of which was never clicked (vector 0)."""
    rng = np.random.default_rng(seed)
    made = []
    for L in sizes:
        vectors = rng.standard_normal((L, D))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[0] = 0.0
        w, v = rng.uniform(0.05, 0.6, L), rng.uniform(0.2, 0.8, K)
        made.append(GroundSet(w, v, vectors, rng.standard_normal((L, F))))
    return tuple(made)


def people(context, D=6, F=2, U=8, r=2, beta=1.0):
    rng = np.random.default_rng(1)
    return People(context, r, rng.standard_normal((U, D)) / 4, rng.standard_normal((U, F)), beta)


def in_turn(context=None, block=20, K=3):
    """Queries in turn: items alone, or with users."""
    who = None if context is None else people(context)
    world = partial(queries_in_turn, queries(K=K), who, block)
    return ContextualProblem("DCM", "0+1+2", K, world)


PROBLEMS = {
    "fixed": lambda: contextual(12, 3, 5, 2.0, "fixed"),
    "many-rows": lambda: contextual(40, 3, 5, 2.0, "fixed"),  # more rows than 2 d
    "few-rows": lambda: contextual(8, 3, 5, 2.0, "fixed"),
    "fresh": lambda: contextual(12, 3, 5, 2.0, "fresh"),
    "in-turn": in_turn,
    "user+item": lambda: in_turn("user+item"),
    "user*item": lambda: in_turn("user*item"),
    "tastes, item": lambda: in_turn("item"),
}


def environment(name, R=2, seed=3):
    return ContextualEnvironment([PROBLEMS[name]()], [(0, r) for r in range(R)], seed)


def setting_of(env, n=200, name="policy"):
    generators = [seeds.generator(0, name, r) for r in range(len(env.limits))]
    return Setting.of(env, n, generators)


def policy_in(env, text, n=200):
    """The policy, made for the environment."""
    return parse_policies([text], track="contextual")[0].make(setting_of(env, n, text))


class OneNumber:
    """A generator whose normal numbers are all 0, but for one that is 1."""

    def __init__(self, i=None):
        self.i = i

    def standard_normal(self, n):
        return np.zeros(n) if self.i is None else (np.arange(n) == self.i).astype(float)


def moments(draw, n):
    """Mean and covariance of what is affine in n normal numbers, exactly: z = mean + B xi."""
    mean = draw(OneNumber()).copy()
    B = np.stack([draw(OneNumber(i)) - mean for i in range(n)], axis=1)
    return mean, B @ B.T
