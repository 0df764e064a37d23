"""Tables on disk: a manifest of immutable files, one writer at a time, and a commit of one rename.

A stage writes a folder with Parquet files and ``manifest.json``. A Parquet file carries the CRC-32
of its bytes in its name (``models-1c291ca3.parquet``) and is never changed; a table is what the
manifest names. It says as well what made the folder, from what, with which arguments, so it is the
one answer to two questions. Is the folder up to date? (Same version, arguments and inputs.) Are its
files whole? (Size and CRC-32 of each; reading a table checks it.)

A writer holds the lock of the folder. It writes into ``.logeval.partial`` inside, moves what is
ready under names that nobody reads yet, and replaces the manifest by one rename: until then there
is the old table, from then on the new one, whoever is killed when. What the manifest does not name
any more is removed after that, by the same writer or by the next one. Files that people open by
name (``index.html``, figures, ``rejects.tsv``) come into their places after the manifest, in the
same way. Whatever else is in a folder, say ``models/`` below a log, logeval did not write: it
stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import logeval
from logeval.errors import LogevalError
from logeval.storage import files
from logeval.storage.schemas import SERPS, TABLES

MANIFEST = "manifest.json"
FORMAT = 2  # of the manifest; 1 vouched for files that were replaced under their names
STAGING = ".logeval.partial"  # where a writer has what is not in its place yet
JOURNAL = "journal.json"  # in there: which files a writer replaces, and which it puts in place
BY_CONTENT = re.compile(r"-([0-9a-f]{8})\.parquet$")
REMEDY = "move its folder away, or delete it, and write it again"
DONE = ("stage", "version", "arguments", "inputs")  # what was done, of all that is known
Manifest = dict[str, Any]
T = TypeVar("T")


class OtherVersion(LogevalError):
    """A folder that another version of logeval wrote, in a format that this one does not read."""


# -- manifests --------------------------------------------------------------------------------


def manifest_of(
    stage: str, arguments: Manifest, inputs: Iterable[Manifest], **more: Any
) -> Manifest:
    """A manifest: what made the table, from what, with which arguments.

    ``again`` is the command that makes it again.
    """
    return {
        "stage": stage,
        "version": logeval.__version__,
        "arguments": arguments,
        "inputs": list(inputs),
        **more,
    }


def write_manifest(folder: Path, manifest: Manifest, kept: Mapping[str, Manifest] = {}) -> None:
    """Write the manifest of all files in a folder that is being staged; tables get their names.

    ``kept`` are the records of files that are in their place already, and stay.
    """
    records = dict(kept)
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file != folder / MANIFEST:
            files.flush(file)
            found = record(file)
            if file.suffix == ".parquet" and not file.stem.endswith(f"-{found['crc32']}"):
                file = file.rename(file.with_stem(f"{file.stem}-{found['crc32']}"))
            records[file.relative_to(folder).as_posix()] = found
    write_records(folder, {**manifest, "files": records})


def write_records(folder: Path, manifest: Manifest) -> None:
    """Write a manifest that has its records of files already."""
    manifest = {**manifest, "format": FORMAT}
    manifest["checksum"] = _own_checksum(manifest)
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8", newline="\n")


def _own_checksum(manifest: Manifest) -> str:
    """CRC-32 of all that a manifest says."""
    said = {key: value for key, value in manifest.items() if key != "checksum"}
    as_read = json.loads(json.dumps(said))
    return f"{zlib.crc32(json.dumps(as_read, sort_keys=True).encode()):08x}"


def record(file: Path) -> Manifest:
    """What a manifest says of a file."""
    found: Manifest = {"bytes": file.stat().st_size, "crc32": files.crc32(file)}
    if file.suffix == ".parquet":
        found["rows"] = pq.read_metadata(file).num_rows
    return found


def there_is(folder: Path | str) -> bool:
    """Whether a folder holds a table."""
    return (Path(folder) / MANIFEST).exists()


def read_manifest(path: Path | str) -> Manifest:
    """The manifest of a folder that a stage wrote."""
    files.check_name(path)
    file = Path(path) / MANIFEST
    if not file.exists():
        remedy = "run the stage that makes it" if Path(path).exists() else "check the path"
        raise LogevalError(f"{path}: there is no {MANIFEST} here; {remedy}")
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise LogevalError(f"{file}: not a manifest ({error}); {REMEDY}") from None
    kinds = {"stage": str, "version": str, "arguments": dict, "inputs": list, "files": dict}
    whole = isinstance(found, dict) and all(isinstance(found.get(k), kinds[k]) for k in kinds)
    if whole and found.get("format") != FORMAT and found.get("checksum") == _own_checksum(found):
        raise OtherVersion(
            f"{path}: was written by another version of logeval ({found['version']}); write it "
            "again, into another folder"
        )
    records = [found["files"], found.get("figures", {})] if whole else []
    if (
        not whole
        or found.get("checksum") != _own_checksum(found)
        or not all(
            isinstance(one, dict) and {"bytes", "crc32"} <= one.keys() and _is_below(name)
            for listed in records
            for name, one in listed.items()
        )
    ):
        raise LogevalError(
            f"{file}: not a manifest as logeval wrote it (damaged, or edited by hand); {REMEDY}"
        )
    return found  # type: ignore[no-any-return]


def _is_below(name: str) -> bool:
    """Whether a name is that of a file below its folder, and not ``/`` or ``../a``."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and not {"..", "\0"} & {*path.parts, *name}


