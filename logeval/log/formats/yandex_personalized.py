"""yandex-personalized: the Yandex Personalized Web Search Challenge (Kaggle, 2013).

    SessionID M Day UserID
    SessionID TimePassed Q|T SERPID QueryID term,term,... URL,Domain URL,Domain ...
    SessionID TimePassed C SERPID URL

Fields are separated by TABs. T marks a test query, whose clicks are withheld.
"""

from __future__ import annotations

from logeval.log.lines.fields import (
    CLICK,
    COMMA,
    FIELD_COUNT,
    METADATA,
    NEWLINE,
    NOT_A_NUMBER,
    ONE,
    QUERY,
    TAB,
    TEST,
    UNKNOWN_TYPE,
    field,
    item_list,
    last_number,
    put,
    put_start,
)
from logeval.log.lines.line_format import LineFormat
from logeval.log.lines.writer import line_writer
from logeval.running.kernels import njit, njit_inline, njit_views


@njit_inline
def parse(buf, i, end, rec, items, domains, at):
    """Parse the line buf[i:end] into ``rec`` and, for a query, items[at:] and domains[at:]."""
    rec.session, i = field(buf, i, end)
    if rec.session < 0:
        return rec.session
    if i < end and buf[i] == ord("M"):
        return parse_metadata(buf, i + ONE, end, rec)
    rec.time, i = field(buf, i, end)
    if rec.time < 0:
        return rec.time
    if i == end:
        return FIELD_COUNT
    kind = buf[i]
    i += ONE
    if i < end and buf[i] != TAB:
        return UNKNOWN_TYPE
    if kind != ord("C") and kind != ord("Q") and kind != ord("T"):
        return UNKNOWN_TYPE
    if i == end:
        return FIELD_COUNT
    rec.serp, i = field(buf, i + ONE, end)
    if rec.serp < 0:
        return rec.serp
    if kind == ord("C"):
        rec.url = last_number(buf, i, end)
        return CLICK if rec.url >= 0 else rec.url
    rec.query, i = field(buf, i, end)
    if rec.query < 0:
        return rec.query
    rec.region = -1
    status = parse_list(buf, i, end, rec, items, domains, at)
    if status < 0:
        return status
    return QUERY if kind == ord("Q") else TEST


@njit_views
def parse_metadata(buf, i, end, rec):
    """The rest of a metadata line, from the TAB after the M."""
    if i == end:
        return FIELD_COUNT
    if buf[i] != TAB:
        return UNKNOWN_TYPE
    rec.day, i = field(buf, i + ONE, end)
    if rec.day < 0:
        return rec.day
    rec.user = last_number(buf, i, end)
    return METADATA if rec.user >= 0 else rec.user


@njit_views
def parse_list(buf, i, end, rec, items, domains, at):
    """The terms (checked, not kept) and the URL,Domain pairs of a query line."""
    while i < end and buf[i] != TAB:
        if (buf[i] < 48 or buf[i] > 57) and buf[i] != COMMA:
            return NOT_A_NUMBER
        i += ONE
    return item_list(buf, i, end, rec, items, domains, at, True)


@njit(cache=True, nogil=True)
def put_session(out, i, session, day, user):
    """A metadata line."""
    i = put(out, i, session, TAB)
    out[i], out[i + 1] = ord("M"), TAB
    i = put(out, i + 2, day, TAB)
    return put(out, i, user, NEWLINE)


@njit(cache=True, nogil=True)
def put_query(out, i, session, time, serp, query, region, items, test):
    """A query line. Terms and domains follow from the ids."""
    i = put_start(out, i, session, time, ord("T") if test else ord("Q"))
    i = put(out, i, serp, TAB)
    i = put(out, i, query, TAB)
    for term in range(query % 4):
        i = put(out, i, (7919 * query + 104729 * term) % 100_003, COMMA)
    i = put(out, i, (7919 * query + 31) % 100_003, TAB)
    for item in items:
        i = put(out, i, item + 1, COMMA)
        i = put(out, i, (2654435761 * item) % 49_999, TAB)
    out[i - 1] = NEWLINE
    return i


@njit(cache=True, nogil=True)
def put_click(out, i, session, time, serp, url):
    """A click line."""
    i = put_start(out, i, session, time, ord("C"))
    i = put(out, i, serp, TAB)
    return put(out, i, url, NEWLINE)


FORMAT = LineFormat(
    name="yandex-personalized",
    parse=parse,
    domains=True,
    tests=True,
    shortest_query=b"1\t0\tQ\t0\t5\t\t7,1\n",
    shortest_click=b"1\t0\tC\t0\t7\n",
    writer=line_writer(put_session, put_query, put_click),
)
