"""DuckDB as we use it: in memory, and quiet. Its own progress bar would go to stdout, into JSON."""

from __future__ import annotations

from typing import Any

import duckdb


def connect(settings: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """A connection with these settings, whoever closes it."""
    db = duckdb.connect(config=settings)
    # in a notebook without ipywidgets it is off, and DuckDB refuses to set it to anything
    if db.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        db.execute("SET enable_progress_bar = false")
    return db
