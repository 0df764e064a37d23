"""The tables that the stages share: checked reading and atomic writing.

Every stage writes a folder with Parquet files and a ``manifest.json`` (``manifests.py``). The
manifest is moved into place last, so a folder without one holds no table; a reader never sees
half of one.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from logeval.errors import LogevalError
from logeval.storage import files, locks, manifests
from logeval.storage.manifests import MANIFEST as MANIFEST
from logeval.storage.manifests import Manifest as Manifest
from logeval.storage.manifests import check_files as check_files
from logeval.storage.manifests import checksum as checksum
from logeval.storage.manifests import identity_of as identity_of
from logeval.storage.manifests import manifest_of as manifest_of
from logeval.storage.manifests import why as why
from logeval.storage.manifests import work_of as work_of
from logeval.storage.manifests import write_manifest as write_manifest
from logeval.storage.manifests import written_here
from logeval.storage.schemas import SERPS as SERPS
from logeval.storage.schemas import TABLES

MOVING_SECONDS = 10.0  # to wait for another process that is putting its files in place
OLD = ".old"  # where the entries that are being replaced wait for the new ones


def there_is(folder: Path | str) -> bool:
    """Whether a folder holds a table; one that is being replaced is waited for.

    If the process that replaced it was killed, the table of before is put back.
    """
    folder, until = Path(folder), time.monotonic() + MOVING_SECONDS
    while not (folder / MANIFEST).exists():
        if not any(folder.glob(f".*{files.PARTIAL}*/{OLD}")) or time.monotonic() > until:
            return False
        with contextlib.suppress(LogevalError, OSError):  # a folder that is read only
            recover(folder)
        time.sleep(locks.POLL_SECONDS)
    return True


def read_manifest(folder: Path | str) -> Manifest:
    """The manifest of a folder that a stage wrote."""
    files.check_name(folder)
    with contextlib.suppress(LogevalError):  # it may be taken away between a look and the next
        return manifests.read_manifest(folder)
    there_is(folder)
    return manifests.read_manifest(folder)


def identity(folder: Path | str) -> str:
    """What a folder holds, as a checksum."""
    return identity_of(read_manifest(folder))


def write_parquet(table: pa.Table, path: Path | pa.NativeFile, **tuned: Any) -> None:
    """Write one Parquet file (zstd), statistics on, one row group per 128 Ki rows."""
    how: dict[str, Any] = {"compression": "zstd", "compression_level": 1, "row_group_size": 1 << 17}
    pq.write_table(table, path, **how, **tuned)


def write_serps(table: pa.Table, path: Path) -> None:
    """Write SERPs: as ``write_parquet``, tuned to be half again as fast, and smaller.

    Numbers are stored as differences; statistics are kept of the columns people filter by. Where a
    log does not say which lists were in random order, there is no column for it. Arrow's default
    memory pool gives memory back to the system between any two columns, and takes a third of the
    time with it.
    """
    if table["random"].null_count == len(table):
        table = table.drop_columns("random")
    lists = [
        f.name for f in SERPS if pa.types.is_list(f.type) and pa.types.is_integer(f.type.value_type)
    ]
    numbers = [f.name for f in SERPS if pa.types.is_integer(f.type)]
    columns = numbers + [f"{name}.list.element" for name in lists]
    write_parquet(
        table,
        path,
        use_dictionary=False,
        column_encoding=dict.fromkeys(columns, "DELTA_BINARY_PACKED"),
        write_statistics=numbers,
        memory_pool=pa.system_memory_pool(),
    )


def list_column(rows: NDArray[Any]) -> pa.ListArray:
    """The rows of a matrix as a column of lists."""
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(offsets, np.ascontiguousarray(rows).ravel())


def read_table(path: Path | str, name: str) -> pa.Table:
    """Read the table ``name`` from its folder, checked against its checksum and its schema."""
    schema = TABLES[name]
    path = Path(path)
    file = path / f"{name}.parquet"
    _check_file(path, file)
    with open(file, "rb") as opened:  # and checked again: another may have taken its place
        _check_file(path, file)
        if not os.path.samestat(os.fstat(opened.fileno()), file.stat()):
            return read_table(path, name)
        table = pq.read_table(opened)
    for field in (f for f in schema if f.name not in table.column_names):
        if not field.nullable:
            raise LogevalError(f"{file}: column {field.name!r} is missing; write it again")
        table = table.append_column(field, pa.nulls(len(table), field.type))  # an older version's
    return table.select(schema.names).cast(schema)


def _check_file(path: Path, file: Path) -> None:
    """Raise unless a table is as its manifest says; one may be replaced while we look."""
    manifest = read_manifest(path)
    if file.name not in manifest["files"] and not file.exists():
        raise LogevalError(f"{path}: there is no {file.name} here; is it a {file.stem} folder?")
    try:
        check_files(path, manifest, [file.name])
    except LogevalError:
        if read_manifest(path) == manifest:
            raise
        _check_file(path, file)


@contextlib.contextmanager
def staged(
    out: Path | str, overwrite: bool | None = None, then: Callable[[], None] = lambda: None
) -> Iterator[Path]:
    """A folder to write into; its content appears in ``out`` by rename, or not at all.

    Whatever else is in ``out`` (say, ``models/`` below a log) stays. The manifest is taken away
    first and put in place last, so it vouches for the rest; if anything goes wrong on the way,
    or the process is killed, what was there before is put back. Nothing is replaced that the
    manifest in ``out`` does not list, for logeval did not write it. Only with ``overwrite`` files
    are replaced that changed since they were written; if it is False, nothing is replaced at all.
    ``then`` is called when all is in place and before another process may replace it again.

    Only the manifest is flushed to the disk. If the machine dies and a file was not, its checksum
    tells.
    """
    files.check_name(out)
    out = output_folder(Path(out))
    existed = out.exists()
    # inside an existing folder, which may be a file system of its own, else beside the new one
    home = out if existed else out.parent
    home.mkdir(parents=True, exist_ok=True)
    recover(out)
    with files.partial_folder(out, home) as staging:
        yield staging
        if out.exists() != existed:
            raise LogevalError(f"{out}: appeared while its content was made; see what it is")
        if not existed:
            staging.rename(out)
            then()
            (out / locks.LOCK).unlink()
        else:
            with _alone_in(out):
                _replace_entries(staging, out, overwrite)
                then()


def recover(out: Path) -> None:
    """Put back what was there before a writer of ``out`` was killed, and remove what it left."""
    out = output_folder(out)
    home = out if out.exists() else out.parent
    if any(True for _ in files.abandoned(home, out.name)):
        with _alone_in(out):
            files.remove_abandoned(home, out.name, rescue=lambda left: _roll_back(left, out))
    if out.is_dir():
        for left in files.abandoned(out):
            if not left.is_dir():
                with contextlib.suppress(OSError):  # a folder that is read only
                    files.remove(left)
        locks.clear(out)


def same_work(out: Path | str, manifest: Manifest) -> bool:
    """Whether ``out`` already holds what this manifest asks for, undamaged; it is tidied up."""
    recover(Path(out))
    return why(out, manifest) is None


@contextlib.contextmanager
def _alone_in(out: Path) -> Iterator[None]:
    """While files are moved; nobody else can be in a folder that does not exist yet."""
    if out.exists():
        with locks.holding(out, "another command", MOVING_SECONDS):
            yield
    else:
        yield


def output_folder(out: Path) -> Path:
    """The folder that a path stands for; an error if it is a file, or a link to itself."""
    files.check_name(out)
    try:
        out = out.resolve(strict=False)
        if out.is_symlink():  # a resolved one is not, but Python 3.13 says nothing of a loop
            raise OSError("a link that leads to itself")
        if out.exists() and not out.is_dir():
            raise LogevalError(f"{out}: is a file; name a folder for the output")
        if out == out.parent:  # no name for what is on its way there
            raise LogevalError(f"{out}: is the root of all files; name a folder for the output")
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        raise LogevalError(f"{out}: cannot be a folder for the output ({error})") from None
    return out


def _replace_entries(staging: Path, out: Path, overwrite: bool | None) -> None:
    made = {p.name for p in staging.iterdir()} - {locks.LOCK}
    new = sorted(made, key=lambda name: name == MANIFEST)
    old = _make_way(staging, out, new, overwrite)
    waiting = staging / OLD
    waiting.mkdir()
    try:
        for name in old:
            (out / name).rename(waiting / name)
        for name in new:
            (staging / name).rename(out / name)
    except BaseException:
        _roll_back(staging, out)
        raise
    files.flush(out)


def _make_way(staging: Path, out: Path, new: list[str], overwrite: bool | None) -> list[str]:
    """The entries of ``out`` that make way, the manifest first; an error if one must not."""
    check_output(out, _stage_of(staging), new, overwrite)
    in_the_way = [name for name in new if os.path.lexists(out / name)]
    ours = written_here(out)
    entries = {Path(name).parts[0] for name in ours}
    outdated = [
        name
        for name in entries.difference(in_the_way)
        if (out / name).exists() and not _foreign(out / name, out, ours)
    ]
    return sorted([*in_the_way, *outdated], key=lambda name: name != MANIFEST)


def check_output(
    out: Path | str, stage: str | None, names: Iterable[str] = (), overwrite: bool | None = None
) -> None:
    """Raise unless a stage may write entries of these names to ``out``; see ``staged``.

    Asked before the long part starts, and again when it is done.
    """
    out = output_folder(Path(out))
    in_the_way = [name for name in names if os.path.lexists(out / name)]
    if overwrite is False:
        check_free(out, in_the_way)
    if (made := _stage_of(out)) and made != stage:
        raise LogevalError(f"{out}: holds the output of {made}; choose another folder")
    ours = written_here(out)
    for name in in_the_way:
        if foreign := _foreign(out / name, out, ours):
            raise LogevalError(
                f"{foreign[0]}: was not written by logeval, so it is not replaced; "
                "move it away, or choose another folder"
            )
    for file in [] if overwrite else manifests.changed(out):
        raise LogevalError(
            f"{file}: changed since logeval wrote it (edited, or damaged), so it is not replaced; "
            "move it away, or delete it"
        )


def check_free(out: Path, names: Iterable[str]) -> None:
    """Raise if one of the entries that are going to be written is there already."""
    for name in names:
        if os.path.lexists(out / name):
            raise LogevalError(
                f"{out / name}: is there already; choose another folder, or replace it with "
                "overwrite=True"
            )


def _stage_of(folder: Path) -> str | None:
    with contextlib.suppress(LogevalError):
        return str(manifests.read_manifest(folder)["stage"])
    return None


def _foreign(entry: Path, out: Path, ours: set[str]) -> list[Path]:
    """The files of an entry that logeval did not write; it writes no links."""
    held = [entry]
    if entry.is_dir() and not entry.is_symlink():
        held = [f for f in entry.rglob("*") if f.is_symlink() or not f.is_dir()]
    return sorted(
        f
        for f in held
        if f.relative_to(out).as_posix() not in ours or f.is_symlink() or not f.is_file()
    )


def _roll_back(staging: Path, out: Path) -> None:
    """Put back what was being replaced when a process was stopped, the manifest last."""
    waiting = staging / OLD
    if not waiting.is_dir() or not (staging / MANIFEST).exists():
        return  # nothing was moved yet, or everything is in place
    for name in {Path(name).parts[0] for name in written_here(staging)} - {MANIFEST}:
        if not (staging / name).exists():
            (out / name).rename(staging / name)
    for entry in sorted(waiting.iterdir(), key=lambda entry: entry.name == MANIFEST):
        entry.rename(out / entry.name)
