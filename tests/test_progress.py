"""Progress on stderr."""

import io
import sys

from logeval.progress import Progress


def test_plain_progress_has_speed_and_time_left_and_quiet_has_none(monkeypatch):
    for quiet in (False, True):
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        monkeypatch.setattr("logeval.progress.LINE_SECONDS", 0)
        with Progress("ingest", total=4e7, unit="bytes", quiet=quiet) as progress:
            progress.advance(1e7)
        text = sys.stderr.getvalue()
        assert ("ingest: 10 MB" in text and "25%" in text and "s left" in text) != quiet
        assert bool(text) != quiet
