"""The record of an answer: written and read back, and in twelve lines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from logeval.decision.decision import TODAY, Choice, Decision, Simulator, TestSize
from logeval.facts import Fact
from logeval.reports.answer import facts_rows, rows_of_tests
from logeval.reports.answer import text as in_words

ROW = Choice(
    "dcmKL-UCB", 46_116.0, 0.041, 0.012, 0.075, 0.02, 5.2, 3.1, 9.0, "9982@0", -0.011, -0.02,
    -0.002, True,
)  # fmt: skip
UBM = Simulator(
    "UBM(classes=3)", -0.32, {"value": True}, 0.97, 0.6, 1.2, 1.26, 1.27, True, "best", False
)  # fmt: skip


def answer(**changes: Any) -> Decision:
    """TEST, with one policy."""
    given: dict[str, Any] = {
        "decision": "TEST", "reason": "gain", "policy": "dcmKL-UCB", "reward": "clicks",
        "days": 27.0, "searches": 35_064.0, "queries": 20, "today": 44_300.0, "best": 52_300.0,
        "choices": (ROW,), "simulators": (UBM,),
        "facts": (Fact("gain", "dcmKL-UCB", value=0.041, threshold=0.02),),
        "tests": (TestSize("A/B test", "clicks", 0.05, 12_400.0, 9.5),),
        "curves": pd.DataFrame({"policy": [TODAY], "t": [1.0], "reward": [1.26], "low": [None],
                                "high": [None]}).astype({"low": float, "high": float}),
    }  # fmt: skip
    return Decision(**{**given, **changes})


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    found = answer()
    found.write(tmp_path / "out")
    again = Decision.read(tmp_path / "out")
    assert again == found
    pd.testing.assert_frame_equal(again.curves, found.curves)


def test_json_holds_everything_and_no_nan() -> None:
    found = answer(choices=(ROW, replace(ROW, policy="TopRank", gain_low=float("nan"))))
    text = json.dumps(found.to_json(), allow_nan=False)
    assert Decision.of(json.loads(text)).choices[0] == ROW


@pytest.mark.parametrize("decision", ["TEST", "KEEP", "WAIT"])
def test_the_first_word_is_the_decision_and_there_are_twelve_lines_at_most(decision: str) -> None:
    rows = tuple(replace(ROW, policy=f"P{i}") for i in range(9))
    found = answer(decision=decision, policy="P0", choices=rows, all_gain=0.2)
    lines = [line for line in found.text().splitlines() if line]
    assert lines[0].split()[0].rstrip(".") == decision
    assert len(lines) <= 11  # and a twelfth that says where more is
    assert any(line.split() == ["6", "more", "from", "46,100"] for line in lines)


def test_markdown_has_a_table_and_paragraphs() -> None:
    lines = in_words(answer(), markdown=True).splitlines()
    assert lines[0].startswith("**TEST dcmKL-UCB.** Over 27 days")
    assert lines[2].startswith("|  | clicks | vs today |")
    assert "| > dcmKL-UCB | 46,100 | +4.1% (1.2 to 7.5) | 2% | day 6 | -1.1% |" in lines
    assert lines[-1].startswith("Next")
    assert lines[-2] == ""


def test_what_is_fine_needs_no_remedy() -> None:
    value = Fact("simulator-value", "DCM", value=0.9, low=0.8, high=1.1, threshold=1.0)
    (fine,), (caution,) = facts_rows([value]), facts_rows([replace(value, level="caution")])
    assert fine[3:] == ["fine", ""]
    assert caution[3:] == ["have in mind", "show other lists in 1% of the searches"]


def test_what_all_results_would_add_is_said_where_it_is_more_than_the_error() -> None:
    assert "rarely shown" not in answer(all_gain=0.06).text()
    assert "If rarely shown results hold what they promise: +9.0%." in answer(all_gain=0.09).text()


def test_few_of_the_logs_searches_are_said() -> None:
    few = (Fact("traffic-covered", value=0.27, threshold=5.0),)
    assert "this is about 5 queries, 27% of the log's searches" in answer(facts=few).text()
    assert "this is about" not in answer(facts=(replace(few[0], value=0.99),)).text()


def test_tests_are_rounded_up_to_two_digits() -> None:
    assert "Next   A/B test of 13,000 searches (10 days)." in answer().text()
    rows = rows_of_tests(answer(tests=(TestSize("A/B test", "clicks", 0.05, None, None),)))
    assert rows == [["A/B test", "clicks", "+0.05", "never enough", ""]]


def test_the_choice_is_in_the_table_whatever_its_place() -> None:
    names = ["A", "B", "C", "D", "dcmKL-UCB", "E"]
    text = answer(choices=tuple(replace(ROW, policy=name) for name in names)).text()
    assert [name for name in names if f"> {name} " in text] == ["A", "B", "dcmKL-UCB"]
    assert "3 more" in text
    assert len([line for line in text.splitlines() if line]) <= 12


def test_digits_follow_the_error() -> None:
    assert "+4.1% (1.2 to 7.5)" in answer().text()
    assert "+4.1% clicks (1.2 to 7.5)" in answer().text()
    wide = replace(ROW, gain=0.13, gain_low=0.06, gain_high=0.214)
    assert "+13% (6 to 21)" in answer(choices=(wide,)).text()


def test_without_days_time_is_a_share_of_the_period() -> None:
    found = answer(days=None)
    assert (found.unit, found.length) == ("search", 35_064.0)
