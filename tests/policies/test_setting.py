"""A policy gets what it declares, as far as the environment has it."""

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.policies.registry import POLICIES, parse_policies
from logeval.policies.setting import CAPABILITIES, Setting


def setting(**offers):
    generators = [np.random.default_rng(r) for r in range(2)]
    limits = np.array([[5, 5, 5], [4, 4, 4]])
    return Setting(limits, True, 10, generators, offers=offers)


def test_lists_and_pairs_have_their_names():
    lists = setting()
    assert (lists.R, lists.K, lists.L.tolist()) == (2, 3, [5, 4])
    pairs = Setting(np.array([[6, 4]]), False, 10, [np.random.default_rng(0)])
    assert (pairs.rows.tolist(), pairs.columns.tolist()) == ([6], [4])


class Curious:
    def __init__(self, setting):
        self.best = setting.ask("best")


def test_a_capability_must_be_declared():
    with pytest.raises(LogevalError, match=r"policy mine: asks for best.*NEEDS = \(\"best\",\)"):
        Curious(setting(best=np.zeros((2, 3))).tell(Curious, "mine"))
    declared = type("Declared", (Curious,), {"NEEDS": ("best",)})
    assert declared(setting(best=7).tell(declared, "mine")).best == 7


def test_unknown_capabilities_are_named():
    wrong = type("Wrong", (Curious,), {"NEEDS": ("bset",)})
    with pytest.raises(LogevalError, match="did you mean best"):
        setting().tell(wrong, "mine")


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_that_declares_a_need_is_refused_clearly(name):
    spec = parse_policies([name])[0]
    needs = getattr(spec.cls, "NEEDS", ())
    if "free_samples" in needs:
        spec = parse_policies([f"{name}(init=sample)"])[0]
    if needs:
        with pytest.raises(LogevalError) as refused:
            spec.make(setting())
        assert f"policy {spec.name}: needs {needs[0]}" in str(refused.value)
        assert CAPABILITIES[needs[0]].remedy in str(refused.value)
    elif spec.track != "rank1":
        spec.make(setting())


def test_the_remedy_works():
    parse_policies(["dcmKL-UCB"])[0].make(setting())
