"""Sessions -> lines of text in a challenge format, as bytes, in a compiled kernel."""

from __future__ import annotations

import numpy as np

from logeval.log.scan import PERSONALIZED
from logeval.running.kernels import ZERO, njit
from logeval.synthetic.sessions import Sessions
from logeval.synthetic.world import K, World

TAB, COMMA, NEWLINE = np.uint8(9), np.uint8(44), np.uint8(10)
# An upper bound on the bytes of a number, and on the numbers that one clicked result, one SERP
# and one session take, with repeats counted apart.
NUMBER = 20
SERP_NUMBERS, CLICK_NUMBERS, SESSION_NUMBERS = 10 + 2 * K, 5, 4
ORPHAN_URL = 1 << 40  # above every item


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


@njit(cache=True, nogil=True)
def put_click(out, i, fmt, session, time, serp, url):
    """A click line."""
    i = put(out, i, session, TAB)
    i = put(out, i, time, TAB)
    out[i], out[i + 1] = ord("C"), TAB
    i += 2
    if fmt == PERSONALIZED:
        i = put(out, i, serp, TAB)
    return put(out, i, url, NEWLINE)


@njit(cache=True, nogil=True)
def put_clicks(out, i, fmt, session, time, serp, lists, clicks, dwell, late, is_late):
    """The clicks of a SERP that are (not) late, and the time after them."""
    for k in range(lists.shape[0]):
        if late[k] == is_late:
            for _ in range(clicks[k]):
                time += dwell[k]
                i = put_click(out, i, fmt, session, time, serp, lists[k] + 1)
    return i, time


@njit(cache=True, nogil=True)
def put_query(out, i, fmt, session, time, serp, query, region, lists, test):
    """A query line. Terms and domains follow from the ids."""
    i = put(out, i, session, TAB)
    i = put(out, i, time, TAB)
    out[i], out[i + 1] = ord("T") if test else ord("Q"), TAB
    i += 2
    if fmt == PERSONALIZED:
        i = put(out, i, serp, TAB)
        i = put(out, i, query, TAB)
        for term in range(query % 4):
            i = put(out, i, (7919 * query + 104729 * term) % 100_003, COMMA)
        i = put(out, i, (7919 * query + 31) % 100_003, TAB)
    else:
        i = put(out, i, query, TAB)
        i = put(out, i, region, TAB)
    for k in range(lists.shape[0]):
        if fmt == PERSONALIZED:
            i = put(out, i, lists[k] + 1, COMMA)
            i = put(out, i, (2654435761 * lists[k]) % 49_999, TAB)
        else:
            i = put(out, i, lists[k] + 1, TAB)
    out[i - 1] = NEWLINE
    return i


@njit(cache=True, nogil=True)
def write_sessions(
    out, fmt, number, first, user, day, query, region, lists, clicks, late, orphan, test, dwell
):
    """Write all sessions, numbered from ``number``; returns the number of bytes."""
    i = ZERO
    for s in range(first.shape[0] - 1):
        session = number + s
        time = ZERO
        if fmt == PERSONALIZED:
            i = put(out, i, session, TAB)
            out[i], out[i + 1] = ord("M"), TAB
            i = put(out, i + 2, day[s], TAB)
            i = put(out, i, user[s], NEWLINE)
        for p in range(first[s], first[s + 1]):
            serp = p - first[s]
            i = put_query(out, i, fmt, session, time, serp, query[p], region[p], lists[p], test[p])
            if serp > 0:  # back to the page before
                i, time = put_clicks(
                    out, i, fmt, session, time, serp - 1, lists[p - 1], clicks[p - 1],
                    dwell[p - 1], late[p - 1], True,
                )  # fmt: skip
            i, time = put_clicks(
                out, i, fmt, session, time, serp, lists[p], clicks[p], dwell[p], late[p], False
            )
            if orphan[p]:
                i = put_click(out, i, fmt, session, time, serp, ORPHAN_URL + p)
            time += dwell[p, lists.shape[1]]
    return i


def sessions_text(world: World, s: Sessions, fmt: int, number: int) -> bytes:
    """The lines of a batch of sessions, numbered from ``number``."""
    query_id, region_id = world.query_keys()
    numbers = SESSION_NUMBERS * len(s.user) + (SERP_NUMBERS + CLICK_NUMBERS) * len(s.query)
    numbers += CLICK_NUMBERS * int(s.clicks.sum())
    out = np.empty(numbers * NUMBER, np.uint8)
    size = write_sessions(
        out, fmt, number, s.first, s.user, s.day, query_id[s.query], region_id[s.query], s.lists,
        s.clicks, s.late, s.orphan, s.test, s.dwell,
    )  # fmt: skip
    return out[:size].tobytes()
