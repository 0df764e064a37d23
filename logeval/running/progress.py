"""Progress on stderr: a bar on a terminal, plain lines otherwise, nothing when quiet."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from logeval.running.terminal import unguarded

if TYPE_CHECKING:
    import rich.progress

SILENT_SECONDS = 2.0  # work shorter than this prints no plain line
LINE_SECONDS = 5.0  # between two plain lines


class Progress:
    """A progress bar with speed and time left; ``unit`` is "bytes" or what is counted.

    >>> with Progress("ingest", total=100, unit="bytes", quiet=True) as progress:
    ...     progress.advance(40)
    """

    def __init__(
        self, title: str, total: float | None = None, unit: str = "items", quiet: bool = False
    ) -> None:
        self.title, self.total, self.unit, self.quiet = title, total, unit, quiet
        self.done = 0.0
        self._printed = -1.0  # what was done at the last plain line
        self._bar = None
        if not quiet and sys.stderr.isatty():
            self._bar = _bar(unit)
            self._task = self._bar.add_task(title, total=total)

    def __enter__(self) -> Self:
        self._start = self._last_line = time.monotonic()
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()
        elif error is None and self._seconds() > SILENT_SECONDS and self._printed != self.done:
            self._line()

    def advance(self, amount: float) -> None:
        """``amount`` more is done."""
        self.done += amount
        if self._bar:
            self._bar.advance(self._task, amount)
        elif time.monotonic() - self._last_line > LINE_SECONDS:
            self._line()

    def _seconds(self) -> float:
        return time.monotonic() - self._start

    def _line(self) -> None:
        if self.quiet:
            return
        self._last_line, self._printed = time.monotonic(), self.done
        speed = self.done / max(self._seconds(), 1e-9)
        scale, unit = 1.0, self.unit
        if unit == "bytes":
            scale, unit = (1e6, "MB") if max(self.done, self.total or 0) > 1e7 else (1e3, "kB")
        text = f"{self.title}: {self.done / scale:,.0f} {unit}, {_rate(speed / scale)} {unit}/s"
        if self.total:
            left = max(self.total - self.done, 0) / max(speed, 1e-9)
            text += f", {min(self.done / self.total, 1):.0%}, {left:,.0f} s left"
        print(text, file=sys.stderr, flush=True)


def _rate(speed: float) -> str:
    return f"{speed:,.0f}" if speed >= 9.95 else f"{speed:.2g}"


class Bars:
    """One bar per title in a common display, for work that advances on several at once."""

    def __init__(self, totals: dict[str, float], unit: str = "items", quiet: bool = False) -> None:
        self._plain = {
            title: Progress(title, total, unit, quiet=quiet or sys.stderr.isatty())
            for title, total in totals.items()
        }
        self._bar = _bar(unit) if not quiet and sys.stderr.isatty() else None
        if self._bar:
            self._tasks = {
                t: self._bar.add_task(t, total=n, start=False) for t, n in totals.items()
            }

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()

    def advance(self, title: str, amount: float) -> None:
        """``amount`` more is done of ``title``; its clock starts at the first call."""
        if self._bar:
            self._bar.start_task(self._tasks[title])
            self._bar.advance(self._tasks[title], amount)
            return
        plain = self._plain[title]
        if not plain.done:
            plain.__enter__()
        plain.advance(amount)
        if plain.total and plain.done >= plain.total:
            plain.__exit__(None, None, None)


def _bar(unit: str) -> rich.progress.Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{_rate(speed)} {unit}/s" if speed else "")

    amount = (
        [DownloadColumn(), TransferSpeedColumn()]
        if unit == "bytes"
        else [MofNCompleteColumn(), Speed()]
    )
    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        *amount,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(file=unguarded(sys.stderr)),
    )
