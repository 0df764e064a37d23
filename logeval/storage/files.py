"""Atomic writing: a file is there whole, or as it was before.

Every file that logeval puts beside others is written here: under a temporary name next to its
target, flushed to the disk, and renamed. Its writer holds a lock on it, so what a killed process
left behind is recognised and removed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from logeval.errors import LogevalError, short
from logeval.storage import locks

PARTIAL = ".partial-"
KINDS = {
    "a folder": stat.S_ISDIR,
    "a symbolic link": stat.S_ISLNK,
    "a pipe": stat.S_ISFIFO,
    "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
}


@contextlib.contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """A file to write to that takes the place of ``path`` when the block ends well.

    The temporary file is removed when anything goes wrong.
    """
    path = Path(path)
    check_regular(path)
    with partial_file(path) as temporary:
        yield temporary
        put_in_place(temporary, path)


def put_in_place(temporary: Path, path: Path) -> None:
    """Rename a file that is complete, and see to it that it is on the disk."""
    flush(temporary)
    check_regular(path)
    os.replace(temporary, path)
    flush(path.parent)


def check_name(path: Path | str) -> None:
    """Raise for what is no name, or not UTF-8: neither Arrow nor DuckDB can open it."""
    if not isinstance(path, str | Path):
        raise LogevalError(f"{short(path)}: is not the name of a file or folder; give its path")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise LogevalError(f"{path}: the name is not UTF-8; choose another one") from None


def check_regular(path: Path) -> None:
    """Raise if something is there that is not a regular file: a rename would destroy it."""
    with contextlib.suppress(FileNotFoundError):
        kind = path.lstat().st_mode
        if not stat.S_ISREG(kind):
            what = next((name for name, has in KINDS.items() if has(kind)), "not a regular file")
            raise LogevalError(f"{path}: is {what}, so it is not replaced; name another file")


def write_text(path: Path | str, text: str) -> None:
    """Write a text file (UTF-8) by rename."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextlib.contextmanager
def partial_file(path: Path) -> Iterator[Path]:
    """A new temporary file beside ``path``, removed when the block ends.

    Those that killed processes left are removed first. It is made by ``O_EXCL``, so a link that was
    put there before is not followed.
    """
    remove_abandoned(path.parent, path.name)
    while True:
        temporary = partial_name(path)
        with locks.locked(temporary, os.O_CREAT | os.O_EXCL) as ours:
            if ours is False:  # another process was quicker, took it for abandoned, and removes it
                continue
            try:
                yield temporary
            finally:
                temporary.unlink(missing_ok=True)
            return


@contextlib.contextmanager
def partial_folder(path: Path, home: Path, mode: int = 0o777) -> Iterator[Path]:
    """A new temporary folder in ``home`` on its way to ``path``, removed when the block ends."""
    with contextlib.ExitStack() as held:
        while True:
            folder = home / partial_name(path).name
            folder.mkdir(mode)
            with contextlib.suppress(FileNotFoundError):  # another process was quicker, as above
                if held.enter_context(locks.locked(folder / locks.LOCK, os.O_CREAT)) is not False:
                    break
        try:
            yield folder
        finally:
            remove(folder)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for what does not fit into memory; those that killed processes left are removed."""
    home = Path(tempfile.gettempdir())
    remove_abandoned(home, "logeval")
    with partial_folder(home / "logeval", home, 0o700) as folder:
        yield folder


def partial_name(path: Path) -> Path:
    """A new name beside ``path``; machine and process count where there are no locks."""
    name = f".{path.name}{PARTIAL}{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
    return path.with_name(name)


def abandoned(home: Path, name: str | None = None) -> Iterator[Path]:
    """What processes that are no more left in ``home`` (on their way to ``name``).

    Each is locked while it is looked at, so two processes never take care of the same. Folders may
    hold what is to be put back (``logeval.storage.tables``); files are of no use to anybody.
    """
    target = ".+" if name is None else re.escape(name)
    ours = re.compile(rf"\.{target}{re.escape(PARTIAL)}(.+)-(\d+)-[0-9a-f]+", re.S)
    for left in home.glob(f".*{PARTIAL}*"):
        match = ours.fullmatch(left.name)
        if match is None or left.is_symlink():
            continue
        file, flags = (left / locks.LOCK, os.O_CREAT) if left.is_dir() else (left, 0)
        dead = match[1] == platform.node() and not locks.process_alive(int(match[2]))
        with (
            contextlib.suppress(OSError),  # gone already, or in a folder that is read only
            locks.locked(file, flags) as free,
        ):
            if free or (free is None and dead):
                yield left


def remove_abandoned(
    home: Path, name: str | None = None, rescue: Callable[[Path], None] = lambda left: None
) -> None:
    """Remove what killed processes left in ``home``; ``rescue`` sees it before it goes."""
    for left in abandoned(home, name):
        rescue(left)
        remove(left)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Have the system write a file, or the entries of a folder, to the disk."""
    with contextlib.suppress(PermissionError):  # a folder that we may write to, but not read
        # Windows flushes only what is open for writing, and no folder (PermissionError)
        descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def crc32(path: Path) -> str:
    """CRC-32 of a file, as eight hexadecimal digits.

    It finds every flipped bit and every damage of up to 32 bits in a row, and one in 4 billion of
    all others goes unnoticed. It is against accidents; who wants to deceive can.
    """
    value = 0
    block = bytearray(1 << 20)
    view = memoryview(block)
    with open(path, "rb", buffering=0) as file:
        while n := file.readinto(block):
            value = zlib.crc32(view[:n], value)
    return f"{value:08x}"
