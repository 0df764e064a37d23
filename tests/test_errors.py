"""Errors name what is wrong and what was probably meant."""

from logeval.errors import unknown_names


def test_unknown_names_are_reported_at_once_with_the_closest():
    error = unknown_names("policy", ["dcmklucb", "zzz"], ["dcmKL-UCB", "RankedExp3"])
    assert str(error).startswith("unknown policy: 'dcmklucb' (did you mean dcmKL-UCB?), 'zzz'; ")
