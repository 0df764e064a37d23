"""Progress on stderr: bars on a terminal, plain lines otherwise, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Self

from logeval.running.console import unguarded

if TYPE_CHECKING:
    import rich.progress

SILENT_SECONDS = 2.0  # work shorter than this prints no plain line
LINE_SECONDS = 5.0  # between two plain lines
heard: Callable[[], None] | None = None  # hears that kernels are compiled, once


def compiling() -> None:
    """A kernel is not on disk, and is compiled now."""
    global heard
    hears, heard = heard, None
    if hears:
        hears()


def say_compiling() -> None:
    """What a stage that is not quiet says of it."""
    text = "compiling kernels (once on this machine, up to a minute in all)"
    print(text, file=sys.stderr, flush=True)


class Progress:
    """How much is done, its speed and the time left; ``unit`` is "bytes" or what is counted.

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
        self.done, self._printed, self._start = 0.0, -1.0, 0.0
        self._display = display or _display(quiet)
        if self._display:
            self._task = self._display.add_task(title, start=False, total=total, said="")

    def __enter__(self) -> Self:
        if self._display:
            self._display.start()
        self._begin()
        return self

    def __exit__(self, error: object, *more: object) -> None:
        if self._display:
            self._display.stop()
        elif error is None:
            self.end()

    def _begin(self) -> None:
        self._start = self._last_line = time.monotonic()
        if self._display:
            self._display.start_task(self._task)

    def advance(self, amount: float) -> None:
        """``amount`` more is done; the clock starts now if it did not before."""
        if not self._start:
            self._begin()
        self.done += amount
        if self._display:
            self._display.update(self._task, advance=amount, said=self._said()[0])
        elif time.monotonic() - self._last_line > LINE_SECONDS:
            self._line()

    def end(self) -> None:
        """Say what is not said yet, of work that took a while."""
        took = time.monotonic() - self._start
        if not self._display and took > SILENT_SECONDS and self._printed != self.done:
            self._line()

    def _line(self) -> None:
        self._last_line, self._printed = time.monotonic(), self.done
        if not self.quiet:
            print(f"{self.title}: {', '.join(self._said())}", file=sys.stderr, flush=True)

    def _said(self) -> list[str]:
        scale, unit = 1.0, self.unit
        if unit == "bytes":
            scale, unit = (1e6, "MB") if max(self.done, self.total or 0) > 1e7 else (1e3, "kB")
        speed = self.done / max(time.monotonic() - self._start, 1e-9)
        said = [f"{self.done / scale:,.0f} {unit}, {_rate(speed / scale)} {unit}/s"]
        if self.total:
            left = max(self.total - self.done, 0) / max(speed, 1e-9)
            said += [f"{min(self.done / self.total, 1):.0%}", f"{left:,.0f} s left"]
        return said


def _rate(speed: float) -> str:
    return f"{speed:,.0f}" if speed >= 9.95 else f"{speed:.2g}"


@contextmanager
def progress_of(
    totals: Mapping[str, float], unit: str = "items", quiet: bool = False
) -> Iterator[Callable[[str, float], None]]:
    """A function that hears how much more is done of a title: several bars in one display."""
    display = _display(quiet)
    bars = {title: Progress(title, n, unit, quiet, display) for title, n in totals.items()}

    def advance(title: str, amount: float) -> None:
        bar = bars[title]
        bar.advance(amount)
        if bar.total and bar.done >= bar.total:
            bar.end()

    with display or nullcontext():
        yield advance


def _display(quiet: bool) -> rich.progress.Progress | None:
    """The display of bars; None without a terminal."""
    if quiet or not sys.stderr.isatty():
        return None
    from rich import console, progress

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[said]}", markup=False),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=console.Console(file=unguarded(sys.stderr)),
    )
