"""Which format a log has, told from its first lines."""

from __future__ import annotations

import numpy as np

from logeval.errors import LogevalError, unknown_names
from logeval.log.scan import FORMATS, LINES, N_REJECTED, Scanner
from logeval.storage.tables import SERPS

TABLE = "table"
HEAD = 1 << 16  # bytes looked at


def check_format(name: str) -> None:
    """Raise for an unknown format name."""
    known = ("auto", *FORMATS, TABLE)
    if name not in known:
        raise unknown_names("format", [name], known)


def recognise(head: bytes, name: str) -> str:
    """The format of a log that starts with ``head``: the one most of whose lines are valid."""
    if head.startswith(b"PAR1"):
        return TABLE
    lines = head[: head.rfind(b"\n") + 1] or head + b"\n"
    buf = np.frombuffer(bytearray(lines), np.uint8)  # not read-only, as blocks are not
    shares = []
    for fmt in range(len(FORMATS)):
        counts = Scanner(fmt).scan(buf).counts
        shares.append(1 - counts[N_REJECTED] / counts[LINES])
    best = int(np.argmax(shares))
    if shares[best] > 0.5:
        return FORMATS[best]
    first = lines.split(b"\n", 1)[0].decode(errors="backslashreplace")
    if set(first.replace('"', "").split(",")) & set(SERPS.names):
        return TABLE
    raise LogevalError(
        f"{name}: the format is not recognised from its first lines ({first[:80]!r}); "
        f"name the format: {', '.join((*FORMATS, TABLE))}"
    )
