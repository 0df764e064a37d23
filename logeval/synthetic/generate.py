"""Write a synthetic log, and beside it the true parameters of its click model."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from logeval import tables
from logeval.errors import LogevalError, unknown_names
from logeval.log.scan import FORMATS, PERSONALIZED
from logeval.progress import Progress
from logeval.synthetic.sessions import BATCH, draw_sessions
from logeval.synthetic.text import sessions_text
from logeval.synthetic.world import make_world

REGIONS = 4  # of the users in yandex-relpred


def truth_folder(log: str | Path) -> Path:
    """Where the true models of a generated log are: ``log.truth`` beside ``log.tsv.gz``."""
    log = Path(log)
    name = log.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".tsv")
    return log.with_name(f"{name}.truth")


def generate(
    out: str | Path,
    *,
    format: str = "yandex-personalized",
    sessions: int = 50_000,
    queries: int = 1_000,
    model: str = "DCM",
    seed: int = 0,
    overwrite: bool = False,
    quiet: bool = False,
) -> Path:
    """Write ``sessions`` synthetic sessions to ``out`` (plain, .gz or .zst by its name).

    Returns the folder of the true models. Memory does not depend on the number of sessions.
    """
    out, truth = Path(out), truth_folder(out)
    if format not in FORMATS:
        raise unknown_names("format", [format], FORMATS)
    if sessions < 1 or queries < 1:
        raise LogevalError("a log needs at least one session and one query")
    arguments = {
        "out": out.name,
        "format": format,
        "sessions": sessions,
        "queries": queries,
        "model": model.upper(),
        "seed": seed,
    }
    manifest = tables.manifest_of("generate", arguments, [])
    if out.is_dir():
        raise LogevalError(f"{out}: is a folder; name a file for the log")
    if not overwrite and (out.exists() or truth.exists()):
        whole = out.exists() and (truth / "queries.parquet").exists()
        if whole and tables.same_work(truth, manifest):
            return truth
        there = out if out.exists() else truth
        raise LogevalError(f"{there}: exists already; choose another name, or --overwrite")
    fmt = FORMATS.index(format)
    world = make_world(model, queries, seed, regions=0 if fmt == PERSONALIZED else REGIONS)
    with tables.staged(truth) as staging:
        world.models().write_tables(staging)
        tables.write_manifest(staging, manifest)
        with (
            _written(out) as file,
            Progress("generate", sessions, "sessions", quiet) as progress,
        ):
            for batch, number in enumerate(range(0, sessions, BATCH)):
                size = min(BATCH, sessions - number)
                drawn = draw_sessions(world, size, sessions, seed, batch)
                file.write(sessions_text(world, drawn, fmt, number))
                progress.advance(size)
    return truth


@contextmanager
def _written(out: Path) -> Iterator[IO[bytes] | Any]:
    """A file to write to, compressed by its name, that appears by rename when it is whole."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial")
    try:
        with open(partial, "wb") as raw:
            if out.suffix == ".gz":
                with gzip.GzipFile("", "wb", 1, raw, mtime=0) as file:
                    yield file
            elif out.suffix == ".zst":
                with pa.CompressedOutputStream(pa.PythonFile(raw, mode="w"), "zstd") as stream:
                    yield stream
            else:
                yield raw
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
