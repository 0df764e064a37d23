"""Files that are there whole, or as they were before; locks; folders for what is passing.

A file is written under a hidden name beside its target, flushed to the disk, and renamed. One
process at a time does so: whatever carries the hidden name when the lock is free was left behind
by a process that was killed, and is removed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from logeval.errors import LogevalError, short

LOCK = ".lock"
PARTIAL = ".partial"
WAIT_SECONDS = 10.0  # for another process that is writing
KINDS = {
    "a folder": stat.S_ISDIR,
    "a symbolic link": stat.S_ISLNK,
    "a pipe": stat.S_ISFIFO,
    "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
}


@contextlib.contextmanager
def holding(
    folder: Path, doing: str, seconds: float = WAIT_SECONDS, name: str = LOCK
) -> Iterator[None]:
    """Hold the lock of a folder, which must exist; wait for it up to ``seconds``.

    The operating system gives it up when a process ends, however it ends. ``doing`` says what it is
    held for (``evaluate``); others read it in their message.
    """
    file = folder / name
    lock = FileLock(file)
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        who = doing
        with contextlib.suppress(OSError):
            who = file.read_text(encoding="utf-8") or doing
        raise LogevalError(
            f"{folder}: {who} is at work here; wait until it ends and run the command again, or "
            "name another folder"
        ) from None
    try:
        with contextlib.suppress(OSError):  # Windows: what is locked cannot be written to
            file.write_text(f"{doing} (process {os.getpid()})", encoding="utf-8")
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink()  # while it is ours: who waits sees that it is gone, and makes a new one
        lock.release()


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


@contextlib.contextmanager
def partial_file(path: Path, seconds: float = WAIT_SECONDS) -> Iterator[Path]:
    """A new temporary file beside ``path``, removed when the block ends; one process has it.

    It is made by ``O_EXCL``, so a link that was put there before is not followed.
    """
    temporary = path.with_name(f".{path.name}{PARTIAL}")
    with holding(path.parent, "another command", seconds, f".{path.name}{LOCK}"):
        temporary.unlink(missing_ok=True)  # of a killed process
        try:
            temporary.touch(exist_ok=False)
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder."""
    for left in folder.glob(f".*{PARTIAL}"):
        target = left.with_name(left.name.removeprefix(".").removesuffix(PARTIAL))
        with contextlib.suppress(OSError, LogevalError), partial_file(target, 0):
            pass


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for what does not fit into memory; those that killed processes left are removed."""
    home = Path(tempfile.gettempdir())
    for left in home.glob(f".logeval-*{LOCK}"):
        with contextlib.suppress(OSError, LogevalError), holding(home, "logeval", 0, left.name):
            remove(home / left.name.removeprefix(".").removesuffix(LOCK))
    folder = home / f"logeval-{secrets.token_hex(8)}"
    with holding(home, "logeval", name=f".{folder.name}{LOCK}"):
        folder.mkdir(0o700)
        try:
            yield folder
        finally:
            remove(folder)


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
