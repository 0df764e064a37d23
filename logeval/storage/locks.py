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
import ctypes
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
    file, until = folder / LOCK, time.monotonic() + max(seconds, POLL_SECONDS)
    about = f"{platform.node()}\n{os.getpid()}\n{doing}\n{_boot()}\n".encode()
    while True:
        with locked(file, os.O_CREAT) as mine:
            holder = Holder.of(file)
            free = not (holder.pid and process_alive(holder.pid)) if mine is None else mine
            if free and holder.may_be_replaced:
                file.write_bytes(about)
                try:
                    yield
                finally:
                    file.unlink(missing_ok=True)  # while it is ours: who waits makes a new one
                return
        if time.monotonic() >= until:
            raise LogevalError(Holder.of(file).in_words(file))
        time.sleep(POLL_SECONDS)


def clear(folder: Path) -> None:
    """Remove the lock of a process that is no more; in a folder that is read only it stays."""
    if (folder / LOCK).exists():
        with contextlib.suppress(LogevalError, OSError), holding(folder, "another command"):
            pass


@contextlib.contextmanager
def locked(file: Path, flags: int = 0) -> Iterator[bool | None]:
    """Lock a file while the block lasts; whether it is ours, and not another's or removed.

    ``flags`` may make it. None where there are no locks. A link that was put there before is not
    followed.
    """
    descriptor = os.open(file, os.O_RDWR | flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    if fcntl is None:  # an open file could be neither renamed nor removed
        os.close(descriptor)
        yield None
        return
    try:
        yield _lock(descriptor, file)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, file: Path) -> bool | None:
    """Whether it could be locked, and is still there; None on a file system without locks.

    The holder before us may have removed the file between our opening and locking it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.stat(file), os.fstat(descriptor))
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:
        return None


class Holder(NamedTuple):
    """Whom a lock names; nobody while it is being written."""

    host: str
    pid: int
    doing: str
    boot: str

    @classmethod
    def of(cls, file: Path) -> Holder:
        """The one that a file names."""
        text = ""
        with contextlib.suppress(OSError):
            text = file.read_text(encoding="utf-8", errors="replace")
        host, pid, doing, boot, *_ = [*text.split("\n"), "", "", ""]
        return cls(host, int(pid) if pid.isdigit() else 0, doing, boot)

    @property
    def may_be_replaced(self) -> bool:
        """Whether a lock that we could take is ours: none of another machine's is."""
        return self.host in ("", platform.node()) or self.boot == _boot() != ""

    def in_words(self, file: Path) -> str:
        """What to tell who wanted the lock."""
        at_work = f"{file.parent}: {self.doing or 'a command'} is at work here (process "
        if self.host in ("", platform.node()):
            return (
                f"{at_work}{self.pid or 'unknown'}); wait until it ends and run the command again, "
                "or name another folder"
            )
        return (
            f"{at_work}{self.pid} on {self.host}); wait until it ends, or delete {file} if that "
            "process is no more"
        )


def _boot() -> str:
    """The kernel that keeps our locks: all containers of a machine have the same."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def process_alive(pid: int) -> bool:
    """Whether a process of this machine exists."""
    if os.name == "nt":  # where signal 0 is Ctrl-C
        return _windows_process_alive(pid)
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _windows_process_alive(pid: int) -> bool:
    synchronize, running = 0x100000, 0x102  # WAIT_TIMEOUT: it has not ended
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined, unused-ignore]
    handle = kernel.OpenProcess(synchronize, False, pid)
    try:
        return bool(handle) and kernel.WaitForSingleObject(handle, 0) == running
    finally:
        kernel.CloseHandle(handle)
