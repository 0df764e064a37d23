"""tests/golden/tiny.*: one log of 1,800 SERPs in both formats."""

from pathlib import Path

import logeval
from tests.log.slow_parser import parse

GOLDEN = Path(__file__).parent.parent / "golden"


def test_both_formats_of_the_golden_log_give_the_same_serps(tmp_path):
    tables = {}
    for name in ("relpred", "personalized"):
        log = logeval.ingest(GOLDEN / f"tiny.{name}.tsv", tmp_path / name, quiet=True)
        tables[name] = log.serps(columns=["session_id", "query_id", "items", "clicks"])
        expected, counts = parse((GOLDEN / f"tiny.{name}.tsv").read_bytes(), f"yandex-{name}")
        assert log.serps().to_pylist() == expected
        assert {k: v for k, v in log.counts.items() if v} == {k: v for k, v in counts.items() if v}
    assert tables["relpred"].num_rows == 1800
    assert tables["relpred"].equals(tables["personalized"])
