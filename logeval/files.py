"""Atomic writing: a file is there whole, or as it was before.

Every file that logeval puts beside others is written here: under a temporary name next to its
target, flushed to the disk, and renamed. The name holds the machine and the process, so what a
killed process left behind is recognised and removed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import secrets
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from logeval.errors import LogevalError
from logeval.locks import process_alive

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
    temporary = new_partial(path)
    try:
        yield temporary
        flush(temporary)
        check_regular(path)
        os.replace(temporary, path)
        flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


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
        temporary.write_text(text, encoding="utf-8")


def new_partial(path: Path) -> Path:
    """A new temporary file beside ``path``; those that killed processes left are removed.

    It is made by ``O_EXCL``, so a link that was put there before is not followed.
    """
    remove_stale(path)
    temporary = partial_name(path)
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    return temporary


def partial_name(path: Path) -> Path:
    """A new name beside ``path`` that tells which process uses it."""
    name = f".{path.name}{PARTIAL}{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
    return path.with_name(name)


def remove_stale(
    path: Path, home: Path | None = None, rescue: Callable[[Path], None] | None = None
) -> None:
    """Remove what killed processes of this machine left beside ``path`` (or in ``home``).

    ``rescue`` sees each of the leftovers before it goes.
    """
    for left in stale(home or path.parent, path.name):
        if rescue is not None:
            rescue(left)
        remove(left)


def stale(home: Path, name: str | None = None) -> list[Path]:
    """What processes of this machine that are no more left in ``home`` (on their way to ``name``).

    Folders may hold what is to be put back (``logeval.tables``); files are of no use to anybody.
    """
    target = ".+" if name is None else re.escape(name)
    mine = re.compile(rf"\.{target}{re.escape(PARTIAL + platform.node())}-(\d+)-[0-9a-f]+", re.S)
    found = [(left, mine.fullmatch(left.name)) for left in home.glob(f".*{PARTIAL}*")]
    return [left for left, match in found if match and not process_alive(int(match[1]))]


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Have the system write a file, or the entries of a folder, to the disk."""
    with contextlib.suppress(PermissionError):  # a folder that we may write to, but not read
        descriptor = os.open(path, os.O_RDONLY)
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
