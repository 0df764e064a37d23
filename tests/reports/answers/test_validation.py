"""Which estimator the parts of a log recommend, in words: choices by hand."""

import pandas as pd
import pytest

from logeval import replay_validate
from logeval.replay.validate import Validation
from tests.serps import Serp, write_serps


def choice(K=1, best="IP", beats=True, spread=0.05, **changes):
    return {
        "positions": K, "best": best, "rmse": 0.02, "floor": 0.015, "logger_rmse": 0.04,
        "ties": [], "worse": [], "beats_logger": beats, "spread": spread, **changes,
    }  # fmt: skip


def verdict(*choices, parts=20, support=1.0, days=True):
    rows = [
        {"estimator": name, "positions": c["positions"], "clip": float("nan"), "parts": parts,
         "support": support}
        for c in choices
        for name in ("IP", "RCTR")
    ]  # fmt: skip
    manifest = {"log_folder": "my log", "arguments": {"parts": None if days else parts}}
    return Validation(pd.DataFrame(rows), list(choices), manifest).verdict()


def test_an_estimator_that_beats_the_logger_is_recommended_with_the_next_command():
    found = verdict(choice(ties=["DR"]))
    assert found.answer == "Use IP at K = 1."
    assert found.because == [
        "K = 1: IP has the smallest error, 0.020 clicks per search; chance alone makes 0.015, and "
        "RCTR errs by 0.040. Not told from it on these parts: DR"
    ]
    assert found.next == ["`logeval replay estimate 'my log' --target TARGET -e IP --positions 1`"]
    assert found.limits == []


def test_the_same_estimator_is_recommended_once():
    found = verdict(choice(1), choice(2), choice(3, best="Prefix"))
    assert found.answer == "Use IP at K = 1 and 2. Use Prefix at K = 3."


def test_parts_cannot_choose_where_nothing_is_told_from_the_loggers_own_value():
    found = verdict(choice(best="RCTR", beats=False, worse=["PBM"]), days=False)
    assert found.answer.startswith("These parts cannot choose an estimator: none predicts them ")
    assert "Use" not in found.answer
    assert found.because[0].endswith("Worse than RCTR by more than chance: PBM")
    assert "leave out days" in found.next[0]
    both = verdict(choice(1), choice(2, beats=False, ties=["RCTR"]))
    assert both.answer.startswith("Use IP at K = 1. At K = 2 these parts cannot choose")


@pytest.mark.parametrize(
    ("spread", "said"),
    [(0.0, "predict the same."), (0.001, "within 0.001 clicks per search, where chance alone")],
)
def test_parts_that_show_the_same_rankings_cannot_choose(spread, said):
    found = verdict(choice(best="RCTR", beats=False, spread=spread))
    assert found.answer.startswith("These parts cannot choose an estimator: they show the same ")
    assert said in found.answer
    assert found.because == []
    assert "explores" in found.next[0]


def test_few_parts_and_little_support_limit_it():
    found = verdict(choice(K=5), parts=3, support=0.25)
    assert found.limits[0] == "3 parts are few: little can be told apart with them"
    assert "IP: at K = 5 the rest of the log has shown 25% of a part" in found.limits[1]


def test_a_log_that_shows_one_list_cannot_choose(tmp_path):
    """It said: use RCTR, skill 0.00."""
    serps = [
        Serp(0, [1, 2], [int(i % 3 == 0), int(i % 4 == 0)], session_id=i, day=i % 4)
        for i in range(80)
    ]
    found = replay_validate(write_serps(tmp_path, serps), positions=[1, 2], quiet=True).verdict()
    assert found.answer.startswith("These parts cannot choose an estimator: they show the same ")
