"""The kernels of a format of lines: bytes of whole sessions -> SERPs with their clicks.

A session is a run of valid lines with the same SessionID. A click belongs to

- the SERP of the session with the click's SERPID (the latest, if several), wherever in the session
  it is;
- where clicks name no SERP, the most recent one of the session that shows the URL.

A click on a URL that its SERP does not show, or before any query, is an orphan. Where a URL
stands twice on a SERP, the first place gets the click.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from logeval.log.lines.fields import (
    CLICK,
    EMPTY_LINE,
    MAX_ITEMS,
    MAX_LINE,
    METADATA,
    NEWLINE,
    ONE,
    RECORD,
    RETURN,
    TEST,
    TOO_LONG,
)
from logeval.running.kernels import ZERO, njit, njit_inline, njit_views

LOOK_BACK = 1000  # SERPs of a session that a click is matched with: bounds the work per click

# rows of the array of SERPs, as far as S_TEST those of the schema
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


@njit_inline
def match_click(first, n, serp, time, url, serps, items, clicks, click_times, counts):
    """Credit a click to the latest of the SERPs first..n-1 that has its SERPID, or shows its URL.

    Returns whether there is such a SERP; one that does not show the URL makes the click an orphan.
    """
    for s in range(n - 1, max(first, n - LOOK_BACK) - 1, -1):
        if serp < 0 or serps[S_SERP, s] == serp:
            credited = click_on(s, time, url, serps, items, clicks, click_times, counts)
            if credited or serp >= 0:
                counts[N_ORPHAN] += not credited
                return True
    return False


@njit_views
def settle_late(late, n_late, first, n, serps, items, clicks, click_times, counts):
    """At the end of a session, credit the clicks whose SERP stood after them."""
    for c in range(n_late):
        serp, time, url = late[0, c], late[1, c], late[2, c]
        if not match_click(first, n, serp, time, url, serps, items, clicks, click_times, counts):
            counts[N_ORPHAN] += 1


class Kernels(NamedTuple):
    """What is compiled for a format, its parser inlined."""

    scan: Any
    ends: Any


def line_kernels(parse: Any) -> Kernels:
    """The kernels for lines that ``parse`` reads."""

    @njit_inline
    def parse_line(buf, i, end, rec, items, domains, at):
        """The kind of record of the line buf[i:end], or the reason why it is none."""
        if end - i > MAX_LINE:
            return TOO_LONG
        if end > i and buf[end - ONE] == RETURN:
            end -= ONE
        if end == i:
            return EMPTY_LINE
        return parse(buf, i, end, rec, items, domains, at)

    @njit(cache=True, nogil=True)
    def ends(buf):
        """Where the last session starts in ``buf`` (0 if it is all one), and the last record ends.

        What stands after the last newline is not looked at. Lines that are not valid stay with the
        session that follows them.
        """
        rec = np.empty(1, RECORD)[0]
        items = np.empty(MAX_ITEMS, np.int64)
        domains = np.empty(MAX_ITEMS, np.int64)
        session, last = -1, 0
        end = np.uint64(buf.shape[0])
        while end > 0 and buf[end - ONE] != NEWLINE:
            end -= ONE
        while end > 0:
            end -= ONE  # the newline that ends this line
            start = end
            while start > 0 and buf[start - ONE] != NEWLINE:
                start -= ONE
            if parse_line(buf, start, end, rec, items, domains, ZERO) >= 0:
                if session < 0:
                    last = np.int64(end) + 1
                elif rec.session != session:
                    return np.int64(end) + 1, last
                session = rec.session
            end = start
        return 0, last

    @njit_views
    def scan(buf, rec, serps, items, domains, clicks, click_times, late, rejects, counts):
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
            kind = parse_line(buf, i, end, rec, items, domains, n_items)
            if kind < 0:
                r, line = counts[N_REJECTED], counts[LINES]
                rejects[0, r], rejects[1, r], rejects[2, r], rejects[3, r] = line, i, end, kind
                counts[N_REJECTED] += 1
            else:
                if rec.session != session:
                    settle_late(late, n_late, first, n, serps, items, clicks, click_times, counts)
                    session, first, n_late, user, day = rec.session, n, ZERO, -1, -1
                if kind == METADATA:
                    counts[N_METADATA] += 1
                    user, day = rec.user, rec.day
                elif kind == CLICK:
                    serp, time, url = rec.serp, rec.time, rec.url
                    if not match_click(
                        first, n, serp, time, url, serps, items, clicks, click_times, counts
                    ):
                        if serp >= 0 and n > first:
                            late[0, n_late], late[1, n_late], late[2, n_late] = serp, time, url
                            n_late += 1
                        else:
                            counts[N_ORPHAN] += 1
                else:
                    serps[S_SESSION, n] = session
                    serps[S_USER, n] = user
                    serps[S_DAY, n] = day
                    serps[S_TIME, n] = rec.time
                    serps[S_SERP, n] = rec.serp if rec.serp >= 0 else n - first
                    serps[S_QUERY, n] = rec.query
                    serps[S_REGION, n] = rec.region
                    serps[S_TEST, n] = kind == TEST
                    counts[N_QUERIES] += 1
                    counts[N_TEST] += kind == TEST
                    for j in range(n_items, n_items + rec.length):
                        clicks[j] = 0
                        click_times[j] = -1
                    n_items += rec.length
                    n += 1
                    serps[S_ITEMS, n] = n_items
            counts[LINES] += 1
            i = end + ONE
        settle_late(late, n_late, first, n, serps, items, clicks, click_times, counts)
        return n

    return Kernels(scan, ends)
