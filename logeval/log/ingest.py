"""raw log -> serps: read blocks, parse and write them side by side, count everything.

The kernel and the Parquet writer release the interpreter lock, so the workers are threads:
one block of whole sessions becomes one file, whatever the number of workers.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

from logeval import manifests, tables
from logeval.arrays import Bytes, Ints
from logeval.errors import LogevalError
from logeval.log import rejects
from logeval.log.blocks import BLOCK_SIZE, session_blocks
from logeval.log.formats import HEAD, TABLE, recognise
from logeval.log.inputs import MAX_WORKERS, check, identity, is_stream, total_bytes, why
from logeval.log.log import Log, load
from logeval.log.scan import COUNTS, FORMATS, PERSONALIZED, Scanner
from logeval.log.serps import serps_table
from logeval.log.source import Source
from logeval.log.tabular import read_batches
from logeval.progress import Progress
from logeval.work import Task, Tick, run_tasks

CHECK_BAD_AFTER = 1_000_000  # lines; before that, only at the end


@dataclass
class _Run:
    """What is common to all files of one ingest, and what was counted so far."""

    staging: Path
    max_bad: float
    workers: int
    block_size: int
    progress: Progress
    rejects_file: IO[str]
    counts: Counter[str] = field(default_factory=Counter)
    parts: int = 0
    inputs: list[tables.Manifest] = field(default_factory=list)
    stamps: list[tables.Manifest] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)

    def next_part(self) -> Path:
        path = self.staging / "serps" / f"part-{self.parts:05d}.parquet"
        self.parts += 1
        return path


@dataclass(frozen=True)
class _Parsed:
    """What is left of a block once its SERPs are written."""

    counts: Counter[str]
    rejects: Ints
    buf: Bytes


def ingest(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    format: str = "auto",
    max_bad: float = 0.01,
    workers: int | None = None,
    overwrite: bool = False,
    column_map: dict[str, str] | None = None,
    scheduler: str | None = None,
    quiet: bool = False,
    block_size: int = BLOCK_SIZE,
) -> Log:
    """Parse one or several log files into the Parquet dataset ``out``/serps.

    ``sources`` are plain, .gz or .zst files ("-" is standard input). Lines that are no records
    go to ``out``/rejects.tsv; over ``max_bad`` of them is an error, and no table is left.
    ``column_map`` ({"query_id": "qid"}) names the columns of a file in format ``table``.
    The same input and arguments again do nothing. With a ``scheduler`` the files are shared out to
    the workers of that Dask cluster, which must see ``sources`` and ``out`` under the same paths.
    """
    paths = [sources] if isinstance(sources, str | Path) else list(sources)
    out = Path(out)
    arguments = check(paths, format=format, max_bad=max_bad, column_map=column_map, workers=workers)
    n_workers = workers or min(os.cpu_count() or 1, MAX_WORKERS)
    format = arguments["format"]
    if (out / tables.MANIFEST).exists() and not overwrite:
        if not any(map(is_stream, paths)) and why(paths, out, **arguments) is None:
            _say(f"{out}: up to date, made from the same input; nothing to do", quiet)
            return load(out)
        raise LogevalError(f"{out}: holds another table already; choose another out, or overwrite")
    with tables.staged(out, overwrite) as staging:
        (staging / "serps").mkdir()
        with (
            open(staging / rejects.FILE, "w", errors="backslashreplace") as rejects_file,
            Progress("ingest", total_bytes(paths), "bytes", quiet) as progress,
        ):
            rejects_file.write(rejects.HEADER)
            run = _Run(staging, max_bad, n_workers, block_size, progress, rejects_file)
            run.stamps = [{} if is_stream(p) else manifests.stamp(Path(p)) for p in paths]
            if scheduler is not None:
                _ingest_on_cluster(run, paths, format, scheduler)
            else:
                for path in paths:
                    _ingest_file(run, path, format, column_map or {}, quiet)
        manifest = tables.manifest_of("ingest", arguments, run.inputs)
        manifest |= {"formats": run.formats, "counts": dict(run.counts), "stamps": run.stamps}
        tables.write_manifest(staging, manifest)
    log = load(out)
    for caution in log.cautions():
        print(f"warning: {out}: {caution}", file=sys.stderr)
    return log


def _ingest_file(
    run: _Run, path: str | Path, format: str, column_map: dict[str, str], quiet: bool
) -> None:
    _say(f"{path}: reading", quiet)
    source = Source(path, run.progress.advance)
    try:
        head = source.peek(HEAD)
        if not head:
            raise LogevalError(f"{source.name}: is empty; there is nothing to ingest")
        name = format if format != "auto" else recognise(head, source.name)
        if format == "auto":
            _say(f"{source.name}: recognised as {name}", quiet)
        run.formats.append(name)
        if (name == TABLE) != (run.formats[0] == TABLE):
            raise LogevalError(
                f"{source.name}: tables and logs cannot be ingested together; do it one by one"
            )
        if name == TABLE:
            _ingest_table(run, path, column_map)
        else:
            _ingest_log(run, source, FORMATS.index(name))
            run.inputs.append(source.identity())
    finally:
        source.close()


@dataclass(frozen=True)
class _FileTask:
    """A file of the log as a worker gets it, and the folder for what becomes of it."""

    number: int
    path: Path
    format: str
    folder: Path
    max_bad: float
    block_size: int


@dataclass(frozen=True)
class _FileDone:
    number: int
    parts: int
    counts: Counter[str]
    inputs: list[tables.Manifest]


def _ingest_on_cluster(run: _Run, paths: Sequence[str | Path], format: str, scheduler: str) -> None:
    """One file is one task; its parts are then numbered as if all had been read here."""
    if streams := [str(p) for p in paths if is_stream(p)]:
        raise LogevalError(f"{streams[0]}: a cluster cannot read a stream; give its file")
    tasks = []
    for i, path in enumerate(map(Path, paths)):
        name = format if format != "auto" else _format_of(path)
        if name == TABLE:
            raise LogevalError(f"{path}: tables are ingested here, not on a cluster; no scheduler")
        run.formats.append(name)
        folder = run.staging.resolve() / f"file-{i}"
        task = _FileTask(i, path.resolve(), name, folder, run.max_bad, run.block_size)
        tasks.append(Task("ingest", path.stat().st_size, task))
    quiet = run.progress.quiet
    done = run_tasks(_ingest_task, tasks, scheduler=scheduler, unit="bytes", quiet=quiet)
    for file in sorted(done, key=lambda file: file.number):
        folder = tasks[file.number].argument.folder
        for part in sorted((folder / "serps").iterdir()):
            part.rename(run.next_part())
        with open(folder / rejects.FILE, errors="backslashreplace") as rejected:
            shutil.copyfileobj(rejected, run.rejects_file)
        shutil.rmtree(folder)
        run.counts.update(file.counts)
        run.inputs += file.inputs


def _ingest_task(task: _FileTask, tick: Tick) -> _FileDone:
    """On a worker; a task that was begun by a worker that died begins anew."""
    shutil.rmtree(task.folder, ignore_errors=True)
    (task.folder / "serps").mkdir(parents=True)
    with (
        open(task.folder / rejects.FILE, "w", errors="backslashreplace") as rejects_file,
        Progress("ingest", quiet=True) as progress,
    ):
        run = _Run(task.folder, task.max_bad, 1, task.block_size, progress, rejects_file)
        _ingest_file(run, task.path, task.format, {}, quiet=True)
    return _FileDone(task.number, run.parts, run.counts, run.inputs)


def _format_of(path: Path) -> str:
    source = Source(path)
    try:
        head = source.peek(HEAD)
        if not head:
            raise LogevalError(f"{path}: is empty; there is nothing to ingest")
        return recognise(head, str(path))
    finally:
        source.close()


def _ingest_log(run: _Run, source: Source, fmt: int) -> None:
    file_counts: Counter[str] = Counter()
    first_rejects: list[str] = []

    def collect(done: Future[_Parsed]) -> None:
        parsed = done.result()
        lines_before = file_counts["lines"]
        file_counts.update(parsed.counts)
        bad = rejects.rejects_of(parsed.rejects, parsed.buf)
        for reject in islice(bad, 3 - len(first_rejects)):
            first_rejects.append(f"line {lines_before + reject.line + 1}: {reject.reason}")
        if file_counts["lines"] > CHECK_BAD_AFTER:
            _check_bad(run, source.name, file_counts, first_rejects)
        for reject in rejects.rejects_of(parsed.rejects, parsed.buf):
            line = lines_before + reject.line + 1
            run.rejects_file.write(f"{source.name}\t{line}\t{reject.reason}\t{reject.text}\n")
        free.append(parsed.buf)

    scanners = threading.local()
    free: list[Bytes] = []  # blocks whose memory can be used again

    def parse_and_write(buf: Bytes, path: Path) -> _Parsed:
        if not hasattr(scanners, "own"):
            scanners.own = Scanner(fmt)
        block = scanners.own.scan(buf)
        tables.write_serps(serps_table(block, has_domains=fmt == PERSONALIZED), path)
        counts = Counter(dict(zip(COUNTS, block.counts.tolist(), strict=True)))
        return _Parsed(counts, block.rejects.copy(), buf)

    with ThreadPoolExecutor(run.workers) as pool:
        waiting: deque[Future[_Parsed]] = deque()
        for buf in session_blocks(source, fmt, run.block_size, free):
            waiting.append(pool.submit(parse_and_write, buf, run.next_part()))
            if len(waiting) > run.workers:
                collect(waiting.popleft())
        while waiting:
            collect(waiting.popleft())
    _check_bad(run, source.name, file_counts, first_rejects)
    run.counts.update(file_counts)


def _ingest_table(run: _Run, path: str | Path, column_map: dict[str, str]) -> None:
    if is_stream(path):
        raise LogevalError(f"{path}: a table cannot be read from a stream; give its file")
    rows = 0
    for batch, share in read_batches(Path(path), column_map, first_session=run.counts["rows"]):
        run.progress.advance(share * Path(path).stat().st_size)
        tables.write_serps(batch, run.next_part())
        clicks = batch["clicks"].combine_chunks().flatten().to_numpy()
        run.counts.update(
            rows=batch.num_rows,
            queries=batch.num_rows,
            test_queries=int(batch["test"].to_numpy().sum()),
            clicks_matched=int((clicks > 0).sum()),
            clicks_repeat=int((clicks - (clicks > 0)).sum()),
        )
        rows += batch.num_rows
    if not rows:
        raise LogevalError(f"{path}: has no rows; there is nothing to ingest")
    run.inputs.append(identity(path))


def _check_bad(run: _Run, name: str, counts: Counter[str], first: Iterable[str]) -> None:
    bad, lines = counts["rejected"], counts["lines"]
    if bad > run.max_bad * lines:
        raise LogevalError(
            f"{name}: {bad:,} of {lines:,} lines ({bad / lines:.1%}) are not records, over "
            f"max_bad = {run.max_bad:g} ({'; '.join(first)}); check the format, or allow more with "
            "max_bad; no table was written"
        )


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        print(text, file=sys.stderr)
