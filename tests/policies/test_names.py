"""PARAMETERS say a default, all values, or a type."""

import pytest

from logeval.running.names import defaults_of, given_to, options


class Ours:
    PARAMETERS = {"order": "descending", "init": ("sample", "rounds"), "c": 0.5, "gamma": float}  # noqa: RUF012

    def __init__(self, setting, **given):
        self.given = given_to(type(self), given)


class Theirs:
    PARAMETERS = {"epsilon": float, "kind": ("a", "b")}  # noqa: RUF012

    def __init__(self, setting, epsilon=0.1, kind="b"):
        pass


def test_defaults_are_said_once():
    assert defaults_of(Ours) == {"order": "descending", "init": "sample", "c": 0.5, "gamma": None}
    assert defaults_of(Theirs) == {"epsilon": 0.1, "kind": "b"}
    assert options(Ours) == "order=descending, init=sample|rounds, c=0.5, gamma=computed"
    assert options(Theirs) == "epsilon=0.1, kind=b|a"


def test_what_is_given_replaces_the_default():
    given = Ours(None, c=2.0).given
    assert (given.c, given.init) == (2.0, "sample")
    with pytest.raises(TypeError, match="no parameter lazy"):
        Ours(None, lazy=True)
