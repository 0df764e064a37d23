"""raw log -> serps: read blocks, parse and write them side by side, count everything.

The kernel and the Parquet writer release the interpreter lock, so the workers are threads:
one block of whole sessions becomes one file, whatever the number of workers.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from logeval import tables
from logeval.arrays import Bytes
from logeval.errors import LogevalError
from logeval.log import rejects
from logeval.log.blocks import BLOCK_SIZE, session_blocks
from logeval.log.formats import HEAD, TABLE, check_format, recognise
from logeval.log.log import Log, load
from logeval.log.scan import COUNTS, FORMATS, PERSONALIZED, scan_block
from logeval.log.serps import serps_table
from logeval.log.source import STDIN, Source
from logeval.log.tabular import read_batches
from logeval.progress import Progress

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
    formats: list[str] = field(default_factory=list)

    def next_part(self) -> Path:
        path = self.staging / "serps" / f"part-{self.parts:05d}.parquet"
        self.parts += 1
        return path


def ingest(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    format: str = "auto",
    max_bad: float = 0.01,
    workers: int | None = None,
    overwrite: bool = False,
    column_map: dict[str, str] | None = None,
    quiet: bool = False,
    block_size: int = BLOCK_SIZE,
) -> Log:
    """Parse one or several log files into the Parquet dataset ``out``/serps.

    ``sources`` are plain, .gz or .zst files ("-" is standard input). Lines that are no records
    go to ``out``/rejects.tsv; over ``max_bad`` of them is an error, and no table is left.
    ``column_map`` ({"query_id": "qid"}) names the columns of a file in format ``table``.
    The same input and arguments again do nothing.
    """
    paths = [sources] if isinstance(sources, str | Path) else list(sources)
    out = Path(out)
    check_format(format)
    _check_readable(paths)
    arguments = {"format": format, "max_bad": max_bad, "column_map": column_map or {}}
    if (out / tables.MANIFEST).exists() and not overwrite:
        if STDIN not in map(str, paths) and _same(out, paths, arguments):
            _say(f"{out}: up to date, made from the same input; nothing to do", quiet)
            return load(out)
        raise LogevalError(
            f"{out}: holds another table already; choose another --out, or --overwrite"
        )
    with tables.staged(out) as staging:
        (staging / "serps").mkdir()
        with (
            open(staging / rejects.FILE, "w", encoding="utf-8") as rejects_file,
            Progress("ingest", _total_bytes(paths), "bytes", quiet) as progress,
        ):
            rejects_file.write(rejects.HEADER)
            n = workers or min(os.cpu_count() or 1, 4)
            run = _Run(staging, max_bad, n, block_size, progress, rejects_file)
            for path in paths:
                _ingest_file(run, path, format, column_map or {}, quiet)
        manifest = tables.manifest_of("ingest", arguments, run.inputs)
        manifest |= {"formats": run.formats, "counts": dict(run.counts)}
        tables.write_manifest(staging, manifest)
    return load(out)


def _ingest_file(
    run: _Run, path: str | Path, format: str, column_map: dict[str, str], quiet: bool
) -> None:
    source = Source(path, run.progress.advance)
    try:
        name = format if format != "auto" else recognise(source.peek(HEAD), source.name)
        if format == "auto":
            _say(f"{source.name}: recognised as {name}", quiet)
        run.formats.append(name)
        if name == TABLE:
            _ingest_table(run, path, column_map)
        else:
            _ingest_log(run, source, FORMATS.index(name))
            run.inputs.append(source.identity())
    finally:
        source.close()


def _ingest_log(run: _Run, source: Source, fmt: int) -> None:
    file_counts: Counter[str] = Counter()
    first_rejects: list[str] = []

    def collect(done: Future[tuple[Counter[str], list[rejects.Reject]]]) -> None:
        counts, bad = done.result()
        for reject in bad:
            line = file_counts["lines"] + reject.line + 1
            run.rejects_file.write(f"{source.name}\t{line}\t{reject.reason}\t{reject.text}\n")
            if len(first_rejects) < 3:
                first_rejects.append(f"line {line}: {reject.reason}")
        file_counts.update(counts)
        if file_counts["lines"] > CHECK_BAD_AFTER:
            _check_bad(run, source.name, file_counts, first_rejects)

    with ThreadPoolExecutor(run.workers) as pool:
        waiting: deque[Future[tuple[Counter[str], list[rejects.Reject]]]] = deque()
        for buf in session_blocks(source, fmt, run.block_size):
            waiting.append(pool.submit(_ingest_block, buf, fmt, run.next_part()))
            if len(waiting) > run.workers:
                collect(waiting.popleft())
        while waiting:
            collect(waiting.popleft())
    _check_bad(run, source.name, file_counts, first_rejects)
    run.counts.update(file_counts)


def _ingest_block(buf: Bytes, fmt: int, path: Path) -> tuple[Counter[str], list[rejects.Reject]]:
    block = scan_block(buf, fmt)
    tables.write_parquet(serps_table(block, has_domains=fmt == PERSONALIZED), path)
    counts = dict(zip(COUNTS, block.counts.tolist(), strict=True))
    return Counter(counts), rejects.rejects_of(block, buf)


def _ingest_table(run: _Run, path: str | Path, column_map: dict[str, str]) -> None:
    if str(path) == STDIN:
        raise LogevalError("a table cannot be read from standard input; give its file")
    rows = 0
    for batch in read_batches(Path(path), column_map):
        tables.write_parquet(batch, run.next_part())
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
    run.inputs.append(_identity(path))


def _check_bad(run: _Run, name: str, counts: Counter[str], first: Iterable[str]) -> None:
    bad, lines = counts["rejected"], counts["lines"]
    if bad > run.max_bad * lines:
        raise LogevalError(
            f"{name}: {bad:,} of {lines:,} lines ({bad / lines:.1%}) are not records, over "
            f"--max-bad {run.max_bad:g} ({'; '.join(first)}); check --format, or allow more with "
            "--max-bad; no table was written"
        )


def _check_readable(paths: Sequence[str | Path]) -> None:
    if not paths:
        raise LogevalError("no log was given; name at least one file, or - for standard input")
    missing = [str(p) for p in paths if str(p) != STDIN and not Path(p).is_file()]
    if missing:
        raise LogevalError(f"{', '.join(missing)}: no such file; check the path")


def _same(out: Path, paths: Sequence[str | Path], arguments: tables.Manifest) -> bool:
    found = tables.read_manifest(out).get("inputs", [])
    if [i.get("bytes") for i in found] != [Path(p).stat().st_size for p in paths]:
        return False
    inputs = [_identity(p) for p in paths]
    return tables.same_work(out, tables.manifest_of("ingest", arguments, inputs))


def _identity(path: str | Path) -> tables.Manifest:
    path = Path(path)
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": tables.checksum(path)}


def _total_bytes(paths: Sequence[str | Path]) -> int | None:
    if STDIN in map(str, paths):
        return None
    return sum(Path(p).stat().st_size for p in paths)


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        print(text, file=sys.stderr)
