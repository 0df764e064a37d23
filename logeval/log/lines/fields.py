"""What formats of lines share: numbers in bytes, kinds of records, reasons.

A parser fills ``rec``, a RECORD, with the numbers of one line and returns the kind of record, or
the negative code of the reason why the line is rejected. It runs inside compiled kernels. What a
record may lack is -1: region, and serp where a click is on the latest SERP that shows its URL.
"""

from __future__ import annotations

import numpy as np

from logeval.running.kernels import njit, njit_inline, njit_views

# Places in the buffer and digits are unsigned: numba tests a signed index for wrap-around at
# every byte, and the scan then runs at half the speed.
ONE, NINE, TEN, ZERO_CHAR = np.uint64(1), np.uint64(9), np.uint64(10), np.uint64(48)

TAB, NEWLINE, RETURN, COMMA = 9, 10, 13, 44
MAX_ITEMS = 50  # on one list
MAX_LINE = 1 << 20  # bytes; a longer line is rejected

# kinds of records
METADATA, QUERY, TEST, CLICK = 0, 1, 2, 3

FIELDS = ("session", "time", "serp", "query", "region", "user", "day", "url", "length")
RECORD = np.dtype([(name, np.int64) for name in FIELDS])

# reasons
FIELD_COUNT, NOT_A_NUMBER, OVERFLOW, UNKNOWN_TYPE = -1, -2, -3, -4
EMPTY_LIST, TOO_MANY_ITEMS, TOO_LONG, EMPTY_LINE = -5, -6, -7, -8
REASONS = {
    FIELD_COUNT: "wrong number of fields",
    NOT_A_NUMBER: "not a number where one is due",
    OVERFLOW: "integer over 2^63 - 1",
    UNKNOWN_TYPE: "unknown record type",
    EMPTY_LIST: "empty list of items",
    TOO_MANY_ITEMS: f"more than {MAX_ITEMS} items",
    TOO_LONG: f"line over {MAX_LINE} bytes",
    EMPTY_LINE: "empty line",
}


@njit_views
def number(buf, i):
    """The non-negative integer at ``i`` (or a negative reason), and where it ends.

    There is no test for the end of the buffer: it ends with a newline, which is no digit.
    """
    start = i
    value = np.uint64(0)
    while True:
        digit = np.uint64(buf[i]) - ZERO_CHAR
        if digit > NINE:
            break
        value = value * TEN + digit
        i += ONE
    if i == start:
        return NOT_A_NUMBER, i
    if i - start > np.uint64(18):
        return long_number(buf, start, i), i
    return np.int64(value), i


@njit_views
def long_number(buf, i, end):
    """The value of the digits buf[i:end], or OVERFLOW."""
    value = 0
    while i < end:
        digit = np.int64(buf[i]) - 48
        if value > 922337203685477580 or (value == 922337203685477580 and digit > 7):
            return OVERFLOW
        value = value * 10 + digit
        i += ONE
    return value


@njit_views
def last_number(buf, i, end):
    """The number that fills the rest of the line, or a negative reason."""
    value, j = number(buf, i)
    if value >= 0 and j < end:
        return FIELD_COUNT if buf[j] == TAB else NOT_A_NUMBER
    return value


@njit_views
def field(buf, i, end):
    """The number of a field that another one follows (or a reason), and where that starts."""
    value, j = number(buf, i)
    if value >= 0:
        if j == end:
            return FIELD_COUNT, j
        if buf[j] != TAB:
            return NOT_A_NUMBER, j
    return value, j + ONE


@njit_inline
def item_list(buf, i, end, rec, items, domains, at, has_domains):
    """Put items from the TAB at ``i`` on, or item,domain pairs, into items[at:]; 0 or a reason."""
    n = 0
    while i < end and (n > 0 or i + ONE < end):
        if n == MAX_ITEMS:
            return TOO_MANY_ITEMS
        items[at + n], i = number(buf, i + ONE)
        if items[at + n] < 0:
            return items[at + n]
        if has_domains:
            if buf[i] != COMMA:
                return NOT_A_NUMBER
            domains[at + n], i = number(buf, i + ONE)
            if domains[at + n] < 0:
                return domains[at + n]
        if i < end and buf[i] != TAB:
            return NOT_A_NUMBER
        n += 1
    rec.length = n
    return EMPTY_LIST if n == 0 else 0


@njit(cache=True, nogil=True)
def put_start(out, i, session, time, kind):
    """Write the fields with which records begin: SessionID, TimePassed and a letter."""
    i = put(out, i, session, TAB)
    i = put(out, i, time, TAB)
    out[i], out[i + 1] = kind, TAB
    return i + 2


@njit(cache=True, nogil=True)
def put(out, i, value, end):
    """Write ``value`` in decimal and the byte ``end``; returns where the next thing goes."""
    digits = 1
    limit = 10
    while value >= limit:
        limit *= 10
        digits += 1
    for j in range(i + digits - 1, i - 1, -1):
        out[j] = 48 + value % 10
        value //= 10
    out[i + digits] = end
    return i + digits + 1
