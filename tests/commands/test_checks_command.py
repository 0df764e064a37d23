"""check-models on a generated log, from raw lines to figures."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from logeval import generate, ingest
from logeval.cli import app
from logeval.clicks.fit import fit_models
from logeval.clicks.quality.deviations import CHECKS
from logeval.clicks.quality.value import LEVELS
from logeval.storage.tables import path_of


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A generated log, its truth, and models fitted to a part of it."""
    folder = tmp_path_factory.mktemp("generated")
    raw = folder / "log.tsv.gz"
    truth = generate(raw, sessions=1200, queries=4, model="PBM", seed=3, quiet=True)
    ingest(raw, out=folder / "log", quiet=True)
    fit_models(
        folder / "log", ["PBM", "CM"], holdout=0.3, out=folder / "models", seed=3, quiet=True
    )
    return folder, truth


@pytest.fixture
def run():
    def invoke(*arguments):
        result = CliRunner().invoke(app, ["check-models", *(str(a) for a in arguments)])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


def test_json_has_a_row_per_model_check_and_query_and_the_truth(run, folders, tmp_path):
    folder, truth = folders
    given = [folder / "models", folder / "log", "--simulations", 80, "--truth", truth, "-q"]
    told = json.loads(run(*given, "--json", "--out", tmp_path / "out").stdout)
    overall = [row for row in told["checks"] if row["query"] is None]
    assert [row["check"] for row in overall] == [*CHECKS, *CHECKS, *["value"] * 2 * len(LEVELS)]
    assert {fact.get("about") for fact in told["facts"]} >= {"CM", "PBM"}
    beside = {(row["model"], row["parameter"]): row for row in told["truth"]}
    assert 0 < beside["PBM", "attraction"]["coverage"] <= 1
    assert beside["CM", "best list"]["regret"] >= 0
    assert path_of(tmp_path / "out", "checks").exists()


def test_people_get_tables_words_and_figures(run, folders, tmp_path):
    folder, _ = folders
    figures = tmp_path / "figures"
    result = run(
        folder / "models", folder / "log", "--simulations", 80,
        "--figures", figures, "-q",
    )  # fmt: skip
    assert "How far off" in result.stdout
    assert "CM passes " in " ".join(result.stdout.split())
    assert (figures / "ctr-by-rank.png").read_bytes().startswith(b"\x89PNG")
