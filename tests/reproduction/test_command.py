"""``python -m reproduction``: list, one experiment, and what is refused before anything runs."""

import json

import pytest

from reproduction.__main__ import main
from reproduction.data import experiments

SMALL = ("--horizon", "30", "--runs", "2", "--quiet")


@pytest.fixture
def run(capsys):
    def run(*arguments):
        main([str(one) for one in arguments])
        return capsys.readouterr().out

    return run


def test_list_names_every_experiment_and_what_it_needs(run):
    needs = {line.split()[0]: line for line in run("list").splitlines() if line.strip()}
    assert set(experiments()) <= set(needs)
    assert "a log" in needs["dcm-3c"]
    assert "nothing" in needs["dcm-3b"]
    assert max(map(len, needs.values())) <= 80


def test_ours_stand_beside_the_published(run):
    text = run("dcm-3b", *SMALL)
    assert "3.00 (2.50 to" in text
    assert "less than the paper's" in text
    assert "not judged at this" in text
    assert max(map(len, text.splitlines())) <= 80


def test_programs_get_all_columns(run):
    (row, *_) = json.loads(run("dcm-3b", *SMALL, "--json"))
    assert (row["published"], row["experiment"]) == ("3.00 (2.50 to 3.50)", "dcm-3b")
    assert row["verdict"] == "not judged at this horizon"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dcm-9"], "dcm-9"),
        (["dcm-3c"], "needs an ingested log"),
        (["all"], "give --out FOLDER"),
        (["all", "--out", "x"], "give one"),
        (["dcm-3b", "--scale", "2"], "scale=2: must be"),
        (["dcm-3c", "--log", "a", "--log", "b"], "one log"),
        (["dcm-2a", "--horizon", "0"], "horizon=0: must be at least 1"),
        (["rank1-1", "--horizon", "0"], "horizon=0: must be at least 1"),
    ],
)
def test_refused(run, arguments, message):
    with pytest.raises(SystemExit) as refused:
        run(*arguments)
    assert str(refused.value.code).startswith("error: ")
    assert message in str(refused.value.code)
