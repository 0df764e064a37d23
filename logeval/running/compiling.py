"""Kernels that are being compiled: it is said, once, and left out of speeds and times left.

The first command on a machine compiles the kernels that it needs, which takes up to a minute in
which nothing else happens; later ones load them. ``spent`` is the time of this process in which any
of its threads compiled, or loaded.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

LINE_SECONDS = 5.0  # between two lines


class _Clock:
    """How long one thread or another has been compiling."""

    def __init__(self) -> None:
        self._lock, self._own = threading.Lock(), threading.local()
        self._threads, self._since, self._spent = 0, 0.0, 0.0
        self._collects = True

    def spent(self) -> float:
        """Seconds so far."""
        with self._lock:
            now = time.monotonic() - self._since if self._threads else 0.0
            return self._spent + now

    @contextmanager
    def running(self) -> Iterator[None]:
        """While a thread compiles; a kernel may need others, which count once.

        Looking for garbage in all that numba keeps takes a tenth of the time, and finds little.
        """
        inner = getattr(self._own, "inside", False)
        if inner:
            yield
            return
        with self._lock:
            if not self._threads:
                self._since, self._collects = time.monotonic(), gc.isenabled()
                gc.disable()
            self._threads += 1
        self._own.inside = True
        try:
            yield
        finally:
            self._own.inside = False
            with self._lock:
                self._threads -= 1
                if not self._threads:
                    self._spent += time.monotonic() - self._since
                    if self._collects:
                        gc.enable()


_clock = _Clock()
spent = _clock.spent
Hears = Callable[[str], None]  # where a kernel is that is compiled
_listeners: list[Hears] = []


def timed(kernel: Any) -> Any:
    """A kernel of numba's whose compilations are timed."""
    compile_ = kernel.compile

    @wraps(compile_)
    def call(signature: Any) -> Any:
        with _clock.running():
            return compile_(signature)

    kernel.compile = call
    return kernel


def missing(function: Callable[..., Any]) -> None:
    """A kernel is not there, and is compiled now."""
    for hears in _listeners:
        hears(function.__module__.removeprefix("logeval."))


def hear(hears: Hears) -> None:
    """Have a function hear of every kernel that is compiled from now on."""
    _listeners.append(hears)


@contextmanager
def said(quiet: bool = False) -> Iterator[None]:
    """Say on stderr what is compiled meanwhile: at once, and then every few seconds."""
    last, count, start = -LINE_SECONDS, 0, 0.0

    def say(where: str) -> None:
        nonlocal last, count, start
        count, now = count + 1, time.monotonic()
        start = start or now
        if now - last <= LINE_SECONDS:
            return
        last = now
        how = "once on this machine, up to a minute in all"
        how = how if count == 1 else f"{count} kernels so far, {now - start:,.0f} s"
        print(f"compiling {where} ({how})", file=sys.stderr, flush=True)

    if quiet:
        yield
        return
    hear(say)
    try:
        yield
    finally:
        _listeners.remove(say)
