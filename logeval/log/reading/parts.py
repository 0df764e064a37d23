"""Tables of SERPs -> files of the serps table, made and written side by side.

Kernels, Arrow and the Parquet writer release the interpreter lock, so the workers are threads:
one job becomes one file, whatever the number of workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from logeval.log.formats.format import Job, Read
from logeval.storage import schemas, tables

T = TypeVar("T")


def write_parts(
    jobs: Iterable[Job | Read], next_part: Callable[[], Path], workers: int
) -> Generator[Read, None, None]:
    """Write the table of each job to the next part, and say in their order what was read.

    Closing the generator waits for what is being written.
    """
    calls = (
        partial(_itself, job) if isinstance(job, Read) else partial(_write, job, next_part())
        for job in jobs
    )
    yield from in_order(calls, workers)


def in_order(calls: Iterable[Callable[[], T]], workers: int) -> Generator[T, None, None]:
    """What calls return, in their order; they are made side by side, few ahead of time."""
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[T]] = deque()
        for call in calls:
            waiting.append(pool.submit(call))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _itself(read: Read) -> Read:
    return read


def _write(job: Job, path: Path) -> Read:
    table, read = job()
    write = (
        tables.write_serps if table.schema.names == schemas.SERPS.names else tables.write_parquet
    )
    write(table, path)
    return read
