"""Run independent tasks on an executor: in this process, in local ones, or on a Dask cluster.

Results come back in the order in which they are ready, so nothing may depend on it. Progress
within a task is heard from this process and from local ones; from a cluster, task by task.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    ProcessPoolExecutor,
    as_completed,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from logeval.errors import LogevalError
from logeval.running import progress
from logeval.running.progress import progress_of

Tick = Callable[[float], None]
Advance = Callable[[str, float], None]  # of a title
CONNECT_SECONDS = 10  # to reach a scheduler
CLOSE_SECONDS = 2  # to take leave of it
POLL_SECONDS = 0.5  # between two looks at the progress of local processes


@dataclass(frozen=True)
class Task:
    """One call of the function, counted under ``title`` with its ``size``."""

    title: str
    size: float
    argument: Any


def run_tasks(
    function: Callable[[Any, Tick], Any],
    tasks: Sequence[Task],
    *,
    workers: int = 1,
    scheduler: str | None = None,
    unit: str = "items",
    quiet: bool = False,
) -> Generator[Any, None, None]:
    """The results of ``function(task.argument, tick)`` as they become ready.

    Closing the generator, an error and Ctrl-C end the workers at once.
    """
    totals: dict[str, float] = {}
    for task in tasks:
        totals[task.title] = totals.get(task.title, 0.0) + task.size
    with progress_of(totals, unit, quiet) as advance:
        if scheduler is not None:
            yield from _on_cluster(function, tasks, scheduler, advance)
        elif workers == 1 or len(tasks) == 1:
            for task in tasks:
                yield function(task.argument, partial(advance, task.title))
        elif tasks:
            yield from _in_processes(function, tasks, min(workers, len(tasks)), advance)


def _in_processes(
    function: Callable[[Any, Tick], Any], tasks: Sequence[Task], workers: int, advance: Advance
) -> Iterator[Any]:
    context = multiprocessing.get_context("spawn")
    # by task: one writer each, so it needs no lock; at the end, whether a worker compiles kernels
    done = context.RawArray("d", len(tasks) + 1)
    seen = [0.0] * len(tasks)
    until_closed, alive = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, _start_worker, (done, until_closed))
    try:
        with _blocked(signal.SIGINT):  # in the processes that start here, for good
            futures = {pool.submit(_call, function, t.argument, i) for i, t in enumerate(tasks)}
        while futures:
            ready, futures = wait(futures, POLL_SECONDS, FIRST_COMPLETED)
            if done[-1]:
                progress.compiling()
            for i, (before, now) in enumerate(zip(seen, done[:-1], strict=True)):
                if now != before:
                    seen[i] = now
                    advance(tasks[i].title, now - before)
            yield from (future.result() for future in ready)
    except BrokenProcessPool:
        raise LogevalError(
            "a worker process died (out of memory?); the same command goes on where it stopped, "
            "with fewer workers if memory is short"
        ) from None
    finally:
        alive.close()  # the workers end, in the middle of a task if need be
        until_closed.close()
        pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _blocked(signum: signal.Signals) -> Iterator[None]:
    """Hear of a signal only afterwards, if it comes meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows: see _start_worker
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signum])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_done: Any = None  # in a worker process: the shared amounts of work done, by task


def _start_worker(done: Any, until_closed: Connection) -> None:
    """A worker ends with the process that started it, however that one ends."""
    global _done
    _done = done
    if not hasattr(signal, "pthread_sigmask"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    progress.heard = partial(_done.__setitem__, -1, 1.0)
    threading.Thread(target=_end_with_parent, args=(until_closed,), daemon=True).start()


def _end_with_parent(until_closed: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        until_closed.recv_bytes()  # nothing is ever sent: this ends when the other end is closed
    os._exit(1)


def _call(function: Callable[[Any, Tick], Any], argument: Any, i: int) -> Any:
    def tick(amount: float) -> None:
        _done[i] += amount

    return function(argument, tick)


def _on_cluster(
    function: Callable[[Any, Tick], Any], tasks: Sequence[Task], scheduler: str, advance: Advance
) -> Iterator[Any]:
    try:
        from distributed import Client, KilledWorker
        from distributed.comm.core import CommClosedError
    except ImportError:
        raise LogevalError("a scheduler needs Dask: pip install 'logeval[cluster]'") from None
    try:
        gc.disable()  # else an older client, collected while this one starts, may wait for ever
        client = Client(scheduler, timeout=CONNECT_SECONDS)
    except TypeError:  # tls:// without certificates
        raise LogevalError(
            f"{scheduler}: needs certificates; give them to Dask (docs/cluster.md)"
        ) from None
    except (OSError, TimeoutError, ValueError):
        sure = ", or it has other certificates" if scheduler.startswith("tls://") else ""
        raise LogevalError(
            f"there is no Dask scheduler at {scheduler}{sure}; start one with: dask scheduler"
        ) from None
    finally:
        gc.enable()
    logger = logging.getLogger("distributed.client")
    level = logger.level
    try:
        logger.setLevel(logging.CRITICAL)  # it would log a traceback where we say what happened
        if not client.nthreads():
            text = f"{scheduler} has no workers; waiting for: dask worker {scheduler}"
            print(f"logeval: {text}", file=sys.stderr, flush=True)
        pool = client.get_executor(pure=False)
        by_future = {pool.submit(function, t.argument, _silent): t for t in tasks}
        for future in as_completed(by_future):
            yield future.result()
            advance(by_future[future].title, by_future[future].size)
    except KilledWorker as error:
        raise LogevalError(
            f"several workers of {scheduler} died over the same unit (out of memory?); look into "
            f"their logs ({error}); the same command again does what is left"
        ) from None
    except (CancelledError, CommClosedError, OSError):
        raise LogevalError(
            f"the Dask scheduler at {scheduler} went away; start it again, and the same command "
            "does what is left"
        ) from None
    finally:
        client.close(timeout=CLOSE_SECONDS)
        logger.setLevel(level)


def _silent(amount: float) -> None:
    """Progress is not heard from here."""
