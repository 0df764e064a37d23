"""raw log -> serps: read the files, here or on a cluster, write the table, count everything."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO

from logeval.errors import LogevalError, visible
from logeval.log import rejects
from logeval.log.formats.format import TABLE, Format, Reading
from logeval.log.formats.registry import AUTO, FORMATS, format_of
from logeval.log.ingest import MAX_WORKERS, Ingest
from logeval.log.inputs import is_stream, unchanged
from logeval.log.lines.blocks import BLOCK_SIZE
from logeval.log.reading import cluster
from logeval.log.reading.parts import name_by_content, write_parts
from logeval.log.reading.source import Source
from logeval.running.progress import Progress
from logeval.storage import manifests, tables


def write_log(asked: Ingest) -> None:
    """Read all files and put the table into its folder."""
    streams = any(map(is_stream, asked.paths))
    size = None if streams else sum(Path(path).stat().st_size for path in asked.paths)
    quiet = asked.quiet or asked.scheduler is not None  # a cluster has bars of its own
    with tables.staged(asked.folder, asked.overwrite) as staging:
        (staging / "serps").mkdir()
        with (
            open(staging / rejects.FILE, "w", errors="backslashreplace") as rejects_file,
            Progress("ingest", size, "bytes", quiet) as progress,
        ):
            rejects_file.write(rejects.HEADER)
            run = _Run(asked, staging, progress, rejects_file)
            if asked.scheduler is not None:
                with unchanged(asked.paths):
                    run.read_on_cluster()
            else:
                run.read_files()
        name_by_content(staging / "serps")
        manifest = tables.manifest_of(asked.NAME, asked.arguments(), run.inputs, again=asked.AGAIN)
        manifest |= {"formats": run.formats, "counts": dict(run.counts), "stamps": run.stamps}
        tables.write_manifest(staging, manifest)


@dataclass
class _Run:
    """What is common to all files of one ingest, and what was counted so far."""

    asked: Ingest
    staging: Path
    progress: Progress
    rejects_file: IO[str]
    counts: Counter[str] = field(default_factory=Counter)
    parts: Iterator[int] = field(default_factory=count)
    inputs: list[tables.Manifest] = field(default_factory=list)
    stamps: list[tables.Manifest] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)

    def next_part(self) -> Path:
        return self.staging / "serps" / f"part-{next(self.parts):05d}.parquet"

    def read_files(self) -> None:
        """Each file by itself, unless its format wants all of them together."""
        sources: list[Source] = []
        with ExitStack() as opened:
            for path in self.asked.paths:
                self._say(f"{path}: reading")
                source = opened.enter_context(closing(Source(path, self.progress.advance)))
                sources.append(source)
                self.stamps.append({} if is_stream(path) else manifests.stamp(source.fileno()))
                format = self._format_of(source)
                if not format.together or len(sources) == len(self.asked.paths):
                    self._read(format, sources)
                    opened.close()
                    sources = []

    def _format_of(self, source: Source) -> Format:
        format = format_of(source, self.asked.format)
        if self.asked.format == AUTO:
            self._say(f"{source.name}: recognised as {format.name}")
        self.formats.append(format.name)
        first = FORMATS[self.formats[0]]
        if format.kind != first.kind:
            raise LogevalError(
                f"{source.name}: tables and logs cannot be ingested together; do it one by one"
            )
        if format is not first and (format.together or first.together):
            raise LogevalError(
                f"{source.name}: is {format.name}, others are {first.name}; do it one by one"
            )
        return format

    def _read(self, format: Format, sources: Sequence[Source]) -> None:
        workers = self.asked.workers or min(os.cpu_count() or 1, MAX_WORKERS)
        size = self.asked.block_size or BLOCK_SIZE
        reading = Reading(sources, size, self.asked.column_map, self.counts["rows"])
        tallies = [rejects.Tally(source.name, self.asked.max_bad) for source in sources]
        with ExitStack() as checks:
            for source in sources if format.kind == TABLE else ():
                if is_stream(source.path):
                    raise LogevalError(
                        f"{source.path}: a table cannot be read from a stream; give its file"
                    )
                checks.enter_context(unchanged([source.path], source.fileno()))
            jobs = format.read(reading)
            written = checks.enter_context(closing(write_parts(jobs, self.next_part, workers)))
            for read in written:
                tally = tallies[read.file]
                before = tally.add(read.counts, read.rejects())
                for reject in read.rejects():
                    self.rejects_file.write(f"{visible(tally.name)}\t{reject.row(before)}")
        for tally in tallies:
            self.counts.update(tally.check())
        self.inputs += [source.identity() for source in sources]

    def read_on_cluster(self) -> None:
        """Have the workers of a cluster read the files."""
        paths = [Path(path) for path in self.asked.paths]
        self.stamps = [manifests.stamp(path) for path in paths if not is_stream(path)]
        self.inputs, pieces = cluster.ingest_pieces(self.asked, paths, self.staging)
        for file, path in enumerate(paths):
            tally = rejects.Tally(str(path), self.asked.max_bad)
            of_file = [done for done in pieces if done.piece.file == file]
            self.formats.append(of_file[0].piece.format)
            for done in of_file:
                lines = tally.counts["lines"]
                for counts, first_rejects in done.blocks:
                    tally.add(counts, first_rejects)
                folder = done.piece.folder
                for part in sorted(folder.glob("*.parquet")):
                    part.rename(self.next_part())
                with open(folder / rejects.FILE, errors="backslashreplace") as rejected:
                    for row in rejected:
                        line, _, rest = row.partition("\t")
                        row = f"{lines + int(line)}\t{rest}"
                        self.rejects_file.write(f"{visible(tally.name)}\t{row}")
                shutil.rmtree(folder)
            self.counts.update(tally.check())

    def _say(self, text: str) -> None:
        if not self.asked.quiet:
            print(visible(text), file=sys.stderr)
