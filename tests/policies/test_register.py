"""Policies and click models of the user's own, registered."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import logeval
from logeval.clicks.models.counting import CM
from logeval.clicks.models.registry import MODELS, model_names
from logeval.policies.registry import POLICIES, parse_policies
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
    assert (spec.name, spec.built_in) == ("Mine(epsilon=0.3)", False)
    problem = "B_LB(L=6,K=2,p=0.4,gap=0.3)"
    named, given = (
        logeval.evaluate(problem=problem, policies=[p], horizon=50, runs=2, quiet=True).to_pandas()
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


def test_a_class_that_is_imported_takes_only_values_of_its_parameters():
    name = f"{Mine.__module__}:Mine"
    assert parse_policies([f"{name}(epsilon=1)"])[0].parameters == {"epsilon": 1.0}
    with pytest.raises(logeval.LogevalError, match="epsilon=abc is not a float"):
        parse_policies([f"{name}(epsilon=abc)"])


class Sound(CM):
    """A click model of the user's own, which is right."""

    name = "Sound"


def nothing(*_):
    return None


def long(self, A, *_):
    return np.zeros((len(A), A.shape[1] + 1))


def unknown(self, A, *_):
    return np.full(np.shape(A), np.nan)


WRONG = [
    {method: wrong}
    for method in ("click_probs_of_rows", "conditional_click_probs", "sample")
    for wrong in (nothing, long, unknown)
]
WRONG += [
    {method: wrong}
    for method in ("expected_reward", "log_likelihood", "best")
    for wrong in (nothing, unknown)
]
WRONG += [
    {"users": property(give)}
    for give in (
        nothing,
        lambda self: logeval.Browsing(self.w[:-1], np.ones((self.K, self.K + 1))),
        lambda self: logeval.Browsing(self.w, np.full((self.K, self.K + 1), np.nan)),
    )
]


def refitted(change):
    def fit(cls, data, options):
        found = CM.fit(data, options)
        w = change(found.estimates["w"].value)
        return replace(found, estimates={"w": replace(found.estimates["w"], value=w)})

    return classmethod(fit)


WRONG += [{"fit": classmethod(nothing)}, {"fit": classmethod(lambda *_: "fitted")}]
WRONG += [{"fit": refitted(change)} for change in (lambda w: w[1:], lambda w: w * np.nan)]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    logeval.generate(folder / "log.tsv", sessions=300, queries=2, seed=1, quiet=True)
    return logeval.ingest(folder / "log.tsv", folder / "log", quiet=True)


@pytest.mark.parametrize("wrong", [{}, *WRONG])
def test_what_a_click_model_of_the_users_returns_is_checked(wrong, log):
    model = logeval.register(dataclass(frozen=True)(type("Sound", (Sound,), wrong)))
    method = "".join(wrong)

    def best():
        models = logeval.fit_models(log, model.name, draws=0, quiet=True)
        return models["sound", models.queries[0]].best_list()

    if not wrong:
        assert len(best()) == 10
        return
    with pytest.raises(logeval.LogevalError, match=rf"click model Sound: {method} must give"):
        best()


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
