"""Rows that are no pages: results that were counted before, and single placements.

Counts (query, item, position, impressions, clicks): the same row again is added up. Who counts
clicks may count a repeated one again: a row with more clicks than impressions has them all clicked,
and is counted (``clicks_capped``). Placements (item, position, clicks[, propensity][, query]) stay
as they are; without a query all are of one.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa

from logeval.errors import LogevalError
from logeval.log.formats.format import Job, Read, Reading
from logeval.log.tables.files import TableFile
from logeval.log.tables.roles import Layout
from logeval.log.tables.staging import (
    Staging,
    common_layout,
    first_reason,
    staged,
    text_kinds,
    texts_of,
)
from logeval.log.tables.values import BAD, DAY, MOST_CLICKS
from logeval.storage.schemas import COUNTS, PLACEMENTS

ACCOUNTS = {
    "results": "items at a position",
    "rows_repeated": "the same item at the same position again, added up",
    "rows_cut": "beyond the last position that is kept",
    "rejected": "rejected (rejects.tsv)",
}
PLACED = {
    "placements": "items at a position",
    "rows_cut": "beyond the last position that is kept",
    "rejected": "rejected (rejects.tsv)",
}
ROWS = 1 << 20  # of a part
MOST = 1 << 62  # impressions of all rows
IDS: tuple[str, ...] = ("query", "user", "region", "item")
NUMBERS: tuple[str, ...] = ("position", "clicks", "propensity", "reward")


def read_counts(reading: Reading, tables: list[TableFile]) -> Iterator[Job | Read]:
    """All files together; what is counted several times is added up."""
    layout = common_layout(tables, reading.columns, "counts")
    reading.say(layout.sentence())
    with staged(reading) as staging:
        select = partial(_select_counts, layout)
        yield from staging.read(tables, layout.wanted, select, check=layout.check)
        ((capped, shown),) = staging.sql(
            "SELECT count(*) FILTER (clicks > impressions), sum(impressions) FROM rows"
        )
        if shown is not None and shown > MOST:
            raise LogevalError(f"over {MOST:,} impressions in all; is their column the right one?")
        there = staging.roles()
        numbers = staging.number(text_kinds(tables, layout), there)
        shift, every, rows = _kept(staging)
        region = f"{numbers['region']}" if "region" in numbers else "NULL::BIGINT"
        found = staging.stream(
            f"""SELECT {numbers["query"]} AS query_id, {region} AS region_id,
                {numbers["item"]} AS item_id, (position + {shift})::INTEGER AS position,
                sum(impressions)::BIGINT AS impressions,
                sum(least(clicks, impressions))::BIGINT AS clicks
            FROM rows r {staging.joins()} WHERE position + {shift} <= {reading.positions}
            GROUP BY ALL ORDER BY query_id, region_id, position, item_id""",
            ROWS,
        )
        results = 0
        for table in found:
            results += len(table)
            yield partial(_counted, table.cast(COUNTS))
        cut = Counter(rows_cut=every - rows, rows_repeated=rows - results, clicks_capped=capped)
        yield Read(cut)
    shutil.rmtree(staging.folder)


def _kept(staging: Staging) -> tuple[int, int, int]:
    """What makes the first position 1; all rows, and those of a position that is kept."""
    ((every, first),) = staging.sql("SELECT count(*), min(position) FROM rows")
    shift = 1 if first == 0 else 0  # some count positions from 0
    kept = f"position + {shift} <= {staging.reading.positions}"
    ((rows,),) = staging.sql(f"SELECT count(*) FROM rows WHERE {kept}")
    return shift, every, rows


def _counted(table: pa.Table) -> tuple[pa.Table, Read]:
    impressions, clicks = (int(table[name].to_numpy().sum()) for name in ("impressions", "clicks"))
    counts = Counter(results=len(table), impressions=impressions, clicks=clicks)
    return table, Read(counts)


def _select_counts(layout: Layout, kinds: Mapping[str, pa.DataType], file: int) -> str:
    texts = texts_of(layout, kinds)
    ids = [kind for kind in ("query", "region", "item") if kind in texts]
    numbers = ("position", "impressions", "clicks")
    values = [f"nullif({texts[kind]}, '') AS {kind}" for kind in ids]
    values += [f"number({texts[role]}) AS {role}" for role in numbers]
    values += [f"{texts[role]} AS {role}_text" for role in numbers]
    reasons = [(f"{kind} IS NULL", f"{kind} is empty", "NULL") for kind in ("query", "item")]
    for role in numbers:
        bad = f"{role} IS NULL OR {role} = {BAD} OR {role} > {MOST}"
        reasons.append((bad, f"{role}: no whole number from 0 on", f"{role}_text"))
    return (
        f"SELECT line, {', '.join([*ids, *numbers])}, {first_reason(reasons)} "
        f"FROM (SELECT line, {', '.join(values)} FROM batch)"
    )


def read_placements(reading: Reading, tables: list[TableFile]) -> Iterator[Job | Read]:
    """All files together, in the order of their rows."""
    layout = common_layout(tables, reading.columns, "placements")
    said = "" if "query" in layout.columns else "; no query: all are of one"
    reading.say(layout.sentence() + said)
    with staged(reading) as staging:
        select = partial(_select_placements, layout)
        yield from staging.read(tables, layout.wanted, select, check=layout.check)
        there = staging.roles()
        numbers = staging.number(text_kinds(tables, layout), there)
        shift, every, rows = _kept(staging)
        day = time = "NULL"
        if "time" in there:
            clock = layout.has_clock
            ((first,),) = staging.sql("SELECT min(time) FROM rows")
            midnight = (first or 0) // DAY * DAY if clock else 0
            time = f"time - {midnight}"
            day = f"(time - {midnight}) // {DAY} + 1" if clock else "NULL"
        if "day" in there:
            ((first,),) = staging.sql("SELECT min(day) FROM rows")
            day = f"day - {(first or 1) - 1}" if layout.dates else "day"
        values = {
            "session_id": "session" if "session" in there else "NULL",
            "user_id": numbers.get("user", "NULL"),
            "day": day,
            "time": time,
            "query_id": numbers.get("query", "0"),
            "region_id": numbers.get("region", "NULL"),
            "item_id": numbers["item"],
            "position": f"position + {shift}",
            "clicks": "coalesce(clicks, 0)",
            "propensity": "propensity" if "propensity" in there else "NULL",
            "reward": "reward" if "reward" in there else "NULL",
        }
        chosen = ", ".join(f"{value} AS {name}" for name, value in values.items())
        found = staging.stream(
            f"SELECT {chosen} FROM rows r {staging.joins()} "
            f"WHERE position + {shift} <= {reading.positions} ORDER BY n",
            ROWS,
        )
        for table in found:
            yield partial(_placed, table.cast(PLACEMENTS))
        yield Read(Counter(rows_cut=every - rows))
    shutil.rmtree(staging.folder)


def _placed(table: pa.Table) -> tuple[pa.Table, Read]:
    clicks = table["clicks"].to_numpy()
    clicked = int((clicks > 0).sum())
    return table, Read(Counter(placements=len(table), clicks=int(clicks.sum()), clicked=clicked))


def _select_placements(layout: Layout, kinds: Mapping[str, pa.DataType], file: int) -> str:
    texts = texts_of(layout, kinds)
    ids = [kind for kind in IDS if kind in texts]
    values = {kind: f"nullif({texts[kind]}, '')" for kind in ids}
    if "session" in texts:
        values["session"] = (
            f"coalesce(exact({texts['session']}), "
            f"(md5_number_lower(nullif({texts['session']}, '')) >> 2)::BIGINT | {1 << 62})"
        )
    numbers = [role for role in NUMBERS if role in texts]
    for role in numbers:
        macro = "amount" if role in ("propensity", "reward") else "number"
        values[role] = f"{macro}({texts[role]})"
    reasons = [
        ("item IS NULL", "item is empty", "NULL"),
        (f"position IS NULL OR position = {BAD} OR position > {1 << 30}",
         "position is no whole number from 0 on", "position_text"),
        (f"clicks = {BAD} OR clicks > {MOST_CLICKS}",
         "clicks are no whole number from 0 on", "clicks_text"),
    ]  # fmt: skip
    if "query" in values:
        reasons.append(("query IS NULL", "query is empty", "NULL"))
    if "propensity" in values:
        why = "propensity is not above 0 and at most 1"
        reasons.append(("propensity <= 0 OR propensity > 1", why, "propensity_text"))
    if "reward" in values:
        reasons.append(("reward = 'inf'", "reward is no number", "reward_text"))
    timed: list[str] = [role for role in ("time", "day") if role in texts]
    for role in timed:
        dates = "date_of" if layout.dates else "number"
        clock = "number" if layout.unit == "plain" else "instant"
        values[role] = f"{clock if role == 'time' else dates}({texts[role]})"
        reasons.append((f"{role} = {BAD}", f"not a {role}", f"{role}_text"))
    raw = "".join(f", {texts[role]} AS {role}_text" for role in (*numbers, *timed))
    listed = ", ".join(f"{value} AS {role}" for role, value in values.items())
    return (
        f"SELECT line, {', '.join(values)}, {first_reason(reasons)} "
        f"FROM (SELECT line, {listed}{raw} FROM batch)"
    )
