"""Runs of a policy whose code was edited since are never taken for its runs."""

import importlib
import sys

import pytest

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.running.own_code import UNKNOWN, source_checksum

POLICY = """
from mine.rules import base
from mine.constants import FIRST

class Fixed(base.Base):
    def recommend(self, t):
        return self.lists(FIRST)
"""
BASE = """
import numpy as np
from .. import late

class Base:
    def __init__(self, setting):
        self.setting = setting

    def lists(self, first):
        import plain
        return np.tile(np.arange(first, first + self.setting.K), (self.setting.R, 1))

    def update(self, t, A, clicks):
        pass
"""
FILES = {
    "mine/__init__.py": "",
    "mine/policy.py": POLICY,
    "mine/constants.py": "FIRST = 0\n",
    "mine/late.py": "X = 1\n",
    "mine/rules/__init__.py": "",
    "mine/rules/base.py": BASE,
    "plain.py": "Y = 1\n",  # imported only when it runs
    "other.py": "Z = 1\n",  # not imported
}
RUN = {"problem": "B_LB(L=8,K=3,p=0.4,gap=0.3)", "horizon": 30, "quiet": True}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    yield tmp_path
    forget()


def forget():
    """As a new process would: nothing of it is loaded."""
    for name in [n for n in sys.modules if n.partition(".")[0] in ("mine", "plain", "other")]:
        del sys.modules[name]
    importlib.invalidate_caches()


def loaded():
    forget()
    return importlib.import_module("mine.policy").Fixed


@pytest.mark.parametrize("name", [n for n in FILES if n != "other.py"])
def test_an_edit_in_any_file_of_the_policy_is_noticed(folder, name):
    before = source_checksum(loaded())
    assert source_checksum(loaded()) == before
    (folder / name).write_text(FILES[name] + "# edited\n")
    assert source_checksum(loaded()) != before


def test_an_edit_elsewhere_is_not(folder):
    before = source_checksum(loaded())
    (folder / "other.py").write_text("Z = 2\n")
    assert source_checksum(loaded()) == before


def test_runs_are_not_added_to_those_of_other_code(folder):
    out = folder / "out"
    loaded()
    evaluate(policies="mine.policy:Fixed", runs=2, out=out, **RUN)
    evaluate(policies="mine.policy:Fixed", runs=3, out=out, **RUN)
    (folder / "mine/constants.py").write_text("FIRST = 5\n")
    loaded()
    for runs in (3, 4):
        with pytest.raises(LogevalError, match=r"code of policy mine.policy:Fixed is not the same"):
            evaluate(policies="mine.policy:Fixed", runs=runs, out=out, **RUN)


def test_runs_of_code_that_is_in_no_file_are_not_added_to(tmp_path):
    here = {"__name__": "__typed_in__"}
    exec(BASE.replace("from .. import late", "").replace("import plain", ""), here)
    policy = type("Typed", (here["Base"],), {"recommend": lambda self, t: self.lists(0)})
    assert source_checksum(policy).startswith(UNKNOWN)
    evaluate(policies=policy, runs=2, out=tmp_path, **RUN)
    with pytest.raises(LogevalError, match=r"cannot be compared, keep the class in a file"):
        evaluate(policies=policy, runs=3, out=tmp_path, **RUN)
