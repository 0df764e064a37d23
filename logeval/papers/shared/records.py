"""``experiments.json``: what was run into a folder, at what size, and what it has cost so far.

The file vouches for its content by a checksum. Those of earlier versions have none.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

from logeval.errors import LogevalError
from logeval.storage import files

RECORDS = "experiments.json"
Records = dict[str, dict[str, Any]]  # by experiment, and log
SAID = {"experiment", "log", "horizon", "runs", "seed", "seconds", "cpu_seconds", "finished"}


def records(out: Path) -> Records:
    """What was run: experiment, log, size, seed, time, and whether it is finished."""
    file = out / RECORDS
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_bytes())
        if found.keys() == {"crc32", "experiments"}:
            known: Records = found["experiments"]
            whole = found["crc32"] == _crc32(known)
        else:
            known = found
            whole = all(SAID <= record.keys() for record in known.values())
    except (OSError, ValueError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise LogevalError(
            f"{file}: is damaged; delete it, and reproduce goes on with the runs that are there"
        )
    return known


def write_records(out: Path, known: Records) -> None:
    """Put the records in place of those that are there."""
    content = {"crc32": _crc32(known), "experiments": known}
    files.write_text(out / RECORDS, json.dumps(content, indent=1))


def _crc32(known: Any) -> str:
    return f"{zlib.crc32(json.dumps(known).encode()):08x}"
