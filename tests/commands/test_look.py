"""inspect, models, completion, --debug: looking at what is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.clicks.inspection import inspect
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import three_queries


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("look")
    (folder / "log").mkdir()
    three_queries(folder / "log")
    logeval.fit_models(folder / "log", ["dctr", "pbm"], out=folder / "m", quiet=True)
    return folder


def run(*arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines()), default=0) <= 80 or "{" in done.stdout
    return done.stdout


def test_inspect_shows_a_parameter_without_an_interval(folder, tmp_path):
    """Clicks do not tell the termination of a DCM at the last position."""
    logeval.fit_models(folder / "log", "dcm", out=tmp_path / "dcm", quiet=True)
    found = inspect(logeval.load(tmp_path / "dcm"), 1).positions.iloc[-1]
    assert np.isnan(found["termination_low"])
    shown = run("inspect", tmp_path / "dcm", "--query", 1)
    cells = [line.split() for line in shown.splitlines()]
    assert [f"{found['position']:.0f}", f"{found['termination']:.4f}"] in cells


def test_inspect_counts_what_the_log_holds(folder):
    log = logeval.load(folder / "log")
    found = inspect(logeval.load(folder / "m"), 1, model="pbm")
    serps = log.serps(["items", "clicks"], queries=1).to_pylist()
    for row in found.items.itertuples():
        places = [s["items"].index(row.item) for s in serps if row.item in s["items"]]
        clicks = [
            s["clicks"][s["items"].index(row.item)] > 0 for s in serps if row.item in s["items"]
        ]
        assert row.shown == len(places)
        assert row.clicked == sum(clicks)
        assert row.attraction_low <= row.attraction <= row.attraction_high
    model = logeval.load(folder / "m")["PBM", 1]
    assert found.best == model.best_list().tolist()
    in_order = found.items[found.items["best"].notna()].sort_values("best")["item"]
    assert in_order.tolist() == found.best
    assert found.lists["shown"].sum() == len(serps) == found.serps
    for row in found.lists.head(3).itertuples():
        own = model.expected_reward(model.rows_of(row.list)[None])[0]
        assert row.share == pytest.approx(own / found.value)
        assert row.share <= 1.0 + 1e-12
    assert found.positions["examination"].tolist() == pytest.approx(model.e.tolist())


def test_inspect_on_the_terminal(folder):
    text = run("inspect", folder / "m", "--query", 1, "--model", "pbm")
    model = logeval.load(folder / "m")["PBM", 1]
    assert f"Best list: {' '.join(map(str, model.best_list()))}" in text
    data = json.loads(run("inspect", folder / "m", "--query", 1, "--json"))
    assert data["model"] == "DCTR"
    assert {row["item"] for row in data["items"]} == set(model.items.tolist())


def test_models_are_listed_with_their_methods(folder):
    text = run("models")
    rows = json.loads(run("models", "--json"))["rows"]
    assert [row["model"] for row in rows] == [*MODELS, "Mixture"]
    assert all(row["model"] in text and row["about"] for row in rows)
    dcm = rows[list(MODELS).index("DCM")]
    assert dcm["methods"].split(", ")[0] == MODELS["DCM"].methods[0]
    assert "last_termination" in dcm["options"]


def test_the_shell_completes_names_of_policies():
    code = "from logeval.cli import main; main()"
    words = {
        "_LOGEVAL_COMPLETE": "complete_bash",
        "COMP_WORDS": "logeval evaluate --policy dcmK",
        "COMP_CWORD": "3",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | words, capture_output=True, text=True
    )
    assert done.stdout.split() == ["dcmKL-UCB"]


def test_debug_shows_where_an_error_was_raised():
    wrong = ["evaluate", "--problem", "B_LB(L=5,K=2,p=0.5,gap=0.4)", "--policy", "Nobody"]
    assert "Traceback" not in CliRunner().invoke(app, wrong).output
    for flag in ("--debug", "--verbose"):
        assert "Traceback" in CliRunner().invoke(app, [flag, *wrong]).output
