"""The files that ingest reads: can they be, which are they, and do they stay the same?"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from logeval.errors import LogevalError
from logeval.log.reading.source import STDIN
from logeval.log.tables.frame import Frame, is_frame
from logeval.storage import tables


def check_readable(given: Sequence[Any]) -> None:
    """Raise unless there are files or frames, all can be read, and each is given once."""
    if not given:
        raise LogevalError("no log was given; name at least one file, or - for standard input")
    names = [str(p) for p in given if not is_frame(p)]
    frames = [id(each) for each in given if is_frame(each)]
    if len(set(frames)) < len(frames):
        raise LogevalError("a data frame was given twice, and would count twice; give it once")
    if names.count(STDIN) > 1:
        raise LogevalError("standard input can be read only once; give - once")
    names = [name for name in names if name != STDIN]
    if missing := [name for name in names if not Path(name).exists()]:
        raise LogevalError(f"{', '.join(missing)}: no such file; check the path")
    if folders := [name for name in names if Path(name).is_dir()]:
        raise LogevalError(f"{', '.join(folders)}: is a folder; name the files in it")
    seen: dict[tuple[int, int], str] = {}
    for name in filter(os.path.isfile, names):
        stat = os.stat(name)
        if first := seen.get((stat.st_dev, stat.st_ino)):
            raise LogevalError(
                f"{name}: is the same file as {first}, and its sessions would count twice; "
                "name it once"
            )
        seen[stat.st_dev, stat.st_ino] = name


def known_inputs(sources: Sequence[Any], out: Path) -> list[tables.Manifest] | None:
    """What a manifest says of these files, if ``out`` was made of files of their sizes.

    A file of the same name, size and time of last change is taken for the same, as make and rsync
    do; of others the checksum decides.
    """
    try:
        found = tables.read_manifest(out)
    except LogevalError:
        return []
    known, stamps = found["inputs"], found.get("stamps", [])
    sizes = [None if is_frame(s) else Path(s).stat().st_size for s in sources]
    if [i.get("bytes") for i in known] != sizes:
        return None
    stamps = stamps if len(stamps) == len(known) else [{}] * len(known)
    return [_known(*each) for each in zip(sources, known, stamps, strict=True)]


def _known(source: Any, known: tables.Manifest, stamp: tables.Manifest) -> tables.Manifest:
    if is_frame(source):
        frame = Frame(source)
        names = [name for name in known.get("columns", []) if name in frame.names]
        return frame.identity(names)
    path = Path(source)
    same = known.get("name") == path.name and tables.stamp(path) == stamp
    return known if same else identity(path)


def identity(path: str | Path) -> tables.Manifest:
    """What a manifest records of an input file."""
    path = Path(path)
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": tables.checksum(path)}


@contextlib.contextmanager
def unchanged(paths: Sequence[Any], descriptor: int | None = None) -> Iterator[None]:
    """Raise if a file is written or replaced meanwhile.

    What is read more than once, by one process or by several, is then the same each time. With
    the ``descriptor`` that the only path is read by, it may be replaced: who reads sees no change.
    """
    before = [_state(path, descriptor) for path in paths]
    yield
    for path, state in zip(paths, before, strict=True):
        if _state(path, descriptor) != state:
            raise changed(path)


def changed(path: str | Path) -> LogevalError:
    """The error for a file that is not the same from start to end."""
    return LogevalError(f"{path}: was written or replaced while it was read; run the command again")


def _state(path: str | Path, descriptor: int | None) -> tuple[int, ...] | None:
    """Which file it is, its size and last change; shared file systems look when it is opened."""
    if is_stream(path):
        return None
    try:
        with open(path, "rb") as file:
            stat = os.fstat(file.fileno() if descriptor is None else descriptor)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def is_stream(path: Any) -> bool:
    """Standard input or a pipe: it can be read only once."""
    return not is_frame(path) and (str(path) == STDIN or not Path(path).is_file())
