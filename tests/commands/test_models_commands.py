"""fit-models, plot, inspect --json, import-models, score, compare-models."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from logeval.cli import app
from logeval.errors import LogevalError
from logeval.storage import tables
from tests.clicks.examples import three_queries


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return three_queries(tmp_path_factory.mktemp("log"))


@pytest.fixture
def run():
    def invoke(*arguments):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        if result.exit_code:
            raise LogevalError(result.stderr)
        return result

    return invoke


def test_the_commands(run, log, tmp_path):
    out = tmp_path / "m"
    asked = ["-m", "dcm", "-m", "pbm", "--out", out, "--holdout", "0.2", "-q", "--details"]
    text = " ".join(run("fit-models", log, *asked).stdout.split())
    assert "whether a click at the last position ended" in text
    assert "PBM: 3 of 3 queries can carry it" in text
    for what, model in (("termination", "dcm"), ("examination", "pbm")):
        figure = tmp_path / f"{what}.png"
        run("plot", out, "--what", what, "--model", model, "--out", figure)
        assert figure.read_bytes().startswith(b"\x89PNG")
    (tmp_path / "m.json").write_text(run("inspect", out, "--json").stdout)
    result = run("import-models", tmp_path / "m.json", "--out", tmp_path / "m2")
    assert "DCM (3 queries), PBM (3 queries)" in result.stdout
    result = run("score", tmp_path / "m2", log, "--json")
    scored = json.loads(result.stdout)
    assert {row["model"] for row in scored["quality"]} == {"DCM", "PBM"}
    assert scored["coverage"][0]["unseen_items"] == 0
    result = run("compare-models", log, "-m", "dcm", "-m", "cm", "--out", tmp_path / "q", "-q")
    assert "DCM" in result.stdout
    assert (tmp_path / "q" / "perplexity.png").exists()
    with pytest.raises(LogevalError, match="there is no CM here"):
        run("plot", out, "--model", "cm", "--out", tmp_path / "x.png")
    with pytest.raises(LogevalError, match="has no such parameter"):
        run("plot", out, "--what", "termination", "--model", "pbm", "--out", tmp_path / "x.png")


def test_options_of_a_model_are_given_by_name(run, log, tmp_path):
    out = tmp_path / "m"
    run("fit-models", log, "-m", "dcm", "--out", out, "-q", "--option", "last-termination=raw")
    assert tables.read_manifest(out)["arguments"]["options"] == {"last_termination": "raw"}
    with pytest.raises(LogevalError, match="write name=value"):
        run("fit-models", log, "-m", "dcm", "--out", out, "--option", "raw")
    with pytest.raises(LogevalError, match="an option of DCM, not of PBM"):
        run("fit-models", log, "-m", "pbm", "--out", out, "--option", "last_termination=raw")
