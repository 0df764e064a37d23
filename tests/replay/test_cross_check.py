"""Whether simulators and the log agree on the best policy: the verdict on tables by hand."""

import numpy as np
import pandas as pd
import pytest

from logeval.replay.agreement import _verdict

HALF = 0.05


def verdict(methods, steps=300):
    """Of clicks per SERP by method and policy, each +- HALF, or (value, half) where it differs."""
    rows = []
    for method, values in methods.items():
        for policy, given in values.items():
            value, half = given if isinstance(given, tuple) else (given, HALF)
            rows.append((method, policy, value, value - half, value + half))
    table = pd.DataFrame(rows, columns=["method", "policy", "value", "low", "high"])
    return _verdict(table, steps)


def test_a_policy_is_clearly_best_whose_lower_end_is_above_all_upper_ends():
    *lines, last = verdict({"replay": {"a": 0.5, "b": 0.7, "c": 0.2}})
    assert lines == ["replay: b is best"]
    assert last == "After 300 steps all methods agree: b is best."


@pytest.mark.parametrize("near", [0.61, 0.69])
def test_a_policy_within_the_interval_of_another_is_not_clearly_best(near):
    """Whether that other one is the second, or further down with a wider interval."""
    line, _ = verdict({"replay": {"b": 0.7, "a": near, "c": 0.2}})
    assert line == "replay: b is best, within the intervals of another"
    line, _ = verdict({"replay": {"b": 0.7, "a": 0.5, "c": (0.2, near - 0.15)}})
    assert line == "replay: b is best, within the intervals of another"


def test_intervals_that_touch_overlap():
    line, _ = verdict({"replay": {"a": (0.75, 0.25), "b": (0.25, 0.25)}})
    assert line == "replay: a is best, within the intervals of another"
    line, _ = verdict({"replay": {"a": (0.75, 0.25), "b": (0.25, 0.24)}})
    assert line == "replay: a is best"


def test_nobody_is_clearly_best_beside_a_policy_without_an_interval():
    """An interval that is not known may hold anything."""
    for a, b, c in ((0.7, (0.5, np.nan), 0.1), ((0.7, np.nan), 0.5, 0.1)):
        line, _ = verdict({"replay": {"a": a, "b": b, "c": c}})
        assert line == "replay: a is best, within the intervals of another"


def test_methods_agree_though_none_is_sure():
    found = verdict({"simulated DCM": {"a": 0.52, "b": 0.5}, "replay": {"a": 0.51, "b": 0.5}}, 1000)
    assert found == [
        "simulated DCM: a is best, within the intervals of another",
        "replay: a is best, within the intervals of another",
        "After 1000 steps all methods agree: a is best.",
    ]


def test_methods_that_are_not_sure_do_not_contradict_each_other():
    unsure = {"simulated DCM": {"a": 0.52, "b": 0.5}, "replay": {"a": 0.5, "b": 0.52}}
    assert verdict(unsure)[-1] == "After 300 steps the methods do not contradict each other."
    sure = unsure | {"last lists, IP": {"a": 0.9, "b": 0.2}}
    assert verdict(sure)[-1] == (
        "After 300 steps the methods do not contradict each other. a is best where the intervals "
        "tell."
    )


def test_methods_that_are_sure_of_different_policies_disagree():
    found = verdict(
        {"last lists, IP": {"b": 0.9, "a": 0.2}, "last lists, DR": {"a": 0.9, "b": 0.2}}
    )
    assert found[-1] == (
        "After 300 steps the methods disagree: a, b are each clearly best by some of them. Trust "
        "the log before a simulator."
    )


def test_the_methods_keep_their_order():
    lines = verdict(
        {m: {"a": 0.9, "b": 0.2} for m in ("simulated UBM", "replay", "last lists, DR")}
    )
    assert [line.partition(":")[0] for line in lines[:3]] == [
        "simulated UBM",
        "replay",
        "last lists, DR",
    ]


# -- the level of the clicks ------------------------------------------------------------------


def levels(simulated, replay, **others):
    found = verdict({"simulated DCM": simulated, "replay": replay, **others})
    return [line for line in found if "outside" in line]


def test_simulators_are_named_whose_intervals_do_not_meet_those_of_the_replay():
    replay = {"a": 0.5, "b": 0.5, "c": 0.5}
    assert levels({"b": 0.65, "c": 0.55, "a": 0.35}, replay) == [
        "simulated DCM: the clicks of 2 of 3 policies lie outside what the replay allows, by -30% "
        "to +30%"
    ]
    assert levels({"a": 0.45, "b": 0.55, "c": 0.59}, replay) == []


def test_simulators_are_named_in_their_order():
    off = {"a": 0.9, "b": 0.8}
    table = {"simulated UBM": off, "simulated DCM": off, "replay": {"a": 0.5, "b": 0.4}}
    lines = [line.partition(":")[0] for line in verdict(table) if "outside" in line]
    assert lines == ["simulated UBM", "simulated DCM"]


def test_only_policies_outside_say_how_far_off_a_simulator_is():
    (line,) = levels({"a": 0.75, "b": 0.57}, {"a": 0.5, "b": 0.5})
    assert line.endswith("1 of 2 policies lie outside what the replay allows, by +50% to +50%")


@pytest.mark.parametrize("value", [0.25, 0.75])
def test_intervals_that_touch_are_allowed(value):
    exact = {"a": (0.5, 0.125), "b": (0.5, 0.125)}
    assert levels({"a": (value, 0.125), "b": 0.5}, exact) == []
    assert levels({"a": (value, 0.124), "b": 0.5}, exact) != []


def test_estimates_of_the_last_lists_may_differ_from_the_replay():
    alike = {"a": 0.5, "b": 0.4}
    assert levels(alike, alike, **{"last lists, IP": {"a": 0.9, "b": 0.8}}) == []
