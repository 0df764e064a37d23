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
from typing import IO, TYPE_CHECKING

from logeval.errors import LogevalError, visible
from logeval.log import cluster, rejects
from logeval.log.blocks import BLOCK_SIZE, session_blocks
from logeval.log.formats import HEAD, TABLE, recognise
from logeval.log.ingest import MAX_WORKERS
from logeval.log.inputs import is_stream, total_bytes, unchanged
from logeval.log.parts import name_by_content, write_parts
from logeval.log.scan import FORMATS
from logeval.log.source import Source
from logeval.log.tabular import read_batches
from logeval.log.tally import FileCounts
from logeval.running.arrays import Bytes
from logeval.running.progress import Progress
from logeval.storage import manifests, tables

if TYPE_CHECKING:
    from logeval.log.ingest import Ingest


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


def write_log(asked: Ingest) -> None:
    """Read all files and put the table into its folder."""
    out, paths = asked.folder, asked.paths
    on_cluster = asked.scheduler is not None  # which has bars of its own
    with tables.staged(out, asked.overwrite) as staging:
        (staging / "serps").mkdir()
        with (
            open(staging / rejects.FILE, "w", errors="backslashreplace") as rejects_file,
            Progress("ingest", total_bytes(paths), "bytes", asked.quiet or on_cluster) as progress,
        ):
            rejects_file.write(rejects.HEADER)
            size = asked.block_size or BLOCK_SIZE
            workers = asked.workers or min(os.cpu_count() or 1, MAX_WORKERS)
            run = _Run(staging, asked.max_bad, workers, size, progress, rejects_file)
            if asked.scheduler is not None:
                with unchanged(paths):
                    _ingest_on_cluster(run, paths, asked.format, asked.scheduler, asked.quiet)
            else:
                for path in paths:
                    _ingest_file(run, path, asked.format, dict(asked.column_map), asked.quiet)
        name_by_content(staging / "serps")
        manifest = tables.manifest_of(asked.NAME, asked.arguments(), run.inputs, again=asked.AGAIN)
        manifest |= {"formats": run.formats, "counts": dict(run.counts), "stamps": run.stamps}
        tables.write_manifest(staging, manifest)


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
    tally = FileCounts(source.name, run.max_bad)
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
        tally = FileCounts(str(paths[file]), run.max_bad)
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
