"""Connections to DuckDB are ours."""

from pathlib import Path

import logeval
from logeval.storage import database


def test_no_bar_of_another_program_gets_into_what_we_print():
    with database.connect({}) as db:
        assert db.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]
    library = Path(logeval.__file__).parent
    direct = [p.name for p in library.rglob("*.py") if "duckdb.connect(" in p.read_text()]
    assert direct == ["database.py"]
