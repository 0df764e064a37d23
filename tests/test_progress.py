"""Progress on stderr."""

import io
import sys

from logeval.running import console
from logeval.running.progress import Progress, _rate


def test_plain_progress_has_speed_and_time_left_and_quiet_has_none(monkeypatch):
    for quiet in (False, True):
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        monkeypatch.setattr("logeval.running.progress.LINE_SECONDS", 0)
        with Progress("ingest", total=4e7, unit="bytes", quiet=quiet) as progress:
            progress.advance(1e7)
        text = sys.stderr.getvalue()
        assert ("ingest: 10 MB" in text and "25%" in text and "s left" in text) != quiet
        assert bool(text) != quiet


def test_a_slow_speed_is_not_nothing():
    assert [_rate(x) for x in (0.04, 0.75, 9.94, 9.96, 1234.6)] == [
        "0.04", "0.75", "9.9", "10", "1,235",
    ]  # fmt: skip


def test_a_bar_moves_the_cursor_and_names_do_not(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    text = Terminal()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, text)
    monkeypatch.setenv("TERM", "xterm")
    console.guard()
    with Progress("ingest", total=10, unit="rows") as progress:
        progress.advance(10)
    bar = text.getvalue()
    assert "\x1b[" in bar
    assert r"\x1b[" not in bar
    print("a\x1b[31m\x9b\rb", file=sys.stderr)
    assert text.getvalue().removeprefix(bar) == "a\\x1b[31m\\x9b\\rb\n"
