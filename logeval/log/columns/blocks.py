"""A stream of text -> blocks of whole records, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logeval.errors import LogevalError
from logeval.log.reading.source import Source
from logeval.running.kernels import njit_views

BLOCK = 4 << 20
MAX_RECORD = 16 << 20
MOST_LINES = 1000  # of a record
QUOTE, NEWLINE, RETURN = (ord(c) for c in '"\n\r')
VALUE_STARTS, IN_QUOTES, QUOTE_CLOSED, IN_VALUE = range(4)


def record_blocks(
    source: Source, delimiter: str | None, size: int | None = None, fields: int = 0
) -> Iterator[memoryview]:
    """Text in blocks of about ``size`` bytes, of whole records; none has only empty lines.

    Without a delimiter a record is a line. Else a quote that takes in lines which are records of so
    many ``fields`` themselves is an error: they would be lost.
    """
    size, rest, line = size or BLOCK, b"", 1
    while True:
        text = bytearray(len(rest) + size)
        text[: len(rest)] = rest
        n = source.readinto(np.frombuffer(text, np.uint8)[len(rest) :])
        whole = len(rest) + n
        end, torn, is_open = end_of_records(text, whole, delimiter, fields)
        torn = end if torn < 0 and is_open and n < size else torn
        if torn >= 0:
            place = line + text.count(b"\n", 0, torn)
            raise LogevalError(
                f"{source.name}, line {place}: a quote is opened and not closed, or only lines "
                "further down; if the file does not quote its values, "
                f"give logeval.ingest the frame pandas.read_csv({str(source.path)!r}, "
                f"sep={delimiter!r}, quoting=3), else double the quotes inside values"
            )
        end = end if n == size else whole
        rest = bytes(text[end:whole])
        line += text.count(b"\n", 0, end)
        if end and (text[0] not in b"\r\n" or text[:end].strip(b"\r\n")):
            yield memoryview(text)[:end]
        if n < size:
            return
        if len(rest) > MAX_RECORD:
            raise LogevalError(
                f"{source.name}: a row of over {MAX_RECORD >> 20} MiB; is a quote never closed?"
            )


def end_of_records(
    text: bytes | bytearray, size: int, delimiter: str | None, fields: int = 0
) -> tuple[int, int, bool]:
    """Where the last record that ends in the first bytes of a text, which begins with one, does.

    Further where a record begins that is none (-1), and whether a quote is open at the end.
    """
    if delimiter is None:
        return text.rfind(b"\n", 0, size) + 1, -1, False
    if text.find(b'"', 0, size) < 0:
        return max(text.rfind(b"\n", 0, size), text.rfind(b"\r", 0, size)) + 1, -1, False
    found: tuple[int, int, bool] = _end_of_records(
        np.frombuffer(text, np.uint8)[:size], np.uint8(ord(delimiter)), fields
    )
    return found


@njit_views
def _end_of_records(text, delimiter, fields):
    """As Arrow has it: a quote counts at the start of a value, and both ends of lines do.

    A record of several lines is none if each of them has all its delimiters, if there are very many
    of them, or if text follows the quote that ends its value.
    """
    state, end, lines, seen, every = VALUE_STARTS, 0, 0, 0, True
    for i in range(text.shape[0]):
        c = text[i]
        if c == NEWLINE or (c == RETURN and (i + 1 == text.shape[0] or text[i + 1] != NEWLINE)):
            lines, seen, every = lines + 1, 0, every and seen == fields - 1
            if lines > MOST_LINES or (lines > 1 and every and state != IN_QUOTES):
                return end, end, False
            if state != IN_QUOTES:
                lines, every = 0, True
        elif c == delimiter:
            seen += 1
        elif state == QUOTE_CLOSED and lines and c not in (QUOTE, RETURN):
            return end, end, False
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
    return end, -1, state == IN_QUOTES
