"""One writer at a time in a folder: ``.lock``, held by the operating system for a process.

The kernel gives the lock up when its process ends, however it ends, so a lock that a killed process
left behind is simply taken over. The file names the holder's process and machine, for the message
to others. File systems that are shared between machines do not always share such locks: a file that
names another machine is therefore believed until somebody deletes it.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from logeval.errors import LogevalError

try:
    import fcntl
except ImportError:  # Windows: nobody is kept out
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
POLL_SECONDS = 0.05


@contextlib.contextmanager
def holding(folder: Path, doing: str, seconds: float = 0.0) -> Iterator[None]:
    """Hold the lock of a folder, which must exist; wait for it up to ``seconds``.

    ``doing`` says what for (``evaluate``); others read it in their message.
    """
    if fcntl is None:
        yield
        return
    file = folder / LOCK
    until = time.monotonic() + seconds
    while (descriptor := _take(file)) is None:
        if time.monotonic() >= until:
            raise LogevalError(_held(file))
        time.sleep(POLL_SECONDS)
    try:
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{platform.node()}\n{os.getpid()}\n{doing}\n".encode(), 0)
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            file.unlink()  # while it is still ours: who waits for it then makes a new one
        os.close(descriptor)


def clear(folder: Path) -> None:
    """Remove the lock of a process that is no more; in a folder that is read only it stays."""
    if (folder / LOCK).exists():
        with contextlib.suppress(LogevalError, OSError), holding(folder, "another command"):
            pass


def _take(file: Path) -> int | None:
    """An open descriptor of the locked file, or None if another process has it."""
    # a link that was put there before is not followed
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    if _lock(descriptor) and _is_still(file, descriptor) and _takes_over(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return not _alive(descriptor)
    return True


def _is_still(file: Path, descriptor: int) -> bool:
    """The holder before us may have removed the file between our opening and locking it."""
    try:
        return os.path.samestat(os.stat(file), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _takes_over(descriptor: int) -> bool:
    host = _holder(descriptor)[0]
    return host in ("", platform.node())


def _holder(descriptor: int) -> tuple[str, int, str]:
    """Machine, process and command of the holder; empty if nobody is named (yet)."""
    text = os.pread(descriptor, 4096, 0).decode(errors="replace")
    host, pid, doing, *_ = [*text.split("\n"), "", ""]
    return host, int(pid) if pid.isdigit() else 0, doing


def _alive(descriptor: int) -> bool:
    _, pid, _ = _holder(descriptor)
    return pid > 0 and process_alive(pid)


def process_alive(pid: int) -> bool:
    """Whether a process of this machine exists."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _held(file: Path) -> str:
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except OSError:
        return f"{file.parent}: another process is at work here; run the command again"
    try:
        host, pid, doing = _holder(descriptor)
    finally:
        os.close(descriptor)
    if host in ("", platform.node()):
        return (
            f"{file.parent}: {doing or 'a command'} is at work here (process {pid or 'unknown'}); "
            "wait until it ends and run the command again, or name another folder"
        )
    return (
        f"{file.parent}: {doing} is at work here (process {pid} on {host}); wait until it ends, or "
        f"delete {file} if that process is no more"
    )
