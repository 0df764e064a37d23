"""The example of every public function runs, one after the other, as in one session."""

import doctest
import inspect

import numpy as np

import logeval
from logeval.policies.registry import POLICIES

ORDER = [
    "generate", "ingest", "support", "fit_models", "read_models", "load", "compare_models", "score",
    "check_models", "evaluate", "register", "decide", "report", "export", "make_features",
    "read_features", "replay_estimate", "replay_validate", "replay_policy",
]  # fmt: skip


def test_every_public_function_has_its_example_here():
    functions = {name for name in logeval.__all__ if inspect.isfunction(getattr(logeval, name))}
    assert functions == set(ORDER)


def test_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session, runner = {"logeval": logeval, "np": np}, doctest.DocTestRunner(verbose=False)
    wrong = []
    for name in ORDER:
        function = getattr(logeval, name)
        found = doctest.DocTestParser().get_doctest(function.__doc__, session, name, None, 0)
        assert found.examples, f"{name} has no example"
        runner.run(found, out=wrong.append, clear_globs=False)
        session = found.globs
    assert not wrong, "".join(wrong)
    POLICIES.pop("Still")
