"""Runs of a policy of the user's own are never taken for current: it may have been edited."""

import importlib
import sys

import pytest

import logeval
from logeval.evaluation.evaluate import evaluate

POLICY = """
import numpy as np

class Fixed:
    def __init__(self, setting):
        self.setting = setting

    def recommend(self, t):
        return np.tile(np.arange(FIRST, FIRST + self.setting.K), (self.setting.R, 1))

    def update(self, t, A, clicks):
        pass
"""
RUN = {"problem": "B_LB(L=8,K=3,p=0.4,gap=0.3)", "horizon": 30, "quiet": True}
NAME = "my_fixed:Fixed"


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """Write the policy, and forget the one before as a new process would."""

    def edit(first):
        (tmp_path / "my_fixed.py").write_text(POLICY.replace("FIRST", str(first)))
        sys.modules.pop("my_fixed", None)
        importlib.invalidate_caches()

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    yield edit
    sys.modules.pop("my_fixed", None)


def rows(runs, policy):
    table = runs.to_pandas()
    return table[(table["policy"] == policy)].reset_index(drop=True)


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_runs_of_edited_code_take_the_place_of_those_before(edited, tmp_path, runs):
    """All of them: runs of two codes are never together in a table."""
    edited(0)
    before = evaluate(policies=[NAME, "Random"], runs=2, out=tmp_path / "out", **RUN)
    edited(5)
    evaluate(policies=NAME, runs=runs, out=tmp_path / "out", **RUN)
    alone = evaluate(policies=NAME, runs=runs, out=tmp_path / "alone", **RUN)
    after = logeval.Runs.load(tmp_path / "out")
    assert rows(after, NAME).equals(rows(alone, NAME))
    assert not rows(after, NAME)["regret"].equals(rows(before, NAME)["regret"])
    assert rows(after, "Random").equals(rows(before, "Random"))


def test_its_units_are_not_kept_for_the_next_command(edited, tmp_path, monkeypatch):
    edited(0)
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("logeval.evaluation.store.Store.merge", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            evaluate(policies=[NAME, "Random"], runs=2, out=out, **RUN)
    assert len(list((out / "units").glob("*.parquet"))) == 1  # of Random
    edited(5)
    alone = evaluate(policies=NAME, runs=2, **RUN)
    assert rows(evaluate(policies=NAME, runs=2, out=out, **RUN), NAME).equals(rows(alone, NAME))
