"""Whether simulators and the log agree on the best policy: the verdict on tables by hand."""

import numpy as np
import pandas as pd
import pytest

from logeval.replay.agreement import CrossCheck

HALF = 0.05


def verdict(methods, steps=300):
    """Of clicks per SERP by method and policy, each +- HALF, or (value, half) where it differs."""
    rows = []
    for method, values in methods.items():
        for policy, given in values.items():
            value, half = given if isinstance(given, tuple) else (given, HALF)
            rows.append((method, policy, value, value - half, value + half))
    table = pd.DataFrame(rows, columns=["method", "policy", "value", "low", "high"])
    return CrossCheck(table, steps).verdict()


def line(values):
    """What is said of one method."""
    (found,) = verdict({"replay": values}).because
    return found


def test_a_policy_is_clearly_best_whose_lower_end_is_above_all_upper_ends():
    found = verdict({"replay": {"a": 0.5, "b": 0.7, "c": 0.2}})
    assert found.because == ["replay: b earns most"]
    assert found.answer == (
        "Over the first 300 searches of each query all methods agree that b earns most."
    )


@pytest.mark.parametrize("near", [0.61, 0.69])
def test_a_policy_within_the_interval_of_another_is_not_clearly_best(near):
    """Whether that other one is the second, or further down with a wider interval."""
    said = "replay: b earns most, which may be chance"
    assert line({"b": 0.7, "a": near, "c": 0.2}) == said
    assert line({"b": 0.7, "a": 0.5, "c": (0.2, near - 0.15)}) == said


def test_intervals_that_touch_overlap():
    touching = line({"a": (0.75, 0.25), "b": (0.25, 0.25)})
    assert touching == "replay: a earns most, which may be chance"
    assert line({"a": (0.75, 0.25), "b": (0.25, 0.24)}) == "replay: a earns most"


def test_nobody_is_clearly_best_beside_a_policy_without_an_interval():
    """An interval that is not known may hold anything."""
    for a, b, c in ((0.7, (0.5, np.nan), 0.1), ((0.7, np.nan), 0.5, 0.1)):
        assert line({"a": a, "b": b, "c": c}) == "replay: a earns most, which may be chance"


def test_methods_with_the_same_first_do_not_agree_where_that_may_be_chance():
    found = verdict({"simulated DCM": {"a": 0.52, "b": 0.5}, "replay": {"a": 0.51, "b": 0.5}}, 1000)
    assert found.because == [
        "simulated DCM: a earns most, which may be chance",
        "replay: a earns most, which may be chance",
    ]
    assert found.answer == (
        "Over the first 1,000 searches of each query all methods have a first, but by none of them "
        "is the difference more than chance."
    )


def test_methods_that_are_not_sure_do_not_contradict_each_other():
    unsure = {"simulated DCM": {"a": 0.52, "b": 0.5}, "replay": {"a": 0.5, "b": 0.52}}
    assert verdict(unsure).answer.endswith("so they neither agree nor disagree.")
    sure = unsure | {"last lists, IP": {"a": 0.9, "b": 0.2}}
    assert verdict(sure).answer.endswith(
        "a earns most where the intervals say who does; no method contradicts that by more than "
        "chance."
    )


def test_methods_that_are_sure_of_different_policies_disagree():
    found = verdict(
        {"last lists, IP": {"b": 0.9, "a": 0.2}, "last lists, DR": {"a": 0.9, "b": 0.2}}
    )
    assert found.answer.endswith(
        "the methods disagree: b and a are each clearly best by some of them."
    )
    assert found.next == ["trust the log (replay) before a simulator"]


def test_the_methods_keep_their_order():
    names = ["simulated UBM", "replay", "last lists, DR"]
    lines = verdict({m: {"a": 0.9, "b": 0.2} for m in names}).because
    assert [line.partition(":")[0] for line in lines] == names


# -- the level of the clicks ------------------------------------------------------------------


def levels(simulated, replay, **others):
    return verdict({"simulated DCM": simulated, "replay": replay, **others}).limits


def test_simulators_are_named_whose_intervals_do_not_meet_those_of_the_replay():
    replay = {"a": 0.5, "b": 0.5, "c": 0.5}
    assert levels({"b": 0.65, "c": 0.55, "a": 0.35}, replay) == [
        "simulated DCM: the clicks of 2 of 3 policies lie outside what the replay allows, by "
        "-0.15 to +0.15 clicks per search"
    ]
    assert levels({"a": 0.45, "b": 0.55, "c": 0.59}, replay) == []


def test_simulators_are_named_in_their_order():
    off = {"a": 0.9, "b": 0.8}
    table = {"simulated UBM": off, "simulated DCM": off, "replay": {"a": 0.5, "b": 0.4}}
    lines = [line.partition(":")[0] for line in verdict(table).limits]
    assert lines == ["simulated UBM", "simulated DCM"]


def test_only_policies_outside_say_how_far_off_a_simulator_is():
    (line,) = levels({"a": 0.75, "b": 0.57}, {"a": 0.5, "b": 0.5})
    assert line.endswith(
        "1 of 2 policies lie outside what the replay allows, by +0.25 clicks per search"
    )


def test_a_simulator_beside_a_replay_without_clicks_is_off_by_a_number():
    """A share of nothing would be none."""
    (line,) = levels({"a": 0.5, "b": 0.4}, {"a": (0.0, 0.01), "b": (0.0, 0.01)})
    assert line.endswith("by +0.40 to +0.50 clicks per search")


@pytest.mark.parametrize("value", [0.25, 0.75])
def test_intervals_that_touch_are_allowed(value):
    exact = {"a": (0.5, 0.125), "b": (0.5, 0.125)}
    assert levels({"a": (value, 0.125), "b": 0.5}, exact) == []
    assert levels({"a": (value, 0.124), "b": 0.5}, exact) != []


def test_estimates_of_the_last_lists_may_differ_from_the_replay():
    alike = {"a": 0.5, "b": 0.4}
    assert levels(alike, alike, **{"last lists, IP": {"a": 0.9, "b": 0.8}}) == []
