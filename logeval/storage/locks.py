"""One writer at a time in a folder: ``.lock``, held by the operating system for a process.

The kernel gives the lock up when its process ends, however it ends, so a lock that a killed process
left behind is simply taken over. The file names the holder's process and machine, for the message
to others. File systems that are shared between machines do not always share such locks: a file that
names another machine is therefore believed until somebody deletes it; containers on one machine
are known by the boot of their kernel.

What is on its way to its place is locked by its writer as well (``files.py``): one that can be
locked belongs to nobody. A process number says nothing, because containers number their own.
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
        holder = f"{platform.node()}\n{os.getpid()}\n{doing}\n{_boot()}\n"
        os.pwrite(descriptor, holder.encode(), 0)
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


@contextlib.contextmanager
def locked(file: Path, flags: int = 0, otherwise: bool = True) -> Iterator[bool]:
    """Lock a file while the block lasts; whether it is ours, and not another's or removed.

    ``flags`` may make it. Where there are no locks, the answer is ``otherwise``.
    """
    descriptor = _open(file, flags)
    try:
        if fcntl is None:  # an open file could be neither renamed nor removed
            os.close(descriptor)
        mine = None if fcntl is None else _lock(descriptor)
        yield otherwise if mine is None else mine and _is_still(file, descriptor)
    finally:
        if fcntl is not None:
            os.close(descriptor)


def _open(file: Path, flags: int) -> int:
    """A link that was put there before is not followed."""
    return os.open(file, os.O_RDWR | flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _take(file: Path) -> int | None:
    """An open descriptor of the locked file, or None if another process has it."""
    descriptor = _open(file, os.O_CREAT)
    mine = _lock(descriptor)
    if mine is None:
        mine = not _alive(descriptor)
    if mine and _is_still(file, descriptor) and _takes_over(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _lock(descriptor: int) -> bool | None:
    """Whether it could be locked; None on a file system without locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_still(file: Path, descriptor: int) -> bool:
    """The holder before us may have removed the file between our opening and locking it."""
    try:
        return os.path.samestat(os.stat(file), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _takes_over(descriptor: int) -> bool:
    host, _, _, boot = _holder(descriptor)
    return host in ("", platform.node()) or boot == _boot() != ""


def _holder(descriptor: int) -> tuple[str, int, str, str]:
    """Machine, process, command and boot of the holder; empty if nobody is named (yet)."""
    text = os.pread(descriptor, 4096, 0).decode(errors="replace")
    host, pid, doing, boot, *_ = [*text.split("\n"), "", "", ""]
    return host, int(pid) if pid.isdigit() else 0, doing, boot


def _boot() -> str:
    """The kernel that keeps our locks: all containers of a machine have the same."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _alive(descriptor: int) -> bool:
    pid = _holder(descriptor)[1]
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
        host, pid, doing, _ = _holder(descriptor)
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
