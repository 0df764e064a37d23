"""``logeval reproduce``: list, one experiment, and what is refused before anything runs."""

import json

import pytest
from typer.testing import CliRunner

from logeval.cli import app
from logeval.errors import LogevalError
from logeval.papers.registry import EXPERIMENTS

SMALL = ("--horizon", "30", "--runs", "2", "--quiet")


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_list_names_every_experiment_and_what_it_needs():
    text = run("list").stdout
    assert all(name in text for name in EXPERIMENTS)
    assert max(map(len, text.splitlines())) <= 80
    rows = json.loads(run("list", "--json").stdout)["rows"]
    needs = {row["experiment"]: row["needs"] for row in rows}
    assert needs["dcm-3c"] == "a log"
    assert needs["dcm-3b"] == "nothing"


def test_ours_stand_beside_the_published():
    result = run("dcm-3b", *SMALL)
    assert result.exit_code == 0, result.output
    assert "3.00 (2.50 to" in result.stdout
    assert "less than the" in result.stdout
    assert "not judged at this horizon" in " ".join(result.stdout.split())
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_programs_get_all_columns(tmp_path):
    out = tmp_path / "out"
    result = run("dcm-3b", *SMALL, "--json", "--out", out)
    found = json.loads(result.stdout)
    assert found["rows"][0]["published"] == 3.0
    assert found["experiments"][0][0] == "dcm-3b"
    assert (out / "page" / "index.html").exists()
    assert run("dcm-3b", *SMALL, "--csv", "--out", out).stdout.startswith("claim,place,ours")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dcm-9"], "dcm-9"),
        (["dcm-3c"], "needs an ingested log"),
        (["all"], "give out=FOLDER"),
        (["all", "--out", "x"], "give one"),
        (["dcm-3b", "--scale", "2"], "scale=2: must be"),
        (["dcm-3c", "--log", "a", "--log", "b"], "one log"),
    ],
)
def test_refused(arguments, message):
    result = run(*arguments)
    assert isinstance(result.exception, SystemExit | LogevalError)
    assert message in result.output + str(result.exception)
