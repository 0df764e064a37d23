"""Where click statistics are kept, so that the next fit of a log need not fold it again.

They lie beside the log, in ``click_statistics/``, or where that cannot be written in the user's
cache folder (``$XDG_CACHE_HOME/logeval``, else ``~/.cache/logeval``); if neither can, they are
folded each time. An entry is one Parquet file whose name is the hash of all it depends on and the
checksum of its bytes (a damaged one is folded again), written under another name and then renamed:
processes that fold the same log at once do not meet, and a reader never sees half a file. Beyond
``LIMIT`` bytes in a folder, the entries used least recently are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from logeval.errors import LogevalError
from logeval.storage import files, tables
from logeval.storage.schemas import CLICK_STATISTICS

LIMIT = 1 << 30
K = TypeVar("K")


def cached(
    log: Path, manifest: tables.Manifest, fold: Callable[[Path], None], read: Callable[[Path], K]
) -> K:
    """The statistics that ``fold`` writes to a file, ``read`` again if they are there already."""
    key = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:32]
    folders = [log / "click_statistics", user_cache() / "click_statistics"]
    for file in [file for folder in folders for file in folder.glob(f"{key}-*.parquet")]:
        with contextlib.suppress(OSError, pa.ArrowException):
            if files.crc32(file) == file.stem.removeprefix(f"{key}-"):
                found = read(file)
                os.utime(file)  # used now
                return found
            file.unlink()  # damaged
    with contextlib.ExitStack() as held:
        partial = _partial(folders, key, held)
        if partial is None:
            nowhere = held.enter_context(files.scratch()) / f"{key}.parquet"
            fold(nowhere)
            return read(nowhere)
        fold(partial)
        found = read(partial)
        name = f"{key}-{files.crc32(partial)}.parquet"
        partial.replace(partial.with_name(name))
        shrink(partial.parent, LIMIT, keep=name)
    return found


def user_cache() -> Path:
    """The folder for what can be computed again."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "logeval"


def shrink(folder: Path, limit: int, keep: str) -> None:
    """Remove what was used least recently until ``limit`` bytes are left; never ``keep``."""
    files.remove_abandoned(folder)
    found = []
    for file in folder.iterdir():
        with contextlib.suppress(OSError):  # another process may remove it first
            stat = file.stat()
            if file.suffix == ".parquet":
                found.append((file.name == keep, stat.st_mtime_ns, stat.st_size, file))
    total = sum(size for _, _, size, _ in found)
    for kept, _, size, file in sorted(found):
        if total <= limit or kept:
            break
        with contextlib.suppress(OSError):
            file.unlink()
        total -= size


def _partial(folders: list[Path], key: str, held: contextlib.ExitStack) -> Path | None:
    """A new file in the first folder that can be written, as long as ``held`` lasts."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                return held.enter_context(files.partial_file(folder / f"{key}.parquet", 0))
            except LogevalError:  # another process folds the same
                return None
    return None


def read_table(file: Path) -> pa.Table:
    """All statistics of a file."""
    return pq.read_table(file).select(CLICK_STATISTICS.names).cast(CLICK_STATISTICS)
