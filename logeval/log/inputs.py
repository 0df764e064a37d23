"""What ingest is asked for: arguments and files, and whether ``out`` is made of them already."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from logeval.errors import LogevalError
from logeval.log.formats.registry import AUTO, FORMATS, OF_COLUMNS, check_format
from logeval.log.reading.source import STDIN
from logeval.storage import manifests, tables

MAX_WORKERS = 8  # each takes about 70 MB; all of it stays under 1 GiB


def check(
    sources: Sequence[str | Path] | None,
    *,
    format: str,
    max_bad: float,
    column_map: dict[str, str] | None,
    workers: int | None,
) -> tables.Manifest:
    """Raise for arguments with which nothing can be ingested; else as a manifest records them."""
    if workers is not None and not 1 <= workers <= MAX_WORKERS:
        raise LogevalError(f"workers={workers}: choose 1 to {MAX_WORKERS}")
    if not 0.0 <= max_bad <= 1.0:
        raise LogevalError(f"max_bad={max_bad}: is a share, from 0 to 1")
    if sources is not None:
        _check_readable(sources)
    return _arguments(format, max_bad, column_map)


def _check_readable(paths: Sequence[str | Path]) -> None:
    if not paths:
        raise LogevalError("no log was given; name at least one file, or - for standard input")
    names = [str(p) for p in paths]
    if names.count(STDIN) > 1:
        raise LogevalError("standard input can be read only once; give - once")
    missing = [name for name in names if name != STDIN and not Path(name).exists()]
    if missing:
        raise LogevalError(f"{', '.join(missing)}: no such file; check the path")
    folders = [name for name in names if name != STDIN and Path(name).is_dir()]
    if folders:
        raise LogevalError(f"{', '.join(folders)}: is a folder; name the files in it")
    seen: dict[tuple[int, int], str] = {}
    for name in names:
        if name == STDIN or not Path(name).is_file():
            continue
        stat = Path(name).stat()
        if first := seen.get((stat.st_dev, stat.st_ino)):
            raise LogevalError(
                f"{name}: is the same file as {first}, and its sessions would count twice; "
                "name it once"
            )
        seen[stat.st_dev, stat.st_ino] = name


def why(
    sources: Sequence[str | Path],
    out: Path,
    *,
    format: str,
    max_bad: float,
    column_map: dict[str, str] | None,
) -> str | None:
    """Why ``out`` is not what ``ingest`` makes of these files; None if it is.

    A file of the same name, size and time of last change is taken for the same, as make and rsync
    do; of others the checksum decides.
    """
    _check_readable(sources)
    arguments = _arguments(format, max_bad, column_map)
    inputs: list[tables.Manifest] = []
    with contextlib.suppress(LogevalError):
        found = tables.read_manifest(out)
        known, stamps = found["inputs"], found.get("stamps", [])
        if [i.get("bytes") for i in known] != [Path(s).stat().st_size for s in sources]:
            return "its input has changed"
        stamps = stamps if len(stamps) == len(known) else [{}] * len(known)
        inputs = [_known(*each) for each in zip(sources, known, stamps, strict=True)]
    return tables.why(out, tables.manifest_of("ingest", arguments, inputs))


def _known(source: str | Path, known: tables.Manifest, stamp: tables.Manifest) -> tables.Manifest:
    path = Path(source)
    same = known.get("name") == path.name and manifests.stamp(path) == stamp
    return known if same else identity(path)


def _arguments(format: str, max_bad: float, column_map: dict[str, str] | None) -> tables.Manifest:
    check_format(format)
    if column_map and format == AUTO:
        format = OF_COLUMNS
    if column_map and not FORMATS[format].columns:
        raise LogevalError(f"a column map is for tables; a log in format {format} has no columns")
    return {"format": format, "max_bad": max_bad, "column_map": column_map or {}}


def identity(path: str | Path) -> tables.Manifest:
    """What a manifest records of an input file."""
    path = Path(path)
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": tables.checksum(path)}


@contextlib.contextmanager
def unchanged(paths: Sequence[str | Path]) -> Iterator[None]:
    """Raise if a file is written or replaced meanwhile.

    What is opened more than once, by one process or by several, is then the same each time, and
    its checksum is of what was read.
    """
    before = [_state(path) for path in paths]
    yield
    for path, state in zip(paths, before, strict=True):
        if _state(path) != state:
            raise LogevalError(
                f"{path}: was written or replaced while it was read; run the command again"
            )


def _state(path: str | Path) -> tuple[int, ...] | None:
    """Which file it is, its size and last change; shared file systems look when it is opened."""
    if is_stream(path):
        return None
    try:
        with open(path, "rb") as file:
            stat = os.fstat(file.fileno())
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def is_stream(path: str | Path) -> bool:
    """Standard input or a pipe: it can be read only once."""
    return str(path) == STDIN or not Path(path).is_file()


def total_bytes(paths: Sequence[str | Path]) -> int | None:
    """The size of all files; None with a stream among them."""
    if any(map(is_stream, paths)):
        return None
    return sum(Path(p).stat().st_size for p in paths)
