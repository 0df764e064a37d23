"""Policies and click models of the user's own, registered."""

from dataclasses import dataclass

import pytest

import logeval
from logeval.clicks.models.cm import CM
from logeval.clicks.models.registry import MODELS, model_names
from logeval.policies.registry import POLICIES, own_sources, parse_policies
from tests.evaluation.my_policy import Greedy


@pytest.fixture(autouse=True)
def forget():
    before = dict(POLICIES), dict(MODELS)
    yield
    for table, old in zip((POLICIES, MODELS), before, strict=True):
        table.clear()
        table.update(old)


class Mine(Greedy):
    PARAMETERS = {"epsilon": float}  # noqa: RUF012


def test_a_registered_policy_is_known_by_its_name_and_is_still_the_users_own():
    assert logeval.register(Mine) is Mine
    (spec,) = parse_policies(["mine(epsilon=0.3)"])
    assert (spec.name, spec.cls, spec.parameters) == ("Mine(epsilon=0.3)", Mine, {"epsilon": 0.3})
    assert parse_policies([Mine])[0].name == "Mine"
    assert not spec.built_in
    assert list(own_sources([spec])) == ["Mine(epsilon=0.3)"]
    with pytest.raises(logeval.LogevalError, match="only a built-in policy has a reference"):
        parse_policies(["Mine"], reference=True)
    problem = "B_LB(L=6,K=2,p=0.4,gap=0.3)"
    named, given = (
        logeval.evaluate(problem=problem, policies=[p], horizon=50, runs=2, quiet=True).table()
        for p in ("Mine", Mine)
    )
    assert named.equals(given)


def test_registered_again_the_new_class_counts():
    logeval.register(Mine)
    again = logeval.register(type("Mine", (Mine,), {"NAME": "mine"}))
    assert parse_policies(["MINE"])[0].cls is again


def test_a_registered_click_model_is_known_by_its_name():
    @logeval.register
    @dataclass(frozen=True)
    class Patient(CM):
        name = "Patient"

    assert model_names(["patient"]) == ["Patient"]
    assert MODELS["Patient"] is Patient


@pytest.mark.parametrize("name", ["Random", "dcmkl-ucb"])
def test_built_in_policies_stay(name):
    with pytest.raises(logeval.LogevalError, match="is a built-in policy"):
        logeval.register(type("Other", (Mine,), {"NAME": name}))


def test_what_cannot_be_registered_is_refused():
    with pytest.raises(logeval.LogevalError, match="CM is a built-in click model"):
        logeval.register(type("Other", (CM,), {}))
    with pytest.raises(logeval.LogevalError, match="has no method recommend"):
        logeval.register(int)
    with pytest.raises(logeval.LogevalError, match="is not a class"):
        logeval.register("Mine")
