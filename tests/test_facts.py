"""Facts survive JSON, and the worst come first."""

import json

from logeval.facts import Fact, worst_first


def test_a_fact_comes_back_from_json():
    fact = Fact("simulator-value", "DCM", "caution", 0.5, 0.3, 0.7, 1.0, {"lists": 12})
    assert Fact.of(json.loads(json.dumps(fact.record()))) == fact


def test_what_is_not_there_is_left_out_and_what_is_no_number_is_not_written():
    assert Fact("few-queries", value=float("inf")).record() == {
        "code": "few-queries",
        "level": "fine",
    }


def test_a_zero_stays():
    assert Fact("gain", value=0.0, low=0).record()["value"] == 0.0
    assert Fact("gain", value=0.0, low=0).record()["low"] == 0


def test_the_worst_come_first_and_else_the_order_stays():
    levels = ["fine", "stop", "caution", "stop"]
    facts = [Fact(str(i), level=level) for i, level in enumerate(levels)]
    assert [fact.code for fact in worst_first(facts)] == ["1", "3", "2", "0"]
