"""Five layouts, each from its file to a report with names in it by one command, `logeval run`."""

import pytest
from typer.testing import CliRunner

from logeval.cli import app
from tests.log import written

PAGES = written.pages(300, seed=3)
UBI = written.ubi(PAGES)
FILES = {
    "long": [written.long_csv(PAGES)],
    "table": [written.ndjson_of(written.page_rows(PAGES))],
    "ubi": list(UBI),
    "expedia": [written.expedia(PAGES)],
    "counts": [written.csv_of(written.counted(PAGES))],
}
RECIPE = """
out = "out"
[ingest]
logs = {logs}
[fit-models]
models = ["pbm"]
draws = 0
top_queries = 2
[evaluate]
policies = ["Random"]
horizon = 20
runs = 1
positions = 2
[report]
"""


@pytest.mark.parametrize("name", FILES)
def test_from_file_to_report(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    logs = []
    for i, content in enumerate(FILES[name]):
        logs.append(f"log-{i}")
        (tmp_path / logs[-1]).write_bytes(content)
    (tmp_path / "recipe.toml").write_text(RECIPE.format(logs=logs))
    ended = CliRunner().invoke(app, ["run", "recipe.toml"])
    assert ended.exit_code == 0, ended.output
    text = (tmp_path / "out" / "report" / "index.html").read_text()
    assert "running shoes, no. 0" in text
    assert "query 0" not in text
