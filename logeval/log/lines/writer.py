"""Sessions -> lines of text in a format, as bytes, in a compiled kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from logeval.log.formats.format import Writer
from logeval.running.arrays import Ints
from logeval.running.kernels import ZERO, njit

if TYPE_CHECKING:
    from logeval.synthetic.sessions import Sessions

# An upper bound on the bytes of a number, and on the numbers that one clicked result, one SERP
# (besides two per item) and one session take, with repeats counted apart.
NUMBER = 20
SERP_NUMBERS, CLICK_NUMBERS, SESSION_NUMBERS = 10, 5, 4
ORPHAN_URL = 1 << 40  # above every item


def line_writer(put_session: Any, put_query: Any, put_click: Any) -> Writer:
    """What writes sessions by the kernels of a format that put a line into ``out`` at ``i``.

    ``put_session(out, i, session, day, user)``, ``put_query(out, i, session, time, serp, query,
    region, items, test)`` and ``put_click(out, i, session, time, serp, url)`` return where the next
    line goes.
    """

    @njit(cache=True, nogil=True)
    def put_clicks(out, i, session, time, serp, p, sessions, is_late):
        """The clicks of SERP ``p`` that are (not) late, and the time after them."""
        for k in range(sessions.lists.shape[1]):
            if sessions.late[p, k] == is_late:
                for _ in range(sessions.clicks[p, k]):
                    time += sessions.dwell[p, k]
                    i = put_click(out, i, session, time, serp, sessions.lists[p, k] + 1)
        return i, time

    @njit(cache=True, nogil=True)
    def write_sessions(out, number, sessions, query, region):
        """Write all sessions, numbered from ``number``; returns the number of bytes."""
        first, lists, test = sessions.first, sessions.lists, sessions.test
        i = ZERO
        for s in range(first.shape[0] - 1):
            session = number + s
            time = ZERO
            i = put_session(out, i, session, sessions.day[s], sessions.user[s])
            for p in range(first[s], first[s + 1]):
                serp = p - first[s]
                i = put_query(out, i, session, time, serp, query[p], region[p], lists[p], test[p])
                if serp > 0:  # back to the page before
                    i, time = put_clicks(out, i, session, time, serp - 1, p - 1, sessions, True)
                i, time = put_clicks(out, i, session, time, serp, p, sessions, False)
                if sessions.orphan[p]:
                    i = put_click(out, i, session, time, serp, ORPHAN_URL + p)
                time += sessions.dwell[p, lists.shape[1]]
        return i

    def lines(sessions: Sessions, query_id: Ints, region_id: Ints, number: int) -> bytes:
        n_serps, K = sessions.lists.shape
        numbers = SESSION_NUMBERS * len(sessions.user) + CLICK_NUMBERS * int(sessions.clicks.sum())
        numbers += (SERP_NUMBERS + 2 * K + CLICK_NUMBERS) * n_serps
        out = np.empty(numbers * NUMBER, np.uint8)
        return out[: write_sessions(out, number, sessions, query_id, region_id)].tobytes()

    return lines
