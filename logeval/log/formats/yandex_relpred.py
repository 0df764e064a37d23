"""yandex-relpred: the Yandex Relevance Prediction Challenge (2011).

    SessionID TimePassed Q QueryID RegionID URL URL ...
    SessionID TimePassed C URL

Fields are separated by TABs. The same QueryID in two regions is two queries.
"""

from __future__ import annotations

from logeval.log.lines.fields import (
    CLICK,
    FIELD_COUNT,
    NEWLINE,
    NOT_A_NUMBER,
    ONE,
    QUERY,
    TAB,
    UNKNOWN_TYPE,
    field,
    item_list,
    last_number,
    number,
    put,
    put_start,
)
from logeval.log.lines.line_format import LineFormat
from logeval.log.lines.writer import line_writer
from logeval.running.kernels import njit, njit_inline


@njit_inline
def parse(buf, i, end, rec, items, domains, at):
    """Parse the line buf[i:end] into ``rec`` and, for a query, items[at:]."""
    rec.session, i = field(buf, i, end)
    if rec.session < 0:
        return rec.session
    rec.time, i = field(buf, i, end)
    if rec.time < 0:
        return rec.time
    if i == end:
        return FIELD_COUNT
    kind = buf[i]
    i += ONE
    if i < end and buf[i] != TAB:
        return UNKNOWN_TYPE
    if kind != ord("C") and kind != ord("Q"):
        return UNKNOWN_TYPE
    if i == end:
        return FIELD_COUNT
    rec.serp = -1
    if kind == ord("C"):
        rec.url = last_number(buf, i + ONE, end)
        return CLICK if rec.url >= 0 else rec.url
    rec.query, i = field(buf, i + ONE, end)
    if rec.query < 0:
        return rec.query
    rec.region, i = number(buf, i)
    if rec.region < 0:
        return rec.region
    if i < end and buf[i] != TAB:
        return NOT_A_NUMBER
    status = item_list(buf, i, end, rec, items, domains, at, False)
    return QUERY if status == 0 else status


@njit(cache=True, nogil=True)
def put_session(out, i, session, day, user):
    """Nothing: a session begins with its first query."""
    return i


@njit(cache=True, nogil=True)
def put_query(out, i, session, time, serp, query, region, items, test):
    """A query line."""
    i = put_start(out, i, session, time, ord("Q"))
    i = put(out, i, query, TAB)
    i = put(out, i, region, TAB)
    for item in items:
        i = put(out, i, item + 1, TAB)
    out[i - 1] = NEWLINE
    return i


@njit(cache=True, nogil=True)
def put_click(out, i, session, time, serp, url):
    """A click line."""
    i = put_start(out, i, session, time, ord("C"))
    return put(out, i, url, NEWLINE)


FORMAT = LineFormat(
    name="yandex-relpred",
    parse=parse,
    regions=True,
    shortest_query=b"1\t0\tQ\t5\t0\t7\n",
    shortest_click=b"1\t0\tC\t7\n",
    writer=line_writer(put_session, put_query, put_click),
)
