"""Progress on stderr: a bar on a terminal, plain lines otherwise, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Self

from logeval.running.compiling import spent
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
        self,
        title: str,
        total: float | None = None,
        unit: str = "items",
        quiet: bool = False,
        display: rich.progress.Progress | None = None,
    ) -> None:
        self.title, self.total, self.unit, self.quiet = title, total, unit, quiet
        self.done = 0.0
        self._printed = -1.0  # what was done at the last plain line
        self._display = display or _display(unit, quiet)
        if self._display:
            self._task = self._display.add_task(title, total=total, start=False)

    def __enter__(self) -> Self:
        if self._display:
            self._display.start()
        self.begin()
        return self

    def __exit__(self, error: object, *more: object) -> None:
        if self._display:
            self._display.stop()
        elif error is None:
            self.end()

    def begin(self) -> None:
        """Start the clock, which stands still while kernels are compiled."""
        self._start = self._last_line = time.monotonic()
        self._compiled = spent()
        if self._display:
            self._display.start_task(self._task)

    def advance(self, amount: float) -> None:
        """``amount`` more is done."""
        self.done += amount
        if spent() > self._compiled:
            self._start, self._compiled = self._start + spent() - self._compiled, spent()
            if self._display:
                self._display.reset(self._task)
                self._display.update(self._task, completed=self.done - amount)
        if self._display:
            self._display.advance(self._task, amount)
        elif time.monotonic() - self._last_line > LINE_SECONDS:
            self._line()

    def end(self) -> None:
        """Say what is not said yet."""
        took = time.monotonic() - self._start
        if self._display is None and took > SILENT_SECONDS and self._printed != self.done:
            self._line()

    def _line(self) -> None:
        if self.quiet:
            return
        self._last_line, self._printed = time.monotonic(), self.done
        speed = self.done / max(self._last_line - self._start, 1e-9)
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


@contextmanager
def progress_of(
    totals: Mapping[str, float], unit: str = "items", quiet: bool = False
) -> Iterator[Callable[[str, float], None]]:
    """A function that hears how much more is done of a title: several bars in one display.

    The clock of a title starts when it is first heard of.
    """
    display = _display(unit, quiet)
    bars = {title: Progress(title, n, unit, quiet, display) for title, n in totals.items()}

    def advance(title: str, amount: float) -> None:
        bar = bars[title]
        if not bar.done:
            bar.begin()
        bar.advance(amount)
        if bar.total and bar.done >= bar.total:
            bar.end()

    with display or nullcontext():
        yield advance


def _display(unit: str, quiet: bool) -> rich.progress.Progress | None:
    """The display of bars; None without a terminal."""
    if quiet or not sys.stderr.isatty():
        return None
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    class Speed(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{_rate(speed)} {unit}/s" if speed else "")

    amount: list[progress.ProgressColumn] = [progress.MofNCompleteColumn(), Speed()]
    if unit == "bytes":
        amount = [progress.DownloadColumn(), progress.TransferSpeedColumn()]
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        *amount,
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=Console(file=unguarded(sys.stderr)),
    )
