"""Run independent tasks on an executor: in this process, in local ones, or on a Dask cluster.

Results come back in the order in which they are ready, so nothing may depend on it. Progress
within a task is heard from this process and from local ones; from a cluster, task by task.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from typing import Any

from logeval.errors import LogevalError
from logeval.progress import Bars

Tick = Callable[[float], None]
CONNECT_SECONDS = 10  # to reach a scheduler
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
) -> Iterator[Any]:
    """The results of ``function(task.argument, tick)`` as they become ready."""
    totals: dict[str, float] = {}
    for task in tasks:
        totals[task.title] = totals.get(task.title, 0.0) + task.size
    with Bars(totals, unit, quiet) as bars:
        if scheduler is not None:
            yield from _on_cluster(function, tasks, scheduler, bars)
        elif workers == 1 or len(tasks) == 1:
            for task in tasks:
                yield function(task.argument, partial(bars.advance, task.title))
        elif tasks:
            yield from _in_processes(function, tasks, min(workers, len(tasks)), bars)


def _in_processes(
    function: Callable[[Any, Tick], Any], tasks: Sequence[Task], workers: int, bars: Bars
) -> Iterator[Any]:
    context = multiprocessing.get_context("spawn")
    titles = list(dict.fromkeys(task.title for task in tasks))
    done = context.Array("d", len(titles))
    seen = [0.0] * len(titles)
    with ProcessPoolExecutor(workers, context, _share, (done,)) as pool:
        futures = {
            pool.submit(_call, function, task.argument, titles.index(task.title)) for task in tasks
        }
        try:
            while futures:
                ready, futures = wait(futures, POLL_SECONDS, FIRST_COMPLETED)
                for i, title in enumerate(titles):
                    amount = done[i] - seen[i]
                    if amount:
                        seen[i] += amount
                        bars.advance(title, amount)
                yield from (future.result() for future in ready)
        except BrokenProcessPool:
            raise LogevalError(
                "a worker process died (out of memory?); the same command goes on where it stopped"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_done: Any = None  # in a worker process: the shared amounts of work done, by title


def _share(done: Any) -> None:
    global _done
    _done = done


def _call(function: Callable[[Any, Tick], Any], argument: Any, i: int) -> Any:
    def tick(amount: float) -> None:
        with _done.get_lock():
            _done[i] += amount

    return function(argument, tick)


def _on_cluster(
    function: Callable[[Any, Tick], Any], tasks: Sequence[Task], scheduler: str, bars: Bars
) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise LogevalError("a scheduler needs Dask: pip install 'logeval[cluster]'") from None
    try:
        client = Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError):
        raise LogevalError(
            f"there is no Dask scheduler at {scheduler}; start one with: dask scheduler"
        ) from None
    with client, client.get_executor(pure=False) as pool:
        by_future = _submit(pool, function, tasks)
        pending = set(by_future)
        while pending:
            ready, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in ready:
                bars.advance(by_future[future].title, by_future[future].size)
                yield future.result()


def _submit(
    pool: Executor, function: Callable[[Any, Tick], Any], tasks: Sequence[Task]
) -> dict[Future[Any], Task]:
    return {pool.submit(function, task.argument, _silent): task for task in tasks}


def _silent(amount: float) -> None:
    """Progress is not heard from here."""