def _records(manifest: Manifest) -> Manifest:
    """Of all files that a manifest lists."""
    return {**manifest["files"], **manifest.get("figures", {})}


def identity(folder: Path | str) -> str:
    """What a folder holds, as a checksum."""
    return identity_of(read_manifest(folder))


def identity_of(manifest: Manifest, parts: tuple[str, ...] = (*DONE, "files")) -> str:
    """What the folder of a manifest holds, as a checksum; the same work done again has the same."""
    kept = [manifest[key] for key in parts]
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def work_of(manifest: Manifest) -> str | None:
    """What was done, as a checksum; the same work has the same result. None: nobody knows."""
    known = manifest.get("inputs") or manifest.get("arguments")
    return identity_of(manifest, DONE) if known else None


def checksum(path: Path) -> str:
    """SHA-256 of a file: the identity of an input."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stamp(path: str | Path | int) -> Manifest:
    """Size and time of last change: whether a file is still the same, as make and rsync decide.

    A number is the descriptor of a file that is open.
    """
    stat = os.stat(path)
    return {"bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def command(folder: Path, manifest: Mapping[str, Any]) -> str:
    """The command that makes a folder again."""
    return str(manifest.get("again") or "run its stage").replace(
        "{folder}", shlex.quote(str(folder))
    )


def why(path: Path | str, wanted: Manifest) -> str | None:
    """Why ``path`` does not hold what a manifest asks for; None if it does."""
    path = Path(path)
    if not there_is(path):
        return "there is no output yet"
    try:
        found = read_manifest(path)
    except OtherVersion:
        return "it was written by another version of logeval"
    except LogevalError:
        return f"its {MANIFEST} cannot be read"
    wanted = json.loads(json.dumps(wanted))
    if found["stage"] != wanted["stage"]:
        return f"it was made by {found['stage']}"
    if found["version"] != wanted["version"]:
        return f"it was made by logeval {found['version']}"
    for key in sorted({*found["arguments"], *wanted["arguments"]}):
        old, new = found["arguments"].get(key), wanted["arguments"].get(key)
        if old != new:
            return f"{key} was {_shown(old)}, and is {_shown(new)}"
    if found["inputs"] != wanted["inputs"]:
        return "its input has changed"
    try:
        check_files(path, found)
    except LogevalError as error:
        return str(error).partition(";")[0]
    return None


def _shown(value: Any) -> str:
    text = "unset" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else "another one"


def same_work(out: Path | str, manifest: Manifest) -> bool:
    """Whether ``out`` already holds what this manifest asks for, undamaged; it is tidied up."""
    recover(Path(out))
    return why(out, manifest) is None


# -- reading ----------------------------------------------------------------------------------


def file_of(manifest: Mapping[str, Any], name: str) -> str | None:
    """The file of a table, as ``runs`` or ``names/item``, below its folder."""
    ours = (file for file in manifest["files"] if BY_CONTENT.sub("", file) == name)
    return next((file for file in ours if BY_CONTENT.search(file)), None)


def path_of(folder: Path | str, name: str) -> Path:
    """The file that holds a table, for pandas, DuckDB and others."""
    return Path(folder) / _file_in(folder, read_manifest(folder), name)


def _file_in(folder: Path | str, manifest: Manifest, name: str) -> str:
    if (file := file_of(manifest, name)) is None:
        raise LogevalError(f"{folder}: there is no table {name} here; is it a {name} folder?")
    return file


def read_table(path: Path | str, name: str) -> pa.Table:
    """Read the table ``name`` from its folder, checked against its checksum and its schema."""
    return consistent(path, lambda manifest: table_of(path, manifest, name))


def consistent(folder: Path | str, read: Callable[[Manifest], T]) -> T:
    """What ``read`` makes of the files of one manifest; again if they went as others came."""
    manifest = read_manifest(folder)
    while True:
        try:
            return read(manifest)
        except (LogevalError, OSError):
            before, manifest = manifest, read_manifest(folder)
            if manifest == before:
                raise


def table_of(folder: Path | str, manifest: Manifest, name: str) -> pa.Table:
    """A table that a manifest names, checked."""
    schema, file, folder = TABLES[name], _file_in(folder, manifest, name), Path(folder)
    content = b""
    with contextlib.suppress(FileNotFoundError):
        content = (folder / file).read_bytes()
    if f"{zlib.crc32(content):08x}" != manifest["files"][file]["crc32"]:
        check_files(folder, manifest, [file])
    table = pq.read_table(pa.BufferReader(content))
    for field in (f for f in schema if f.name not in table.column_names):
        if not field.nullable:
            raise LogevalError(f"{folder / file}: column {field.name!r} is missing; write it again")
        table = table.append_column(field, pa.nulls(len(table), field.type))  # an older version's
    try:
        return table.select(schema.names).cast(schema)
    except pa.ArrowException:
        raise OtherVersion(
            f"{folder / file}: is laid out as another version of logeval does; make it again: "
            f"{command(folder, manifest)}"
        ) from None


def check_files(
    folder: Path, manifest: Mapping[str, Any], names: Iterable[str] | None = None
) -> None:
    """Raise unless the files of a manifest (or those named) are there, and as they were written."""
    listed = manifest["files"]
    remedy = f"make it again: {command(folder, manifest)}"
    for name in listed if names is None else names:
        file = folder / name
        if name not in listed:
            raise LogevalError(f"{file}: is not in {folder / MANIFEST}; {remedy}")
        if not file.is_file():
            raise LogevalError(f"{file}: is missing; {remedy}")
        if not _is(file, listed[name]):
            first = "" if "--overwrite" in remedy else "delete it and "
            raise LogevalError(
                f"{file}: is damaged (not the bytes that its manifest vouches for); {first}{remedy}"
            )


def _is(file: Path, record: Manifest) -> bool:
    return bool(file.stat().st_size == record["bytes"] and files.crc32(file) == record["crc32"])


# -- writing ----------------------------------------------------------------------------------


def write_parquet(table: pa.Table, path: Path | pa.NativeFile, **tuned: Any) -> None:
    """Write one Parquet file (zstd), statistics on, one row group per 128 Ki rows."""
    how: dict[str, Any] = {"compression": "zstd", "compression_level": 1, "row_group_size": 1 << 17}
    pq.write_table(table, path, **how, **tuned)


def write_serps(table: pa.Table, path: Path) -> None:
    """Write SERPs: as ``write_parquet``, tuned to be half again as fast, and smaller.

    Numbers are stored as differences; statistics are kept of the columns people filter by. What few
    logs say has no column where nothing of it is known. Arrow's default
    memory pool gives memory back to the system between any two columns, and takes a third of the
    time with it.
    """
    for name in ("random", "rewards", "first"):
        if table[name].null_count == len(table):
            table = table.drop_columns(name)
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


@contextlib.contextmanager
def staged(
    out: Path | str, overwrite: bool | None = None, then: Callable[[], None] = lambda: None
) -> Iterator[Path]:
    """A folder to write into, with a manifest at the end; its content becomes that of ``out``.

    Nothing is replaced that the manifest in ``out`` does not list, for logeval did not write it.
    Only with ``overwrite`` files are replaced that changed since they were written; if it is False,
    nothing is replaced at all. ``then`` is called when all is in place and before another process
    may replace it again.
    """
    out = output_folder(Path(out))
    with writing(out) as staging:
        _found_in(out)
        yield staging
        made = read_manifest(staging)
        check_output(out, made["stage"], made["files"], overwrite)
        commit(out)
        then()


@contextlib.contextmanager
def writing(
    out: Path, doing: str = "another command", seconds: float = files.WAIT_SECONDS
) -> Iterator[Path]:
    """Hold a folder, which is made if need be, as its one writer; yields the folder to stage in."""
    out = output_folder(out)
    with contextlib.ExitStack() as held:
        if not out.exists():
            held.callback(_remove_if_empty, out)
        while True:
            out.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # another one failed, and removed it
                held.enter_context(files.holding(out, doing, seconds))
                break
        try:
            _tidy(out)
            (out / STAGING).mkdir()
            yield out / STAGING
        finally:
            _tidy(out)


def commit(out: Path) -> None:
    """Make what a writer staged, with its manifest, the content of the folder it holds."""
    staging = out / STAGING
    made = read_manifest(staging)["files"]
    new = [name for name in made if BY_CONTENT.search(name) and (staging / name).exists()]
    old = _records(found) if (found := _found_in(out)) else {}
    (staging / JOURNAL).write_text(json.dumps([*old, *new]), encoding="utf-8")
    for name in new:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(staging / name, out / name)
    for folder in {(out / name).parent for name in new} - {out}:
        files.flush(folder)
    files.put_in_place(staging / MANIFEST, out / MANIFEST)
    _tidy(out)
    staging.mkdir()


def _tidy(out: Path) -> None:
    """End what a writer began: files that people open come into their places, old ones go.

    If it was killed before its manifest was in place, what it had moved goes instead.
    """
    staging = out / STAGING
    if not staging.is_dir() or staging.is_symlink():
        return
    named, gone = Manifest(), []
    with contextlib.suppress(LogevalError, OSError, ValueError):
        named = _records(read_manifest(out)) if there_is(out) else {}
        gone = json.loads((staging / JOURNAL).read_bytes())
    for name, vouched in named.items():
        if (staging / name).is_file() and _is(staging / name, vouched):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(staging / name, out / name)
    for name in gone:
        if name not in named:
            with contextlib.suppress(OSError):  # Windows: somebody reads it; the next writer, then
                (out / name).unlink(missing_ok=True)
            for folder in (out / name).parents[: len(PurePosixPath(name).parts) - 1]:
                _remove_if_empty(folder)
    files.remove(staging)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def recover(out: Path) -> None:
    """End what a killed writer of ``out`` began; if one is at work, or none may be, it stays."""
    out = output_folder(out)
    if (out / STAGING).is_dir() or (out / files.LOCK).exists():
        with contextlib.suppress(LogevalError, OSError), files.holding(out, "another command", 0):
            _tidy(out)


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


def check_output(
    out: Path | str, stage: str | None, names: Iterable[str] = (), overwrite: bool | None = None
) -> None:
    """Raise unless a stage may write files of these names to ``out``; see ``staged``.

    Asked before the long part starts, and again when it is done.
    """
    out = output_folder(Path(out))
    found = _found_in(out)
    if overwrite is False:
        check_free(out, [MANIFEST, *names])
    if found and found["stage"] != stage:
        raise LogevalError(f"{out}: holds the output of {found['stage']}; choose another folder")
    ours = _records(found) if found else {}
    for name in names:
        file = out / name
        folders = [out / above for above in list(PurePosixPath(name).parents)[:-1]]
        foreign = [f for f in folders if os.path.lexists(f) and (f.is_symlink() or not f.is_dir())]
        if os.path.lexists(file) and not (name in ours and _regular(file)) and not _named(file):
            foreign.append(file)
        if foreign:
            raise LogevalError(
                f"{foreign[0]}: was not written by logeval, so it is not replaced; move it away, "
                "or choose another folder"
            )
    for file in [] if overwrite or found is None else changed(out, found):
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


def _found_in(out: Path) -> Manifest | None:
    """The manifest of a folder that is going to be written to, if it has one."""
    return read_manifest(out) if there_is(out) else None


def _named(file: Path) -> bool:
    """Whether a file carries its checksum in its name."""
    match = BY_CONTENT.search(file.name)
    return match is not None and _regular(file) and files.crc32(file) == match[1]


def _regular(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def changed(folder: Path, manifest: Manifest, names: Iterable[str] | None = None) -> list[Path]:
    """The files of a folder (or those named) that are there, and not as logeval wrote them."""
    known = _records(manifest)
    there = [name for name in (known if names is None else names) if os.path.lexists(folder / name)]
    return [
        folder / name
        for name in there
        if name not in known or not (folder / name).is_file() or not _is(folder / name, known[name])
    ]


# -- figures beside a table -------------------------------------------------------------------


def check_figures(folder: Path | None, *names: str) -> None:
    """Raise if a figure would take the place of a file that logeval did not write, or not so."""
    if folder is None:
        return
    for file in changed(folder, _found_in(folder) or {"files": {}}, names):
        raise LogevalError(
            f"{file}: was not written by logeval, or changed since, so it is not replaced; "
            "move it away, or choose another folder"
        )


@contextlib.contextmanager
def figure_in(folder: Path, name: str) -> Iterator[Path]:
    """Where to write a figure beside its table; the manifest lists it, for the next time."""
    with writing(folder) as staging:
        check_figures(folder, name)
        yield staging / name
        manifest = read_manifest(folder)
        figures = manifest.get("figures", {}) | {name: record(staging / name)}
        write_records(staging, manifest | {"figures": figures})
        commit(output_folder(folder))
