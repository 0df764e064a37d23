"""raw log -> serps: read the files block by block, write the table, count everything."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO

from logeval import manifests, tables
from logeval.arrays import Bytes
from logeval.errors import LogevalError, visible
from logeval.log import cluster, rejects
from logeval.log.blocks import BLOCK_SIZE, session_blocks
from logeval.log.formats import HEAD, TABLE, recognise
from logeval.log.inputs import MAX_WORKERS, check, is_stream, total_bytes, unchanged, why
from logeval.log.log import Log, load
from logeval.log.parts import name_by_content, write_parts
from logeval.log.scan import FORMATS
from logeval.log.source import Source
from logeval.log.tabular import read_batches
from logeval.log.tally import Tally
from logeval.progress import Progress


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
    The same input and arguments again do nothing. With a ``scheduler`` files, and ranges of
    plain ones, are shared out to the workers of that Dask cluster, which must see ``sources`` and
    ``out`` under the same paths.
    """
    paths = [sources] if isinstance(sources, str | Path) else list(sources)
    out = Path(out)
    arguments = check(paths, format=format, max_bad=max_bad, column_map=column_map, workers=workers)
    n_workers = workers or min(os.cpu_count() or 1, MAX_WORKERS)
    format = arguments["format"]
    if not overwrite and tables.there_is(out):
        if not any(map(is_stream, paths)) and why(paths, out, **arguments) is None:
            _say(f"{out}: up to date, made from the same input; nothing to do", quiet)
            return load(out)
        raise LogevalError(f"{out}: holds another table already; choose another out, or overwrite")
    if not overwrite:
        tables.check_free(out, ("serps", rejects.FILE))
    on_cluster = scheduler is not None  # which has bars of its own
    with tables.staged(out, overwrite) as staging:
        (staging / "serps").mkdir()
        with (
            open(staging / rejects.FILE, "w", errors="backslashreplace") as rejects_file,
            Progress("ingest", total_bytes(paths), "bytes", quiet or on_cluster) as progress,
        ):
            rejects_file.write(rejects.HEADER)
            run = _Run(staging, max_bad, n_workers, block_size, progress, rejects_file)
            if scheduler is not None:
                with unchanged(paths):
                    _ingest_on_cluster(run, paths, format, scheduler, quiet)
            else:
                for path in paths:
                    _ingest_file(run, path, format, column_map or {}, quiet)
        name_by_content(staging / "serps")
        manifest = tables.manifest_of("ingest", arguments, run.inputs)
        manifest |= {"formats": run.formats, "counts": dict(run.counts), "stamps": run.stamps}
        tables.write_manifest(staging, manifest)
    log = load(out)
    for caution in log.cautions():
        print(visible(f"warning: {out}: {caution}"), file=sys.stderr)
    return log


def _ingest_file(
    run: _Run, path: str | Path, format: str, column_map: dict[str, str], quiet: bool
) -> None:
    _say(f"{path}: reading", quiet)
    source = Source(path, run.progress.advance)
    run.stamps.append({} if is_stream(path) else manifests.stamp(source.fileno()))
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
            if is_stream(path):
                raise LogevalError(f"{path}: a table cannot be read from a stream; give its file")
            with unchanged([path], source.fileno()):
                _ingest_table(run, source, column_map)
        else:
            _ingest_log(run, source, FORMATS.index(name))
        run.inputs.append(source.identity())
    finally:
        source.close()


def _ingest_log(run: _Run, source: Source, fmt: int) -> None:
    tally = Tally(source.name, run.max_bad)
    free: list[Bytes] = []  # blocks whose memory can be used again
    blocks = session_blocks(source, fmt, run.block_size, free)
    with closing(write_parts(blocks, fmt, run.next_part, run.workers)) as written:
        for block in written:
            before = tally.add(block.counts, block.rejects())
            for reject in block.rejects():
                run.rejects_file.write(f"{visible(source.name)}\t{reject.row(before)}")
            free.append(block.buf)
    tally.check()
    run.counts.update(tally.counts)


def _ingest_on_cluster(
    run: _Run, paths: Sequence[str | Path], format: str, scheduler: str, quiet: bool
) -> None:
    kinds = [cluster.recognised(path, format) for path in paths]
    run.stamps = [manifests.stamp(path) for path in paths]
    run.formats = [name for name, _ in kinds]
    run.inputs, pieces = cluster.ingest_pieces(
        [Path(path) for path in paths],
        kinds,
        run.staging,
        scheduler=scheduler,
        block_size=run.block_size,
        quiet=quiet,
    )
    for file, of_file in groupby(pieces, key=lambda piece: piece.file):
        tally = Tally(str(paths[file]), run.max_bad)
        for piece in of_file:
            lines = tally.counts["lines"]
            for counts, first_rejects in piece.blocks:
                tally.add(counts, first_rejects)
            for part in piece.parts():
                part.rename(run.next_part())
            with open(piece.folder / rejects.FILE, errors="backslashreplace") as rejected:
                for row in rejected:
                    line, _, rest = row.partition("\t")
                    run.rejects_file.write(f"{visible(tally.name)}\t{lines + int(line)}\t{rest}")
            shutil.rmtree(piece.folder)
        tally.check()
        run.counts.update(tally.counts)


def _ingest_table(run: _Run, source: Source, column_map: dict[str, str]) -> None:
    rows = 0
    for batch in read_batches(source, column_map, first_session=run.counts["rows"]):
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
        raise LogevalError(f"{source.name}: has no rows; there is nothing to ingest")


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        print(visible(text), file=sys.stderr)
