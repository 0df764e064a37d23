"""What an argument may be: values of every wrong kind, in every public function, are said."""

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import logeval
from logeval.errors import LogevalError
from logeval.stage import fits, plain
from tests.clicks.examples import three_queries

WRONG = [
    None, -1, 3.5, True, "x", "", b"x", [], [3], {"a": 1}, object(), np.array(["a"]), Path("nope"),
    float("nan"), int, pd.DataFrame({"a": [1]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (np.int64(3), 3), (np.array([1, 2]), [1, 2]), ({4}, [4]), (range(2), [0, 1]),
        (iter("ab"), ["a", "b"]), ({"a": 1}.keys(), ["a"]), ("ab", "ab"), ((1,), (1,)),
    ],
)  # fmt: skip
def test_numpys_numbers_and_other_lists_become_plain(given, made):
    assert plain(given) == made
    assert type(plain(given)) is type(made)


def test_an_array_is_no_number_and_a_frame_no_list():
    from collections.abc import Sequence

    assert not fits(np.array([1]), int)
    assert not fits(int, int)
    assert not fits(pd.DataFrame({"a": [1]}), Sequence[str])
    assert not fits(b"ab", Sequence[int])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "log").mkdir()
    log = three_queries(folder / "log")
    models = logeval.fit_models(log, ["dctr", "dcm"], out=folder / "models", quiet=True)
    logeval.evaluate(
        models, policies=["Random"], horizon=5, runs=1, out=folder / "runs", quiet=True
    )
    return folder


def calls(folder):
    """Every public function, with arguments with which it works quickly."""
    log, models, out = folder / "log", folder / "models", folder / "out"
    quiet = {"quiet": True}
    few = {"rounds": 0, "refits": 0, "estimators": ["IP"]}
    return {
        "generate": {"out": out / "g.tsv", "sessions": 3, "queries": 1, "overwrite": True},
        "ingest": {"logs": folder / "none.tsv", "out": out / "i"},
        "fit_models": {"log": log, "models": "dctr"},
        "compare_models": {"log": log, "models": ["rctr", "dctr"]},
        "score": {"models": models, "log": log},
        "check_models": {"models": models, "log": log, "serps": 20,
                         "simulations": 80},
        "evaluate": {"models": models, "policies": "Random", "horizon": 3, "runs": 1},
        "make_features": {"log": log, "out": out / "f", "overwrite": True},
        "replay_estimate": {"log": log, "target": "logged", "positions": 1, **few},
        "replay_validate": {"log": log, "positions": [1], "parts": 2, "estimators": ["IP"],
                            "clips": [10]},
        "replay_policy": {"log": log, "policies": "Random", "positions": 1, "shuffles": 1,
                          "horizon": 3},
        "report": {"runs": folder / "nothing", "out": out / "r"},
    }, quiet  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["generate", "ingest", "fit_models", "compare_models", "score", "check_models", "evaluate",
     "make_features", "replay_estimate", "replay_validate", "replay_policy",
     "report"],
)  # fmt: skip
def test_no_public_function_raises_anything_but_its_own_error(folder, name, tmp_path, monkeypatch):
    """Each argument in turn is given something of every wrong kind."""
    monkeypatch.chdir(tmp_path)  # some of the values are names of folders
    function = getattr(logeval, name)
    given, quiet = calls(folder)
    names = list(inspect.signature(function).parameters)
    base = given[name] | (quiet if "quiet" in names else {})
    for argument in names:
        for value in WRONG:
            try:
                function(**(base | {argument: value}))
            except LogevalError:
                continue
            except Exception as error:
                pytest.fail(f"{name}({argument}={value!r}): {error!r}")


def test_arguments_that_a_function_does_not_take_are_said(folder):
    for call, message in (
        (lambda: logeval.evaluate(folder / "models", "Random"), "evaluate: too many positional"),
        (lambda: logeval.evaluate(folder / "models", polices="Random"), "did you mean policies"),
        (lambda: logeval.fit_models("a", "dcm", log="b"), "multiple values for argument 'log'"),
        (lambda: logeval.fit_models("a"), "fit-models: missing a required argument: 'models'"),
        (lambda: logeval.generate("a", "b"), "generate: too many positional"),
        (lambda: logeval.fit_models(folder / "log", "dctr", out=""), "out is empty; name a file"),
        (
            lambda: logeval.fit_models(folder / "log", "dcm", colour="red", smothing=3),
            "unknown argument of fit-models: 'colour'.*'smothing' .did you mean smoothing",
        ),
    ):
        with pytest.raises(LogevalError, match=message):
            call()


def test_readers_say_what_they_want():
    for read in (logeval.read_models, logeval.read_features, logeval.Runs.load, logeval.load):
        for value in (None, 3, [], object(), b"x"):
            with pytest.raises(LogevalError, match=r"is not the name|cannot be loaded"):
                read(value)


@pytest.mark.parametrize(
    ("what", "call", "message"),
    [
        ("log", lambda log: log.top_queries(-1), "fewer than 0"),
        ("log", lambda log: log.serps(queries=3.5), "3.5 is not a query"),
        ("models", lambda models: models["DCM", 1].best_list(2, 3), "reward of DCM: '3'"),
        ("models", lambda models: models.plot(None), "unknown figure: 'None'"),
        ("runs", lambda runs: runs.plot(simulator=3), "simulator of these runs: '3'"),
    ],
)
def test_results_say_what_they_want(folder, what, call, message):
    with pytest.raises(LogevalError, match=message):
        call(logeval.load(folder / what))


def test_one_name_stands_for_a_list_of_policies(folder):
    runs = logeval.load(folder / "runs")
    assert set(runs.only("Random").to_pandas()["policy"]) == {"Random"}
    page = logeval.report(folder / "runs", folder / "page", policies="Random", quiet=True)
    assert page.exists()
    replayed = logeval.replay_policy(
        folder / "log", "Random", positions=1, shuffles=1, horizon=3, quiet=True
    )
    assert set(replayed.table["policy"]) == {"Random"}
