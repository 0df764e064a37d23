"""DuckDB as we use it: in memory, and quiet. Its own progress bar would go to stdout, into JSON."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import duckdb


def connect(settings: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """A connection with these settings, whoever closes it."""
    db = duckdb.connect(config=settings)
    with suppress(duckdb.InvalidInputException):  # in a notebook without ipywidgets: there is none
        db.execute("SET enable_progress_bar = false")
    return db
