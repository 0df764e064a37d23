"""raw log -> serps: read the files, here or on a cluster, write the table, count everything."""

from __future__ import annotations

import os
import shutil
import sys
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Any

from logeval.errors import LogevalError, visible
from logeval.log import rejects
from logeval.log.formats.format import TABLE, Format, Reading
from logeval.log.formats.registry import AUTO, FORMATS, format_of
from logeval.log.ingest import LOOK_ROWS, MAX_POSITIONS, MAX_WORKERS, Ingest
from logeval.log.inputs import is_stream, unchanged
from logeval.log.lines.blocks import BLOCK_SIZE
from logeval.log.log import Log, load
from logeval.log.reading import cluster
from logeval.log.reading.parts import write_parts
from logeval.log.reading.source import Source
from logeval.log.tables.frame import Frame, is_frame
from logeval.running.progress import Progress
from logeval.storage import files, schemas, tables


def in_memory(asked: Ingest) -> Log:
    """The log in a temporary folder, which is gone with it."""
    held = ExitStack()
    with ExitStack() as failing:
        failing.callback(held.close)
        folder = held.enter_context(files.scratch()) / "log"
        write_log(asked.replace(out=folder), temporary=True)
        log = load(folder)
        weakref.finalize(log, failing.pop_all().close)
    return log


def write_log(asked: Ingest, temporary: bool = False) -> None:
    """Read all files and put the table into its folder."""
    sizes = [None if is_stream(log) else _size(log) for log in asked.given]
    size = None if None in sizes else sum(filter(None, sizes))
    quiet = asked.quiet or asked.scheduler is not None  # a cluster has bars of its own
    unit = "rows" if any(map(is_frame, asked.given)) else "bytes"
    with tables.staged(asked.folder, asked.overwrite) as staging:
        with (
            rejects.writing(staging) as rejects_file,
            Progress("ingest", size, unit, quiet) as progress,
        ):
            rejects_file.write(rejects.HEADER)
            run = _Run(asked, staging, progress, rejects_file)
            if asked.scheduler is not None:
                with unchanged(asked.given):
                    run.read_on_cluster()
            else:
                run.read_files()
        run.end()
        manifest = tables.manifest_of(asked.NAME, asked.arguments(), run.inputs, again=asked.AGAIN)
        manifest |= {
            "formats": run.formats,
            "counts": dict(run.counts),
            "stamps": run.stamps,
        }
        if temporary:
            manifest["temporary"] = True
        if run.holds != "serps":
            manifest["holds"] = run.holds
        if run.said:
            manifest["columns"] = run.said
        if run.notes:
            manifest["notes"] = run.notes
        tables.write_manifest(staging, manifest)


def _size(log: Any) -> int:
    return len(log) if is_frame(log) else Path(log).stat().st_size


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
    said: list[str] = field(default_factory=list)  # what columns were taken for
    notes: list[str] = field(default_factory=list)

    @property
    def holds(self) -> str:
        """The table that is written."""
        return FORMATS[self.formats[0]].holds

    @property
    def folder(self) -> Path:
        """Where its parts are."""
        folder = self.staging / self.holds
        folder.mkdir(exist_ok=True)
        return folder

    def next_part(self) -> Path:
        return self.folder / f"part-{next(self.parts):05d}.parquet"

    def end(self) -> None:
        """There is a table, even if it is empty."""
        if not any(self.folder.iterdir()):
            tables.write_parquet(schemas.TABLES[self.holds].empty_table(), self.next_part())

    def read_files(self) -> None:
        """Each file by itself, unless its format wants all of them together."""
        sources: list[Source | Frame] = []
        with ExitStack() as opened:
            for given in self.asked.given:
                if not is_frame(given):
                    self._say(f"{given}: reading")
                kind: Any = Frame if is_frame(given) else Source
                source = opened.enter_context(closing(kind(given, self.progress.advance)))
                sources.append(source)
                if not isinstance(source, Frame) and not is_stream(given):
                    self.stamps.append(tables.stamp(source.fileno()))
                else:
                    self.stamps.append({})
                if self.asked.clicks is None or given is not self.asked.clicks:
                    format = self._format_of(source)
                if not format.together or len(sources) == len(self.asked.given):
                    self._read(format, sources)
                    opened.close()
                    sources = []

    def _format_of(self, source: Source | Frame) -> Format:
        name = self.asked.format if self.asked.clicks is None else "long"
        format = format_of(source, name, self.asked.columns)
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

    def _read(self, format: Format, sources: Sequence[Source | Frame]) -> None:
        asked = self.asked
        workers = asked.workers or min(os.cpu_count() or 1, MAX_WORKERS)
        reading = Reading(
            sources,
            asked.block_size or BLOCK_SIZE,
            self._columns(format),
            self.staging,
            workers,
            asked.positions or MAX_POSITIONS,
            LOOK_ROWS if asked.dry_run else None,
            asked.actions or ("click",),
            asked.views or (),
            (asked.reward_column,) if asked.reward_column else (),
            asked.applications or (),
            apart=asked.clicks is not None,
            say=self._say_of_columns,
            note=self.notes.append,
            advance=self.progress.advance,
            size=self.progress.total or 0.0,
        )
        tallies = [rejects.Tally(source.name, asked.max_bad, format.unit) for source in sources]
        with ExitStack() as checks:
            for source in sources if format.kind == TABLE else ():
                if not isinstance(source, Frame):
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

    def _columns(self, format: Format) -> dict[str, str]:
        """The user's map, and the column of the second reward."""
        reward = self.asked.reward_column
        more = {"reward": reward} if reward is not None and not format.actions else {}
        return {**self.asked.columns, **more}

    def read_on_cluster(self) -> None:
        """Have the workers of a cluster read the files."""
        paths = [Path(path) for path in self.asked.given]
        self.stamps = [tables.stamp(path) for path in paths if not is_stream(path)]
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
                with open(folder / rejects.FILE, encoding="utf-8") as rejected:
                    for row in rejected:
                        line, _, rest = row.partition("\t")
                        row = f"{lines + int(line)}\t{rest}"
                        self.rejects_file.write(f"{visible(tally.name)}\t{row}")
                shutil.rmtree(folder)
            self.counts.update(tally.check())

    def _say_of_columns(self, text: str) -> None:
        self.said.append(text)
        self._say(text)

    def _say(self, text: str) -> None:
        if not self.asked.quiet:
            print(visible(text), file=sys.stderr)
