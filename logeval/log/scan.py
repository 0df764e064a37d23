"""The scan kernel: bytes of whole sessions -> SERPs with their clicks.

A session is a run of valid lines with the same SessionID. A click belongs to the SERP that
the format's rule names:

- personalized: the SERP of the session with the click's SERPID (the latest, if several),
  wherever in the session it is;
- relpred: the most recent SERP of the session that shows the URL, else the most recent one.

A click on a URL that its SERP does not show, or before any query, is an orphan. Where a URL
stands twice on a SERP, the first place gets the click.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.log import personalized, relpred
from logeval.log.fields import (
    CLICK,
    DAY,
    EMPTY_LINE,
    LENGTH,
    MAX_ITEMS,
    MAX_LINE,
    METADATA,
    ONE,
    QUERY_ID,
    REC_SIZE,
    REGION,
    SERP,
    SESSION,
    TEST,
    TIME,
    TOO_LONG,
    URL,
    USER,
)
from logeval.running.arrays import Bytes, Ints
from logeval.running.kernels import ZERO, njit, njit_inline, njit_views

FORMATS = ("yandex-personalized", "yandex-relpred")
PERSONALIZED = 0  # the place of a format in FORMATS is its number in the kernels
NEWLINE, RETURN = 10, 13
SHORTEST_QUERY, SHORTEST_CLICK = len("1 0 Q 5 0 7\n"), len("1 0 C 7\n")
LOOK_BACK = 1000  # SERPs of a session that a click is matched with: bounds the work per click

# rows of the array of SERPs
S_SESSION, S_USER, S_DAY, S_TIME, S_SERP, S_QUERY, S_REGION, S_TEST, S_ITEMS = range(9)
# places in the array of counts
COUNTS = (
    "lines",
    "metadata",
    "queries",
    "test_queries",
    "clicks_matched",
    "clicks_repeat",
    "clicks_orphan",
    "rejected",
)
LINES, N_METADATA, N_QUERIES, N_TEST, N_MATCHED, N_REPEAT, N_ORPHAN, N_REJECTED = range(8)


@njit_inline
def parse_line(buf, i, end, fmt, rec, items, domains, at):
    """The kind of record of the line buf[i:end], or the reason why it is none."""
    if end - i > MAX_LINE:
        return TOO_LONG
    if end > i and buf[end - ONE] == RETURN:
        end -= ONE
    if end == i:
        return EMPTY_LINE
    if fmt == PERSONALIZED:
        return personalized.parse(buf, i, end, rec, items, domains, at)
    return relpred.parse(buf, i, end, rec, items, at)


@njit(cache=True, nogil=True)
def last_session(buf, fmt):
    """Where the last session starts in ``buf``; 0 if it is all one.

    What stands after the last newline is not looked at. Lines that are not valid stay with the
    session that follows them.
    """
    rec = np.empty(REC_SIZE, np.int64)
    items = np.empty(MAX_ITEMS, np.int64)
    domains = np.empty(MAX_ITEMS, np.int64)
    session = -1
    end = np.uint64(buf.shape[0])
    while end > 0 and buf[end - ONE] != NEWLINE:
        end -= ONE
    while end > 0:
        end -= ONE  # the newline that ends this line
        start = end
        while start > 0 and buf[start - ONE] != NEWLINE:
            start -= ONE
        if parse_line(buf, start, end, fmt, rec, items, domains, ZERO) >= 0:
            if session >= 0 and rec[SESSION] != session:
                return np.int64(end) + 1
            session = rec[SESSION]
        end = start
    return 0


@njit(cache=True, nogil=True)
def last_record(buf, fmt):
    """Where the last line that is a record ends in ``buf``; 0 if there is none."""
    rec = np.empty(REC_SIZE, np.int64)
    items = np.empty(MAX_ITEMS, np.int64)
    domains = np.empty(MAX_ITEMS, np.int64)
    end = np.uint64(buf.shape[0])
    while end > 0 and buf[end - ONE] != NEWLINE:
        end -= ONE
    while end > 0:
        end -= ONE
        start = end
        while start > 0 and buf[start - ONE] != NEWLINE:
            start -= ONE
        if parse_line(buf, start, end, fmt, rec, items, domains, ZERO) >= 0:
            return np.int64(end) + 1
        end = start
    return 0


@njit_views
def click_on(place, time, url, serps, items, clicks, click_times, counts):
    """Credit a click on ``url`` to SERP ``place``, if it shows it."""
    for j in range(serps[S_ITEMS, place], serps[S_ITEMS, place + 1]):
        if items[j] == url:
            clicks[j] += 1
            if clicks[j] == 1:
                counts[N_MATCHED] += 1
                click_times[j] = time
            else:
                counts[N_REPEAT] += 1
                click_times[j] = min(click_times[j], time)
            return True
    return False


@njit_views
def match_serp(first, n, serp, serps):
    """The latest of the serps first..n-1 with this SERPID, or -1."""
    for s in range(n - 1, first - 1, -1):
        if serps[S_SERP, s] == serp:
            return s
    return -1


@njit_views
def scan(buf, fmt, rec, serps, items, domains, clicks, click_times, late, rejects, counts):
    """Parse ``buf``, fill the arrays, return the number of SERPs; ``rec`` is scratch."""
    n = ZERO  # SERPs so far
    n_items = ZERO
    n_late = ZERO  # clicks of this session that name a SERP not seen yet
    session = -1
    first = ZERO  # the first SERP of this session
    user, day = -1, -1
    serps[S_ITEMS, 0] = 0
    i = np.uint64(0)
    size = np.uint64(buf.shape[0])
    while i < size:
        end = i
        while end < size and buf[end] != NEWLINE:
            end += ONE
        kind = parse_line(buf, i, end, fmt, rec, items, domains, n_items)
        if kind < 0:
            r = counts[N_REJECTED]
            rejects[0, r], rejects[1, r], rejects[2, r], rejects[3, r] = counts[LINES], i, end, kind
            counts[N_REJECTED] += 1
        else:
            if rec[SESSION] != session:
                settle_late(late, n_late, first, n, serps, items, clicks, click_times, counts)
                session, first, n_late, user, day = rec[SESSION], n, ZERO, -1, -1
            if kind == METADATA:
                counts[N_METADATA] += 1
                user, day = rec[USER], rec[DAY]
            elif kind == CLICK:
                oldest = max(first, n - LOOK_BACK)
                if first == n:
                    counts[N_ORPHAN] += 1
                elif fmt == PERSONALIZED:
                    s = match_serp(oldest, n, rec[SERP], serps)
                    if s < 0:
                        late[0, n_late], late[1, n_late], late[2, n_late] = (
                            rec[SERP],
                            rec[TIME],
                            rec[URL],
                        )
                        n_late += 1
                    elif not click_on(
                        s, rec[TIME], rec[URL], serps, items, clicks, click_times, counts
                    ):
                        counts[N_ORPHAN] += 1
                else:
                    s = n - 1
                    while s >= oldest and not click_on(
                        s, rec[TIME], rec[URL], serps, items, clicks, click_times, counts
                    ):
                        s -= 1
                    if s < oldest:
                        counts[N_ORPHAN] += 1
            else:
                serps[S_SESSION, n] = session
                serps[S_USER, n] = user
                serps[S_DAY, n] = day
                serps[S_TIME, n] = rec[TIME]
                serps[S_SERP, n] = rec[SERP] if fmt == PERSONALIZED else n - first
                serps[S_QUERY, n] = rec[QUERY_ID]
                serps[S_REGION, n] = rec[REGION]
                serps[S_TEST, n] = kind == TEST
                counts[N_QUERIES] += 1
                counts[N_TEST] += kind == TEST
                for j in range(n_items, n_items + rec[LENGTH]):
                    clicks[j] = 0
                    click_times[j] = -1
                n_items += rec[LENGTH]
                n += 1
                serps[S_ITEMS, n] = n_items
        counts[LINES] += 1
        i = end + ONE
    settle_late(late, n_late, first, n, serps, items, clicks, click_times, counts)
    return n


@njit_views
def settle_late(late, n_late, first, n, serps, items, clicks, click_times, counts):
    """At the end of a session, credit the clicks whose SERP stood after them."""
    for c in range(n_late):
        s = match_serp(max(first, n - LOOK_BACK), n, late[0, c], serps)
        if s < 0 or not click_on(
            s, late[1, c], late[2, c], serps, items, clicks, click_times, counts
        ):
            counts[N_ORPHAN] += 1


@dataclass(frozen=True)
class Scanned:
    """SERPs of a block as arrays; item arrays are flat, SERP s has serps[S_ITEMS, s:s+2]."""

    serps: Ints  # (9, n + 1)
    items: Ints
    domains: Ints
    clicks: Ints
    click_times: Ints  # -1: no click
    rejects: Ints  # (4, m): line in the block from 0, start, end, reason
    counts: Ints


class Scanner:
    """Parses blocks of whole sessions, one after the other, into the same memory.

    What ``scan`` returns is valid until the next call: fresh memory for every block would cost
    as much time as the parsing.
    """

    def __init__(self, fmt: int) -> None:
        self.fmt = fmt
        self._size = -1
        self._rec = np.empty(REC_SIZE, np.int64)

    def scan(self, buf: Bytes) -> Scanned:
        """Parse a block that ends with a newline."""
        if len(buf) > self._size:
            self._allocate(len(buf) + len(buf) // 4)
        counts = np.zeros(len(COUNTS), np.int64)
        arrays = (self.serps, self.items, self.domains, self.clicks, self.click_times)
        n = scan(buf, self.fmt, self._rec, *arrays, self.late, self.rejects, counts)
        m = self.serps[S_ITEMS, n]
        return Scanned(
            self.serps[:, : n + 1],
            self.items[:m],
            self.domains[:m],
            self.clicks[:m],
            self.click_times[:m],
            self.rejects[:, : counts[N_REJECTED]],
            counts,
        )

    def _allocate(self, size: int) -> None:
        """Room for whatever ``size`` bytes can hold; what is not used takes no memory."""
        self._size = size
        queries, clicks = size // SHORTEST_QUERY + 1, size // SHORTEST_CLICK + 1
        room = size // 2 + MAX_ITEMS + 1  # a list that turns out too long is written, then rejected
        self.serps = np.empty((9, queries + 1), np.int64)
        self.items, self.domains, self.click_times = (np.empty(room, np.int64) for _ in range(3))
        self.clicks = np.empty(room, np.int32)
        self.late = np.empty((3, clicks), np.int64)
        self.rejects = np.empty((4, size + 1), np.int32)
