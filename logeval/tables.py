"""The tables that the stages share: manifests, checked reading, and atomic writing.

Every stage writes a folder with Parquet files and a ``manifest.json``. The manifest is moved
into place last, so a folder without one holds no table; a reader never sees half of one.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import logeval
from logeval.errors import LogevalError
from logeval.schemas import CLICK_STATISTICS as CLICK_STATISTICS
from logeval.schemas import FACTORS as FACTORS
from logeval.schemas import FEATURES as FEATURES
from logeval.schemas import HARDNESS as HARDNESS
from logeval.schemas import MODELS as MODELS
from logeval.schemas import QUALITY as QUALITY
from logeval.schemas import RUNS as RUNS
from logeval.schemas import SERPS as SERPS
from logeval.schemas import TABLES as TABLES
from logeval.schemas import USER_FEATURES as USER_FEATURES

MANIFEST = "manifest.json"
Manifest = dict[str, Any]


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write one Parquet file (zstd), statistics on, one row group per 128 Ki rows."""
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=1,
        row_group_size=1 << 17,
    )


def write_serps(table: pa.Table, path: Path) -> None:
    """Write SERPs: as ``write_parquet``, tuned to be half again as fast, and smaller.

    Numbers are stored as differences; statistics are kept of the columns people filter by.
    """
    lists = [f.name for f in SERPS if pa.types.is_list(f.type)]
    numbers = [f.name for f in SERPS if pa.types.is_integer(f.type)]
    columns = numbers + [f"{name}.list.element" for name in lists]
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=1,
        row_group_size=1 << 17,
        use_dictionary=False,
        column_encoding=dict.fromkeys(columns, "DELTA_BINARY_PACKED"),
        write_statistics=numbers,
        memory_pool=pa.system_memory_pool(),  # the default one gives memory back to the system
    )  # between any two columns, and takes a third of the time with it


def read_table(path: Path, name: str) -> pa.Table:
    """Read the table ``name`` from its folder, checked against its schema."""
    schema = TABLES[name]
    read_manifest(path)
    file = Path(path) / f"{name}.parquet"
    if not file.exists():
        raise LogevalError(f"{path}: there is no {name}.parquet here; is it a {name} folder?")
    table = pq.read_table(file)
    missing = [n for n in schema.names if n not in table.column_names]
    if missing:
        raise LogevalError(f"{file}: column {missing[0]!r} is missing; write it again")
    return table.select(schema.names).cast(schema)


def read_manifest(path: Path | str) -> Manifest:
    """The manifest of a folder that a stage wrote."""
    file = Path(path) / MANIFEST
    if not file.exists():
        remedy = "run the stage that makes it" if Path(path).exists() else "check the path"
        raise LogevalError(f"{path}: there is no {MANIFEST} here; {remedy}")
    try:
        manifest: Manifest = json.loads(file.read_text())
    except ValueError as error:
        raise LogevalError(f"{file}: not a manifest ({error}); write the table again") from None
    return manifest


def manifest_of(
    stage: str, arguments: Manifest, inputs: Iterable[Manifest], **more: Any
) -> Manifest:
    """A manifest: what made the table, from what, with which arguments."""
    return {
        "stage": stage,
        "version": logeval.__version__,
        "arguments": arguments,
        "inputs": list(inputs),
        **more,
    }


def same_work(path: Path, manifest: Manifest) -> bool:
    """Whether ``path`` already holds what this manifest asks for."""
    with contextlib.suppress(LogevalError):
        found = read_manifest(path)
        keys = ("stage", "version", "arguments", "inputs")
        return all(found.get(key) == manifest[key] for key in keys)
    return False


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def staged(out: Path | str, overwrite: bool = True) -> Iterator[Path]:
    """A folder to write into; its content appears in ``out`` by rename, or not at all.

    Whatever else is in ``out`` (say, ``models/`` below a log) stays. The manifest is taken
    away first and put in place last, so it vouches for the rest; if anything goes wrong on the
    way, what was there before is put back. Without ``overwrite`` nothing that is there is
    replaced.
    """
    out = Path(out).resolve()
    if out.exists() and not out.is_dir():
        raise LogevalError(f"{out}: is a file; name a folder for the output")
    existed = out.exists()
    # inside an existing folder, which may be a file system of its own, else beside the new one
    home = out if existed else out.parent
    home.mkdir(parents=True, exist_ok=True)
    _remove_stale(home, f".{out.name}.partial-")
    staging = Path(tempfile.mkdtemp(prefix=f".{out.name}.partial-{_owner()}-", dir=home))
    staging.chmod(0o755)
    try:
        yield staging
        if out.exists() != existed:
            raise LogevalError(f"{out}: appeared while its content was made; see what it is")
        if not existed:
            staging.rename(out)
        else:
            _replace_entries(staging, out, overwrite)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _replace_entries(staging: Path, out: Path, overwrite: bool) -> None:
    names = sorted((p.name for p in staging.iterdir()), key=lambda name: name == MANIFEST)
    there = [name for name in names if (out / name).exists()]
    if there and not overwrite:
        raise LogevalError(
            f"{out / there[0]}: is there already; choose another folder, or --overwrite"
        )
    if (staging / MANIFEST).exists() and (out / MANIFEST).exists():
        made, makes = (read_manifest(folder).get("stage") for folder in (out, staging))
        if made != makes:
            raise LogevalError(f"{out}: holds the output of {made}; choose another folder")
    old = staging / ".old"
    old.mkdir()
    placed: list[str] = []
    try:
        for name in reversed(there):  # the manifest first
            (out / name).rename(old / name)
        for name in names:  # the manifest last
            (staging / name).rename(out / name)
            placed.append(name)
    except BaseException:
        for name in placed:
            (out / name).rename(staging / name)
        for kept in old.iterdir():
            kept.rename(out / kept.name)
        raise


def _owner() -> str:
    return f"{platform.node()}-{os.getpid()}"


def _remove_stale(home: Path, prefix: str) -> None:
    """Remove what processes of this machine that were killed left behind."""
    for folder in home.glob(f"{glob.escape(prefix)}*"):
        node, _, rest = folder.name.removeprefix(prefix).rpartition(f"{platform.node()}-")
        pid = rest.partition("-")[0]
        if not node and pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder."""
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
