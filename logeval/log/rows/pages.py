"""Synthetic sessions -> a CSV with a row per page, which says what was shown in random order.

Rows of whole searches -> SERPs, by rules each of which is counted.

- A list is in the order of positions; where one is left out, the next result moves up.
- The same result at the same position again is one result: its clicks are added up.
- Of two items at one position the first counts.
- What stands beyond the last position that is kept is cut.
- A click that does not say where goes to the highest place that shows its item, else nowhere.
- A list that was in random order by some of its rows, and by others not, was not.
- With views, what is below the lowest result that was seen or clicked was not shown.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from logeval.errors import LogevalError
from logeval.log.formats.format import Read
from logeval.log.rows.conversion import APART, MOST_CLICKS, NONE, SEEN
from logeval.log.rows.grouping import Chunk
from logeval.log.rows.ids import IS_TEXT
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit_views
from logeval.storage.schemas import SERPS

if TYPE_CHECKING:
    from logeval.synthetic.sessions import Sessions


HEADER = "session,serp,user,day,query,random,items,clicks\n"


def write_pages(sessions: Sessions, query_id: Ints, region_id: Ints, number: int) -> bytes:
    """The rows of a batch whose first session is ``number``; before the first one, the header."""
    size = np.diff(sessions.first)
    owner = np.repeat(np.arange(len(size)), size)
    serp = np.arange(len(owner)) - np.repeat(sessions.first[:-1], size)
    columns = (
        number + owner, serp, sessions.user[owner], sessions.day[owner], query_id,
        sessions.random.astype(np.int64), sessions.lists + 1, sessions.clicks,
    )  # fmt: skip
    rows = zip(*(column.tolist() for column in columns), strict=True)
    lines = [
        f"{session},{page},{user},{day},{query},{random},{_joined(items)},{_joined(clicks)}\n"
        for session, page, user, day, query, random, items, clicks in rows
    ]
    return ("" if number else HEADER).encode() + "".join(lines).encode()


def _joined(values: list[int]) -> str:
    return " ".join(map(str, values))


COUNTS = (
    "results",
    "rows_repeated",
    "rows_doubled",
    "rows_cut",
    "rows_contrary",
    "clicks_apart",
    "clicks_orphan",
    "rows_unseen",
    "views",
    "views_orphan",
    "pages_empty",
    "pages_with_gaps",
    "pages_with_item_twice",
    "clicks_dropped",
)
(
    RESULTS, REPEATED, DOUBLED, CUT, CONTRARY, CLICKS_APART, ORPHAN, UNSEEN, VIEWS, VIEWS_ORPHAN,
    EMPTY, GAPS, TWICE, DROPPED,
) = range(len(COUNTS))  # fmt: skip

ALL_COUNTS = (*COUNTS, "queries", "test_queries", "clicks_matched", "clicks_repeat")
# what becomes of a row
ACCOUNTS = {
    "results": "results shown",
    "rows_repeated": "the same result again, its clicks added up",
    "rows_doubled": "another item at the same position",
    "rows_cut": "beyond the last position that is kept",
    "clicks_apart": "clicks without a position, on a result shown",
    "clicks_orphan": "clicks without a position, on what was not shown",
    "rows_contrary": "contradict their search: another query, user or region",
    "rejected": "rejected (rejects.tsv)",
}


@dataclass(frozen=True)
class Facts:
    """What must be known of the whole log."""

    limit: int  # positions
    first_position: int = 1  # 0 or 1, as the log counts
    first_day: int | None = None  # since 1970, of a log with dates: this is day 1
    midnight: int = 0  # what times are counted from
    views: bool = False  # whether views say what was seen


def serps_of(chunk: Chunk, facts: Facts) -> tuple[pa.Table, Read]:
    """The SERPs of a chunk, and what was counted."""
    rows = _by_position(chunk)
    n = len(rows["item"])
    fate = rows.get("fate", np.zeros(n, np.int8))
    times = rows.get("click_time", np.full(n, NONE))
    lengths = np.zeros(len(chunk.first) - 1, np.int64)
    source, clicks, first_click = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )
    counts = np.zeros(len(COUNTS), np.int64)
    size = _fill(
        chunk.first, rows["position"], rows["item"], rows["clicks"], fate, times,
        facts.first_position, facts.limit, facts.views, lengths, source, clicks, first_click,
        counts,
    )  # fmt: skip
    source, clicks, first_click = source[:size], clicks[:size], first_click[:size]
    if clicks.max(initial=0) > MOST_CLICKS:
        raise LogevalError(
            f"over {MOST_CLICKS:,} clicks are on one result of a search; is their column the right "
            "one?"
        )
    counted = Counter(dict(zip(COUNTS, counts.tolist(), strict=True)))
    if "random" in rows:
        yes, no = _random(rows["random"], fate, chunk.first)
        chunk.pages["random"] = yes & ~no
        counted["pages_random_unclear"] = int((yes & no)[lengths > 0].sum())
    table = _table(chunk, facts, rows, lengths, source, clicks, first_click)
    lost = rows["position"][: chunk.first[0]]
    counted["clicks_orphan"] += int((lost == APART).sum())
    counted["views_orphan"] += int((lost == SEEN).sum())
    clicked = int((clicks > 0).sum())
    counted.update(
        queries=len(table),
        test_queries=int(table["test"].to_numpy().sum()),
        clicks_matched=clicked,
        clicks_repeat=int(clicks.sum()) - clicked,
    )
    return table, Read(counted)


def _random(flags: Ints | Floats, fate: Ints | Floats, first: Ints) -> tuple[Bools, Bools]:
    """Of which pages some rows say that they were in random order, and of which that not."""
    if len(first) == 1:
        return np.empty(0, np.bool_), np.empty(0, np.bool_)
    inside, starts = slice(first[0], first[-1]), first[:-1] - first[0]
    flags = np.where(fate[inside] == 0, flags[inside], NONE)
    return np.logical_or.reduceat(flags == 1, starts), np.logical_or.reduceat(flags == 0, starts)


def _by_position(chunk: Chunk) -> dict[str, Ints | Floats]:
    """The rows of each page by position, and in their order where that is the same."""
    rows, first = chunk.rows, chunk.first
    position = rows["position"]
    falls = position[1:] < position[:-1]
    falls[first[1:-1] - 1] = False  # from one page to the next
    if not falls.any():
        return rows
    page = np.repeat(np.arange(len(first) + 1), np.diff(first, prepend=0, append=len(position)))
    order = np.lexsort((position, page))
    return {name: values[order] for name, values in rows.items()}


def _table(
    chunk: Chunk,
    facts: Facts,
    rows: dict[str, Ints | Floats],
    lengths: Ints,
    source: Ints,
    clicks: Ints,
    first_click: Ints,
) -> pa.Table:
    shown = lengths > 0
    pages = {name: values[shown] for name, values in chunk.pages.items()}
    lengths = lengths[shown]
    n = len(lengths)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)

    def lists(values: pa.Array, missing: Ints | None = None) -> pa.Array:
        where = None if missing is None or not missing.any() else pa.array(missing)
        return pa.ListArray.from_arrays(pa.array(offsets), values, mask=where)

    def if_all(name: str, none: Ints) -> pa.Array:
        """Lists of those pages that have a value of every result."""
        values = rows[name][source]
        missing = np.add.reduceat(none[source], offsets[:-1]) > 0 if n else none[:0]
        return lists(pa.array(values), missing)

    zeros, first = np.zeros(n, np.int64), facts.first_day
    session = pages["page"].astype(np.int64)
    if "session" in pages:
        given = pages["session"]
        session = np.where(given >= 0, given, session | IS_TEXT)
    times = pages.get("time", zeros)
    click_times = np.where(first_click >= 0, first_click - facts.midnight, NONE)
    arrays = {
        "session_id": pa.array(session),
        "user_id": _nullable(pages.get("user"), n),
        "day": _nullable(pages.get("day"), n, 0 if first is None else 1 - first),
        "time": pa.array(np.where(times >= 0, times - facts.midnight, 0)),
        "serp_id": pa.array(pages.get("serp", session if "session" in pages else zeros)),
        "query_id": pa.array(pages["query"]),
        "region_id": _nullable(pages.get("region"), n),
        "test": pa.array(pages.get("test", zeros) > 0),
        "items": lists(pa.array(rows["item"][source])),
        "domains": if_all("domain", rows["domain"] < 0)
        if "domain" in rows
        else pa.nulls(n, pa.list_(pa.int64())),
        "clicks": lists(pa.array(clicks, pa.int32())),
        "click_times": lists(pa.array(click_times, mask=(clicks == 0) | (first_click < 0))),
        "propensities": if_all("propensity", np.isnan(rows["propensity"]))
        if "propensity" in rows
        else pa.nulls(n, pa.list_(pa.float64())),
        "random": pa.array(pages["random"] > 0) if "random" in pages else pa.nulls(n, pa.bool_()),
        "rewards": pa.nulls(n, pa.list_(pa.float64())),
        "first": pa.nulls(n, pa.int32()),
    }
    return pa.Table.from_arrays([arrays[name] for name in SERPS.names], schema=SERPS)


def _nullable(values: Ints | None, n: int, added: int = 0) -> pa.Array:
    if values is None:
        return pa.nulls(n, pa.int64())
    return pa.array(values.astype(np.int64) + added, mask=values < 0)


@njit_views
def _fill(
    first, position, item, clicks, fate, times, base, limit, views, lengths, source, out_clicks,
    out_times, counts,
):  # fmt: skip
    """Fill the lists of all pages, one after the other; returns how many results they have."""
    n = 0
    for p in range(lengths.shape[0]):
        start, last, holder, gap = n, -1, 0, False
        for r in range(first[p], first[p + 1]):
            at = position[r]
            if fate[r]:
                counts[CONTRARY] += 1
                counts[DROPPED] += clicks[r]
            elif at < 0:
                continue
            elif at == last and item[r] != item[holder]:
                counts[DOUBLED] += 1
                counts[DROPPED] += clicks[r]
            elif at != last and n - start < limit:
                gap |= at != (base if last < 0 else last + 1)
                last, holder = at, r
                source[n], out_clicks[n], out_times[n] = r, clicks[r], times[r]
                n += 1
            elif at == last and holder == source[n - 1]:
                counts[REPEATED] += 1
                click_on(n - 1, clicks[r], times[r], out_clicks, out_times)
            else:
                last, holder = at, r
                counts[CUT] += 1
                counts[DROPPED] += clicks[r]
        end = match_clicks(
            first[p], first[p + 1], position, item, clicks, fate, times, start, n, views, source,
            out_clicks, out_times, counts,
        )  # fmt: skip
        counts[UNSEEN] += n - end
        n = end
        lengths[p] = n - start
        counts[RESULTS] += n - start
        counts[EMPTY] += n == start
        counts[GAPS] += gap
        counts[TWICE] += shows_one_twice(start, n, item, source)
    return n


@njit_views
def click_on(place, clicks, time, out_clicks, out_times):
    """Add clicks to a result; of their times the first is kept."""
    out_clicks[place] += clicks
    if time >= 0 and (out_times[place] < 0 or time < out_times[place]):
        out_times[place] = time


@njit_views
def match_clicks(
    first, end, position, item, clicks, fate, times, start, n, views, source, out_clicks, out_times,
    counts,
):  # fmt: skip
    """Find the places of clicks and views that do not say where; returns where the list ends."""
    seen = start
    for r in range(first, end):
        if position[r] >= 0 or fate[r]:
            continue
        place = start
        while place < n and item[source[place]] != item[r]:
            place += 1
        if position[r] == APART:
            counts[CLICKS_APART if place < n else ORPHAN] += 1
            if place < n:
                click_on(place, clicks[r], times[r], out_clicks, out_times)
        elif position[r] == SEEN:
            counts[VIEWS if place < n else VIEWS_ORPHAN] += 1
            seen = max(seen, place + 1) if place < n else seen
    if not views:
        return n
    for place in range(seen, n):
        if out_clicks[place] > 0:
            seen = place + 1
    return seen


@njit_views
def shows_one_twice(start, n, item, source):
    """Whether an item is on a page twice."""
    for i in range(start, n):
        for j in range(start, i):
            if item[source[i]] == item[source[j]]:
                return True
    return False
