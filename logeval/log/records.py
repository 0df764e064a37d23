"""CSV text -> blocks of whole records, so that Arrow parses what was read and hashed here.

Arrow can read from a Python file by itself, but in a thread that outlives an error: if the
interpreter ends meanwhile, it aborts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from logeval.errors import LogevalError
from logeval.log.blocks import Stream

SIZE = 1 << 20
MAX_RECORD = 16 << 20
# as Arrow has it: a quote counts at the start of a value; a line ends with \n, \r\n or \r
VALUE = rb'(?:"(?:[^"]|"")*+"[^,\r\n]*+|(?!")[^,\r\n]*+)'
RECORD = re.compile(rb"%b(?:,%b)*+(?:\r\n?|\n)" % (VALUE, VALUE))


def record_blocks(source: Stream, size: int = SIZE) -> Iterator[bytes]:
    """Blocks of about ``size`` bytes, of whole records; none has only empty lines."""
    rest = b""
    buffer = np.empty(size, np.uint8)
    while n := source.readinto(buffer):
        text = rest + buffer[:n].tobytes()
        end = _end_of_records(text) if n == size else len(text)
        if text[:end].strip(b"\r\n"):
            yield text[:end]
        rest = text[end:]
        if len(rest) > MAX_RECORD:
            raise LogevalError(
                f"{source.name}: a row of over {MAX_RECORD >> 20} MiB; is a quote never closed?"
            )
    if rest.strip(b"\r\n"):
        yield rest


def _end_of_records(text: bytes) -> int:
    """Where the last record that ends in the text, which begins with one, does."""
    if b'"' not in text:
        return max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
    end = 0
    while record := RECORD.match(text, end):
        end = record.end()
    return end
