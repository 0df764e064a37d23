"""``manifest.json``: what made a folder, from what, with which arguments, and every file in it.

It is the one answer to two questions. Is the folder up to date? (Same version, arguments and
inputs.) Are its files whole? (Size and CRC-32 of each; reading a table checks those it reads.)
What the manifest does not list, logeval did not write. It vouches for itself as well, by its
``checksum``, so it is not to be edited.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow.parquet as pq

import logeval
from logeval.errors import LogevalError
from logeval.storage import files
from logeval.storage.locks import LOCK

MANIFEST = "manifest.json"
MARKER = ".logeval"  # the names of what was written, for the day on which the manifest is damaged
DONE = ("stage", "version", "arguments", "inputs")  # what was done, of all that is known
Manifest = dict[str, Any]


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


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder, with size, checksum and rows of every file in it."""
    listed = [f for f in sorted(folder.rglob("*")) if f.is_file()]
    names = {f.relative_to(folder).as_posix(): f for f in listed}
    for name in (MANIFEST, MARKER, LOCK):
        names.pop(name, None)
    records = {name: record(f) for name, f in names.items()}
    write_records(folder, {**manifest, "files": records})


def write_records(folder: Path, manifest: Manifest) -> None:
    """Write a manifest that has its records of files already."""
    files.write_text(folder / MARKER, "".join(f"{name}\n" for name in manifest["files"]))
    manifest = {**manifest, "checksum": _own_checksum(manifest)}
    files.write_text(folder / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True) + "\n")


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


def read_manifest(path: Path | str) -> Manifest:
    """The manifest of a folder that a stage wrote."""
    files.check_name(path)
    file = Path(path) / MANIFEST
    if not file.exists():
        remedy = "run the stage that makes it" if Path(path).exists() else "check the path"
        raise LogevalError(f"{path}: there is no {MANIFEST} here; {remedy}")
    try:
        manifest = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise LogevalError(f"{file}: not a manifest ({error}); write the table again") from None
    if not _is_manifest(manifest):
        raise LogevalError(
            f"{file}: not a manifest as logeval wrote it (damaged, of another version, or edited "
            "by hand); write the table again"
        )
    return manifest  # type: ignore[no-any-return]


def _is_manifest(found: Any) -> bool:
    """Whether it has all parts of a manifest, is unchanged, and names only files of its folder."""
    kinds = {"stage": str, "version": str, "arguments": dict, "inputs": list, "files": dict}
    if not isinstance(found, dict) or not all(isinstance(found.get(k), kinds[k]) for k in kinds):
        return False
    if found.get("checksum", own := _own_checksum(found)) != own:  # earlier versions wrote none
        return False
    listed = [found["files"], found.get("replaced", {}), found.get("figures", {})]
    return all(
        isinstance(record, dict) and {"bytes", "crc32"} <= record.keys() and _is_below(name)
        for records in listed
        for name, record in records.items()
    )


def _is_below(name: str) -> bool:
    """Whether a name is that of a file below its folder, and not ``/`` or ``../a``."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and not {"..", "\0"} & {*path.parts, *name}


def check_files(folder: Path, manifest: Manifest, names: Iterable[str] | None = None) -> None:
    """Raise unless the files of a manifest (or those named) are there, and as they were written.

    Folders below ``folder`` that hold such files may hold no others.
    """
    listed = manifest["files"]
    wanted = listed if names is None else list(names)
    remedy = f"make it again: {command(folder, manifest)}"
    for name in wanted:
        file = folder / name
        if name not in listed:
            raise LogevalError(f"{file}: is not in {folder / MANIFEST}; {remedy}")
        if not file.is_file():
            raise LogevalError(f"{file}: is missing; {remedy}")
        # a table that grows is replaced after its manifest: until then the old one is right
        known = [listed[name], *filter(None, [manifest.get("replaced", {}).get(name)])]
        if not any(_is(file, record) for record in known):
            first = "" if "--overwrite" in remedy else "delete it and "
            raise LogevalError(
                f"{file}: is damaged (not the bytes that its manifest vouches for); {first}{remedy}"
            )
    for inner in sorted({(folder / name).parent for name in wanted} - {folder}):
        for file in sorted(inner.iterdir()):
            ours = file.is_dir() or file.relative_to(folder).as_posix() in listed
            if not ours and not file.name.startswith("."):
                raise LogevalError(f"{file}: was not written by logeval; move it away")


def _is(file: Path, record: Manifest) -> bool:
    return bool(file.stat().st_size == record["bytes"] and files.crc32(file) == record["crc32"])


def command(folder: Path, manifest: Manifest) -> str:
    """The command that makes a folder again."""
    return str(manifest.get("again") or "run its stage").replace(
        "{folder}", shlex.quote(str(folder))
    )


def why(path: Path | str, wanted: Manifest) -> str | None:
    """Why ``path`` does not hold what a manifest asks for; None if it does."""
    path = Path(path)
    if not (path / MANIFEST).exists():
        return "there is no output yet"
    try:
        found = read_manifest(path)
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


def written_here(folder: Path) -> set[str]:
    """The files of a folder that logeval wrote; none if nothing says so."""
    if not (folder / MANIFEST).exists():
        return set()
    with contextlib.suppress(LogevalError):
        return {MANIFEST, MARKER, *_records(read_manifest(folder))}
    with contextlib.suppress(OSError, UnicodeDecodeError):
        names = (folder / MARKER).read_text(encoding="utf-8").split("\n")[:-1]
        return {MANIFEST, MARKER, *filter(_is_below, names)}
    return set()


def changed(folder: Path, names: Iterable[str] | None = None) -> list[Path]:
    """The files of a folder (or those named) that are there, and not as logeval wrote them."""
    known: Manifest = {}
    with contextlib.suppress(LogevalError):
        known = _records(read_manifest(folder))
    there = [name for name in (known if names is None else names) if os.path.lexists(folder / name)]
    return [
        folder / name
        for name in there
        if name not in known or not (folder / name).is_file() or not _is(folder / name, known[name])
    ]


def check_figures(folder: Path | None, *names: str) -> None:
    """Raise if a figure would take the place of a file that logeval did not write, or not so."""
    for file in changed(folder, names) if folder is not None else []:
        raise LogevalError(
            f"{file}: was not written by logeval, or changed since, so it is not replaced; "
            "move it away, or choose another folder"
        )


@contextlib.contextmanager
def figure_in(folder: Path, name: str) -> Iterator[Path]:
    """Where to write a figure beside its table; the manifest lists it, for the next time."""
    check_figures(folder, name)
    yield folder / name
    manifest = read_manifest(folder)
    manifest["figures"] = manifest.get("figures", {}) | {name: record(folder / name)}
    write_records(folder, manifest)


def _records(manifest: Manifest) -> Manifest:
    """Of all files that a manifest lists."""
    return {**manifest["files"], **manifest.get("figures", {})}


def _shown(value: Any) -> str:
    text = "unset" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else "another one"
