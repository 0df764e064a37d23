"""A synthetic log and its true models, written at the same time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import zstandard
from isal import igzip

from logeval.errors import LogevalError
from logeval.log.formats.registry import FORMATS, GENERATED
from logeval.running.progress import Progress
from logeval.storage import files, tables
from logeval.synthetic.generate import Generate
from logeval.synthetic.sessions import BATCH, draw_sessions
from logeval.synthetic.tastes import make_tastes
from logeval.synthetic.world import make_world

REGIONS = 4  # of the users, where the format has regions
GZ_LEVEL = 2  # of ISA-L's 0 to 3: smaller than zlib's level 1, and three times as quick


def write_log(asked: Generate, manifest: tables.Manifest) -> None:
    """Write the log, and its true models beside it."""
    out, truth = asked.path, asked.truth
    replaced = _replaceable(out, truth)
    kind, write = FORMATS[asked.format], GENERATED[asked.format]
    regions = REGIONS if kind.regions else 0
    world = make_world(asked.model, asked.queries, asked.seed, regions, kind.tests, asked.drift)
    n_items = int(world.first_item[-1])
    tastes = make_tastes(asked.taste, asked.factors, asked.n_users, n_items, asked.seed)
    world = replace(world, tastes=tastes)
    query_id, region_id = world.query_keys()
    out.parent.mkdir(parents=True, exist_ok=True)
    # the truth first: whenever the log is there, a manifest says that logeval wrote it
    with (
        files.partial_file(out) as partial,
        tables.staged(truth, True, then=lambda: files.put_in_place(partial, out)) as staging,
    ):
        world.models().write_tables(staging)
        if tastes is not None:
            tastes.write(staging)
        with (
            _compressed(partial, out.suffix) as file,
            Progress("generate", asked.sessions, "sessions", asked.quiet) as progress,
        ):
            for batch, number in enumerate(range(0, asked.sessions, BATCH)):
                size = min(BATCH, asked.sessions - number)
                drawn = draw_sessions(
                    world, size, asked.n_users, asked.seed, batch, asked.explore, asked.randomised
                )
                q = drawn.query
                file.write(write(drawn, query_id[q], region_id[q], number))
                progress.advance(size)
        written = {
            "log": tables.record(partial),
            "log_sha256": tables.checksum(partial),  # as ingest records it: whose truth this is
            "stamp": tables.stamp(partial),  # a rename keeps it
            "replaced_log": replaced,
        }
        tables.write_manifest(staging, manifest | written)


def _replaceable(out: Path, truth: Path) -> tables.Manifest | None:
    """The record of the log that is going to be replaced; an error if logeval did not write it."""
    if not out.exists():
        return None
    tables.recover(truth)
    found = tables.record(out)
    with contextlib.suppress(LogevalError):
        manifest = tables.read_manifest(truth)
        if found in (manifest.get("log"), manifest.get("replaced_log")):
            return found
    raise LogevalError(
        f"{out}: was not written by logeval, or changed since, so it is not replaced; "
        "move it away, or choose another name"
    )


@contextmanager
def _compressed(path: Path, suffix: str) -> Iterator[IO[bytes] | Any]:
    """A file to write to, compressed as the suffix of the log says."""
    with open(path, "wb") as raw:
        file: Any = contextlib.nullcontext(raw)
        if suffix == ".gz":
            file = igzip.IGzipFile("", "wb", GZ_LEVEL, raw, mtime=0)
        elif suffix == ".zst":
            compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
            file = compressor.stream_writer(raw, closefd=False)
        with file as opened:
            yield opened
