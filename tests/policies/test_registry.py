import pytest

from logeval.errors import LogevalError
from logeval.policies.registry import POLICIES, parse_policies


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("dcmkl-ucb", "dcmKL-UCB"),
        ("RANKEDEXP3( gamma = 0.050 )", "RankedExp3(gamma=0.05)"),
        ("CascadeKL-UCB(order=descending)", "CascadeKL-UCB"),
        (
            "CascadeKL-UCB(init=sample,order=ascending)",
            "CascadeKL-UCB(order=ascending,init=sample)",
        ),
    ],
)
def test_names_print_as_they_parse(text, name):
    (spec,) = parse_policies([text])
    assert spec.name == name
    assert parse_policies([spec.name])[0] == spec


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_known_by_its_own_name(name):
    assert parse_policies([name])[0].name == name


def test_all_unknown_names_are_reported_at_once():
    with pytest.raises(LogevalError, match=r"dcmKLUCB.*dcmKL-UCB.*Orcale.*Oracle"):
        parse_policies(["dcmKLUCB", "Random", "Orcale"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RankedExp3(gama=0.1)", "did you mean gamma"),
        ("RankedExp3(gamma=x)", "gamma=x is not a float"),
        ("RankedKL-UCB(collision=none)", "must be one of best, random"),
        ("Random(order=ascending)", "has no parameters"),
        ("Oracle(order=ascending)", "must be one of best, assumed"),
        ("RankedExp3(gamma)", "not parameter=value"),
        ("no_such_module:Policy", "cannot import no_such_module"),
        ("math:nothing", "there is no nothing in math"),
        ("math:pi", "has no method recommend"),
    ],
)
def test_wrong_parameters_are_named(text, message):
    with pytest.raises(LogevalError, match=message):
        parse_policies([text])


def test_a_policy_given_twice_is_refused():
    with pytest.raises(LogevalError, match="twice"):
        parse_policies(["Random", "random"])


def test_a_class_of_a_notebook_has_its_plain_name():
    methods = {"recommend": lambda self, t: None, "update": lambda self, t, A, clicks: None}
    mine = type("Mine", (), {"__module__": "__main__", **methods})
    assert parse_policies([mine])[0].name == "Mine"
    other = type("Mine", (), {"__module__": "a.b", **methods})
    assert parse_policies([other])[0].name == "a.b:Mine"
    with pytest.raises(LogevalError, match="Random is a built-in policy"):
        parse_policies([type("Random", (), {"__module__": "__main__", **methods})])
