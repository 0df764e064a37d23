"""The files of one ingest -> parts, counts and rejects, read here or on a cluster."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO

from logeval.errors import LogevalError, visible
from logeval.log import rejects
from logeval.log.formats.format import LOG, Format, Reading
from logeval.log.formats.registry import AUTO, FORMATS, format_of
from logeval.log.inputs import identity, is_stream, unchanged
from logeval.log.reading import cluster
from logeval.log.reading.parts import write_parts
from logeval.log.reading.source import Source
from logeval.log.tally import Tally
from logeval.running.progress import Progress
from logeval.storage import tables


@dataclass
class Run:
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
        """Where the next table of SERPs is written."""
        path = self.staging / "serps" / f"part-{self.parts:05d}.parquet"
        self.parts += 1
        return path

    def count(self, tally: Tally) -> None:
        """Add what was counted in a file, unless too much of it is bad."""
        tally.check()
        self.counts.update(tally.counts)


def ingest_files(
    run: Run, paths: Sequence[str | Path], asked: str, columns: dict[str, str], quiet: bool
) -> None:
    """Read the files, each by itself unless its format wants all of them together."""
    sources: list[Source] = []
    with ExitStack() as opened:
        for path in paths:
            say(f"{path}: reading", quiet)
            sources.append(Source(path, run.progress.advance))
            opened.callback(sources[-1].close)
            format = _format_of(run, sources[-1], asked, quiet)
            if not format.together or len(sources) == len(paths):
                reading = Reading(sources, run.block_size, columns, run.counts["rows"])
                _ingest_log(run, format, reading)
                opened.close()
                sources = []


def _format_of(run: Run, source: Source, asked: str, quiet: bool) -> Format:
    format = format_of(source, asked)
    if asked == AUTO:
        say(f"{source.name}: recognised as {format.name}", quiet)
    run.formats.append(format.name)
    first = FORMATS[run.formats[0]]
    if format.kind != first.kind:
        raise LogevalError(
            f"{source.name}: tables and logs cannot be ingested together; do it one by one"
        )
    if format is not first and (format.together or first.together):
        raise LogevalError(
            f"{source.name}: is {format.name}, others are {first.name}; do it one by one"
        )
    return format


def _ingest_log(run: Run, format: Format, reading: Reading) -> None:
    if format.kind == LOG:
        _write_parts(run, format, reading)
        run.inputs += [source.identity() for source in reading.sources]
        return
    paths = [source.path for source in reading.sources]
    for path in filter(is_stream, paths):
        raise LogevalError(f"{path}: a table cannot be read from a stream; give its file")
    with unchanged(paths):
        _write_parts(run, format, reading)
    run.inputs += map(identity, paths)


def _write_parts(run: Run, format: Format, reading: Reading) -> None:
    tallies = [Tally(source.name, run.max_bad) for source in reading.sources]
    with closing(write_parts(format.read(reading), run.next_part, run.workers)) as written:
        for read in written:
            tally = tallies[read.file]
            before = tally.add(read.counts, read.rejects())
            for reject in read.rejects():
                run.rejects_file.write(f"{visible(tally.name)}\t{reject.row(before)}")
            read.done()
    for tally in tallies:
        run.count(tally)


def ingest_on_cluster(
    run: Run, paths: Sequence[str | Path], format: str, scheduler: str, quiet: bool
) -> None:
    """Have the workers of a cluster read the files."""
    kinds = [cluster.recognised(path, format) for path in paths]
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
        run.count(tally)


def say(text: str, quiet: bool) -> None:
    """Tell the user what is going on."""
    if not quiet:
        print(visible(text), file=sys.stderr)
