"""A stream of text -> blocks of whole records, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logeval.errors import LogevalError
from logeval.log.reading.source import Source
from logeval.running.kernels import njit_views

BLOCK = 4 << 20
MAX_RECORD = 16 << 20
QUOTE, NEWLINE, RETURN = (ord(c) for c in '"\n\r')
VALUE_STARTS, IN_QUOTES, QUOTE_CLOSED, IN_VALUE = range(4)


def record_blocks(
    source: Source, delimiter: str | None, size: int | None = None
) -> Iterator[memoryview]:
    """Text in blocks of about ``size`` bytes, of whole records; none has only empty lines.

    Without a delimiter a record is a line.
    """
    size, rest = size or BLOCK, b""
    while True:
        text = bytearray(len(rest) + size)
        text[: len(rest)] = rest
        n = source.readinto(np.frombuffer(text, np.uint8)[len(rest) :])
        whole = len(rest) + n
        end = end_of_records(text, whole, delimiter) if n == size else whole
        rest = bytes(text[end:whole])
        if end and (text[0] not in b"\r\n" or text[:end].strip(b"\r\n")):
            yield memoryview(text)[:end]
        if n < size:
            return
        if len(rest) > MAX_RECORD:
            raise LogevalError(
                f"{source.name}: a row of over {MAX_RECORD >> 20} MiB; is a quote never closed?"
            )


def end_of_records(text: bytes | bytearray, size: int, delimiter: str | None) -> int:
    """Where the last record that ends in the first bytes of a text, which begins with one, does."""
    if delimiter is None:
        return text.rfind(b"\n", 0, size) + 1
    if text.find(b'"', 0, size) < 0:
        return max(text.rfind(b"\n", 0, size), text.rfind(b"\r", 0, size)) + 1
    return int(_end_of_records(np.frombuffer(text, np.uint8)[:size], np.uint8(ord(delimiter))))


@njit_views
def _end_of_records(text, delimiter):
    """As Arrow has it: a quote counts at the start of a value, and both ends of lines do."""
    state, end = VALUE_STARTS, 0
    for i in range(text.shape[0]):
        c = text[i]
        if state == IN_QUOTES:
            if c == QUOTE:
                state = QUOTE_CLOSED
        elif c == QUOTE and state in (VALUE_STARTS, QUOTE_CLOSED):
            state = IN_QUOTES
        elif c in (NEWLINE, RETURN):
            state, end = VALUE_STARTS, i + 1
        elif c == delimiter:
            state = VALUE_STARTS
        else:
            state = IN_VALUE
    return end
