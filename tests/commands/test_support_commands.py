"""describe, as people and programs read them."""

import json

import pytest
from typer.testing import CliRunner

from logeval.cli import app
from logeval.synthetic.generate import generate


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("support")
    asked = {"format": "table", "sessions": 2500, "queries": 3, "randomised": 0.2}
    generate(folder / "log.csv", **asked, quiet=True)
    run("ingest", folder / "log.csv", "--out", folder / "log", "-q")
    run("fit-models", folder / "log", "-m", "dcm", "--out", folder / "m", "-q", "--no-verdict")
    return folder


def test_describe_ends_with_what_the_log_supports(folder):
    text = " ".join(run("describe", folder / "log", "--details").split())
    assert "can carry a model: DCM 3" in text
    assert "Examination relative to the first rank, from swaps" in text
    found = json.loads(run("describe", folder / "log", "--json"))["support"]
    assert [row["query"] for row in found["queries"]] == ["1", "2", "3"]
    assert {"share_pbm", "cut_clicks", "serps_to_halve"} <= set(found["queries"][0])
    assert found["examination"][0]["examination"] == 1.0
    assert found["facts"][0]["code"] == "carries"


def test_a_log_without_clicks_has_no_support_and_no_error(tmp_path):
    (tmp_path / "log.csv").write_text("qid,urls,clicks\n" + "7,11 12,0 0\n" * 5)
    run("ingest", tmp_path / "log.csv", "--out", tmp_path / "log", "-q")
    text = " ".join(run("describe", tmp_path / "log").split())
    assert "can carry a model: DCM 0, DBN 0, PBM 0 and UBM 0" in text


@pytest.mark.parametrize("rows", ["7,11,1\n" * 5, "7,11 11,1 0\n" * 5, "7,11 12,,1\n"])
def test_odd_logs_are_described(tmp_path, rows):
    """One result a page; an item twice on a page; a page of tests only."""
    head = "qid,urls,clicks\n" if ",," not in rows else "qid,urls,clicks,test\n"
    (tmp_path / "log.csv").write_text(head + rows.replace(",,", ",0 0,"))
    run("ingest", tmp_path / "log.csv", "--out", tmp_path / "log", "-q", "--format", "table")
    assert run("describe", tmp_path / "log")
