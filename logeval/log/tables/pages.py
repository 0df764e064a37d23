"""Rows per result, or per page with lists -> SERPs, by rules each of which is counted.

- The first row of a search says its query, user and region; rows that say another one are left out.
- A list is in the order of positions; where one is left out, the next result moves up. A page whose
  first position is a later one keeps its rank (``first``).
- The same result at the same position again is one result: its clicks are added up.
- Of two items at one position the first counts.
- What stands beyond the last position that is kept is cut.
- A click that does not say where goes to the highest place that shows its item, else nowhere.
- A list that was in random order by some of its rows, and by others not, was not.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logeval.errors import LogevalError, printable
from logeval.log.formats.format import Job, Read, Reading
from logeval.log.tables.files import TableFile, one_array
from logeval.log.tables.roles import ROLES, Kind, Layout, Map, recognise
from logeval.log.tables.staging import (
    READING,
    Reason,
    Staging,
    common_layout,
    first_reason,
    page_cuts,
    staged,
    text_kinds,
    texts_of,
)
from logeval.log.tables.values import BAD, BLANKS, DAY, MOST_CLICKS, scratch
from logeval.storage.schemas import SERPS

CHUNK_ROWS = 1 << 16  # pages of ten results: 6,500
MOST_ROWS = 1 << 20  # of one search
PLACES = 1 << 20  # rows of a page are numbered from its own number on
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
COUNTS = (
    *ACCOUNTS, "pages_empty", "pages_with_gaps", "pages_later", "pages_with_item_twice",
    "clicks_dropped", "queries", "test_queries", "clicks_matched", "clicks_repeat",
)  # fmt: skip
OF_SEARCH = ("query", "user", "region", "session", "serp", "time", "day", "test")
SAME = ("query", "user", "region")  # in all rows of a search
OF_RESULT = ("domain", "propensity")
IDS = ("query", "user", "region", "item", "domain")


@dataclass(frozen=True)
class Facts:
    """What must be known of the whole log."""

    limit: int  # positions
    there: frozenset[str]  # roles that it has
    base: int = 1  # the first position: 0 or 1, as the log counts
    first_day: int | None = None  # since 1970, of a log with dates: this is day 1
    midnight: int = 0  # what times are counted from


def read_pages(
    reading: Reading,
    tables: Sequence[TableFile],
    kind: Kind,
    known: Map | None = None,
    by_file: bool = False,
) -> Iterator[Job | Read]:
    """All files together; ``known`` names the columns of their format.

    With ``by_file`` searches of two files are never the same, even if they have the same id.
    """
    clicks = tables[-1] if reading.apart else None
    tables = tables[:-1] if reading.apart else tables
    layout = common_layout(tables, reading.columns, kind, known, reading.apart)
    layout = replace(layout, by_file=by_file)
    reading.say(layout.sentence())
    with staged(reading) as staging:
        yield Read(Counter(dict.fromkeys(COUNTS, 0)))
        for source in reading.sources:
            source.advance = lambda n: reading.advance(n * READING)
        if kind == "pages":
            into = _rows_of_pages(layout)
            yield from staging.read(
                tables, layout.wanted, partial(select_pages, layout), into, layout.check
            )
        else:
            select = partial(select_results, layout)
            yield from staging.read(tables, layout.wanted, select, check=layout.check)
        if clicks is not None:
            found = clicks_layout(clicks, layout)
            reading.say(f"clicks: {found.sentence()}")
            yield from staging.read([clicks], found.wanted, partial(select_clicks, found))
        yield from made_pages(staging, layout, text_kinds(tables, layout), kind == "pages")
    shutil.rmtree(staging.folder)


# -- values ---------------------------------------------------------------------------------------


def _of_search(texts: Mapping[str, str], layout: Layout) -> tuple[dict[str, str], list[Reason]]:
    """What is known of a search, and what may be against it."""
    values = {kind: f"nullif({texts[kind]}, '')" for kind in SAME if kind in texts}
    reasons = [("query IS NULL", "query is empty", "NULL")]
    for role in ("session", "serp"):
        if role in texts:
            name = texts[role]
            values[role] = (
                f"CASE WHEN coalesce({name}, '') <> '' THEN coalesce(exact({name}), "
                f"(md5_number_lower({name}) >> 2)::BIGINT | {1 << 62}) END"
            )
    if "time" in texts:
        values["time"] = f"{'number' if layout.unit == 'plain' else 'instant'}({texts['time']})"
        reasons.append((f"time = {BAD}", "not a time", "time_text"))
        if layout.unit != "plain":
            values["day"] = f"{values['time']} // {DAY}"
    if "day" in texts:
        values["day"] = f"{'date_of' if layout.dates else 'number'}({texts['day']})"
        reasons.append((f"day = {BAD}", "not a day", "day_text"))
    for role in ("test", "random"):
        if role in texts:
            values[role] = f"number({texts[role]})"
            bad = f"{role} = {BAD} OR {role} > 1"
            reasons.append((bad, f"{role} is neither true nor false", f"{role}_text"))
    return values, reasons


def _of_result(role: str, layout: Layout) -> str:
    """The macro of a value of a result."""
    if role == "click_time":
        return "number" if layout.unit == "plain" else "instant"
    return {"propensity": "amount", "reward": "amount"}.get(role, "number")


NO_CLICKS = "clicks are no whole number from 0 on"
NO_POSITION = "position is no whole number from 0 on"
NO_PROPENSITY = "propensity is not above 0 and at most 1"
OUTSIDE = "propensity <= 0 OR propensity > 1"
TIME_ALONE = "a time without a click"


def select_results(layout: Layout, kinds: Mapping[str, pa.DataType], file: int) -> str:
    """The values of a batch with a row per result."""
    texts = texts_of(layout, kinds)
    values, later = _of_search(texts, layout)
    search = f"nullif({texts['search']}, '')"
    values["search"] = f"'{file}:' || {search}" if layout.by_file else search
    values["item"] = f"nullif({texts['item']}, '')"
    reasons = [("search IS NULL", "search is empty", "NULL"), later[0]]
    reasons.append(("item IS NULL", "item is empty", "NULL"))
    if "domain" in texts:
        values["domain"] = f"nullif({texts['domain']}, '')"
    for role in ("clicks", "position", "propensity", "click_time", "reward"):
        if role in texts:
            values[role] = f"{_of_result(role, layout)}({texts[role]})"
    if layout.apart:
        values["clicks"], texts["clicks"] = "0::BIGINT", "NULL"
        values.setdefault("click_time", "NULL::BIGINT")  # that of the other file
        texts.setdefault("click_time", "NULL")
    reasons += [
        (f"clicks = {BAD} OR clicks > {MOST_CLICKS}", NO_CLICKS, "clicks_text"),
        (f"position = {BAD}", NO_POSITION, "position_text"),
        ("position IS NULL AND coalesce(clicks, 0) = 0", "no position", "NULL"),
    ]
    if "propensity" in values:
        reasons.append((OUTSIDE, NO_PROPENSITY, "propensity_text"))
    if "reward" in values:
        reasons.append(("reward = 'inf'", "reward is no number", "reward_text"))
    if "click_time" in values:
        reasons.append((f"click_time = {BAD}", "not a time", "click_time_text"))
        alone = "click_time IS NOT NULL AND coalesce(clicks, 0) = 0"
        reasons.append((alone, TIME_ALONE, "click_time_text"))
    return _select(values, texts, [*reasons, *later[1:]])


def clicks_layout(table: TableFile, layout: Layout) -> Layout:
    """The columns of a file of clicks: as in the log, or by names that are known."""
    found = recognise(table, {}, kind="results")
    assert found is not None
    columns = {
        role: names
        for role, names in layout.columns.items()
        if role in ("search", "item", "click_time") and all(n in table.names for n in names)
    }
    for role in ("search", "item", "clicks"):
        if role not in columns and role in found.columns:
            columns[role] = found.columns[role]
    if "click_time" not in columns and "time" in found.columns:
        columns["click_time"] = found.columns["time"]
    unused = [name for name in table.names if not any(name in n for n in columns.values())]
    found = Layout("results", columns, unused, unit=found.unit, apart=True)
    if missing := [role for role in ("search", "item") if role not in columns]:
        raise LogevalError(
            f"{table.name}: there is no column for {' and '.join(missing)} of a click; it has "
            f"{printable(table.names)}; call it as in the log"
        )
    return found


def select_clicks(layout: Layout, kinds: Mapping[str, pa.DataType], file: int) -> str:
    """The clicks of a batch, which do not say where."""
    texts = texts_of(layout, kinds)
    values = {role: f"nullif({texts[role]}, '')" for role in ("search", "item")}
    clicks = f"number({texts['clicks']})" if "clicks" in texts else "1"
    values["clicks"] = f"coalesce({clicks}, 1)"
    values["position"] = "NULL::BIGINT"
    reasons = [(f"{role} IS NULL", f"{role} is empty", "NULL") for role in values if role in texts]
    if "clicks" in texts:
        reasons.append((f"clicks = {BAD} OR clicks > {MOST_CLICKS}", NO_CLICKS, "clicks_text"))
    if "click_time" in texts:
        values["click_time"] = f"{_of_result('click_time', layout)}({texts['click_time']})"
        reasons.append((f"click_time = {BAD}", "not a time", "click_time_text"))
    return _select(values, texts, reasons)


def _select(values: Mapping[str, str], texts: Mapping[str, str], reasons: list[Reason]) -> str:
    listed = ", ".join(f"{value} AS {role}" for role, value in values.items())
    raw = [role for role in texts if any(f"{role}_text" == text for *_, text in reasons)]
    also = "".join(f", {texts[role]} AS {role}_text" for role in raw)
    return (
        f"SELECT line, {', '.join(values)}, {first_reason(reasons)} "
        f"FROM (SELECT line, {listed}{also} FROM batch)"
    )


def select_pages(layout: Layout, kinds: Mapping[str, pa.DataType], file: int) -> str:
    """The values of a batch with a row per page: a bad value in a list is against it."""
    texts = texts_of(layout, kinds)
    lists = {role: text for role, text in texts.items() if ROLES[role].lists}
    for role, text in lists.items():
        kind = kinds[layout.columns[role][0]]
        lists[role] = text if hasattr(kind, "value_type") else f"whole_list({text}, '{BLANKS}')"
    single = {role: text for role, text in texts.items() if role not in lists}
    values, reasons = _of_search(single, layout)
    for role, text in lists.items():
        value = "v" if role in ("item", "domain") else f"{_of_result(role, layout)}(v)"
        if role in ("item", "domain"):
            value = "nullif(v, '')"
        values[role] = f"list_transform({text}, lambda v: {value})"
    reasons.append(("coalesce(len(item), 0) = 0", "item is empty", "NULL"))
    for role in lists:
        if role != "item":
            other = f"len({role}) <> len(item)"
            other = f"coalesce({other}, true)" if role in ("clicks", "position") else other
            reasons.append((other, f"{role}: not one value per item", "NULL"))

    def any_of(role: str, bad: str) -> tuple[str, str]:
        found = f"list_filter({role}, lambda v: coalesce({bad}, false))"
        return f"len({found}) > 0", f"{found}[1]::VARCHAR"

    reasons.append(("len(list_filter(item, lambda v: v IS NULL)) > 0", "item is empty", "NULL"))
    bad, _ = any_of("clicks", f"v = {BAD} OR v > {MOST_CLICKS}")
    reasons.append((bad, NO_CLICKS, "clicks_text"))
    if "position" in lists:
        bad, _ = any_of("position", f"v = {BAD}")
        reasons.append((bad, NO_POSITION, "position_text"))
        reasons.append(("list_count(position) < len(position)", "no position", "NULL"))
    if "reward" in lists:
        bad, _ = any_of("reward", "v = 'inf'")
        reasons.append((bad, "reward is no number", "reward_text"))
    if "propensity" in lists:
        bad, value = any_of("propensity", "v <= 0 OR v > 1")
        reasons.append((bad, NO_PROPENSITY, value))
    if "click_time" in lists:
        bad, _ = any_of("click_time", f"v = {BAD}")
        reasons.append((bad, "not a time", "click_time_text"))
        pairs = "list_zip(click_time, clicks)"
        alone = f"list_filter({pairs}, lambda p: p[1] IS NOT NULL AND coalesce(p[2], 0) = 0)"
        reasons.append((f"len({alone}) > 0", TIME_ALONE, "NULL"))
    shown = {role: f"array_to_string({text}, ' ')" for role, text in lists.items()}
    return _select(values, single | shown, reasons)


def _rows_of_pages(layout: Layout) -> str:
    """The results of good pages; a page is its own search, and its number is that of its row."""
    roles = [role for role in layout.columns if role != "search"]
    columns = []
    for role in roles:
        columns.append(f"unnest({role}) AS {role}" if ROLES[role].lists else role)
    if "time" in roles and "day" not in roles and layout.unit != "plain":
        columns.append("day")
    if "position" not in roles:
        columns.append("unnest(range(1, len(item) + 1)) AS position")
    chosen = ", ".join(columns)
    return (
        f"SELECT n * {PLACES} + place AS n, * EXCLUDE (n, place) FROM "
        f"(SELECT n * {PLACES} AS page, n, unnest(range(len(item))) AS place, {chosen} "
        "FROM staged WHERE reason IS NULL)"
    )


# -- pages ----------------------------------------------------------------------------------------


def made_pages(
    staging: Staging, layout: Layout, text: set[str], whole: bool = False
) -> Iterator[Job | Read]:
    """The pages of the rows that were staged; ``whole`` pages know their number."""
    reading = staging.reading
    there = staging.roles()
    facts = _facts(staging, layout, there)
    numbers = staging.number(text, there)
    missing = "clicks IS NULL AND position IS NOT NULL"
    ((rows, empty),) = staging.sql(f"SELECT count(*), count(*) FILTER ({missing}) FROM rows")
    yield Read(Counter(clicks_empty=empty))
    ids = ", ".join(f"{number} AS {kind}" for kind, number in numbers.items())
    plain = [c for c in there if c not in (*IDS, "search", "n", "page", "clicks")]
    columns = ", ".join(["coalesce(clicks, 0) AS clicks", *(f"r.{name}" for name in plain)])
    if whole:
        pages, page = "", "page"
    else:
        staging.db.execute(
            "CREATE TABLE pages AS SELECT search, min(n) FILTER (query IS NOT NULL) AS page "
            "FROM rows GROUP BY search"
        )
        pages, page = "JOIN pages ON pages.search = r.search", "pages.page"
        lost = f"SELECT count(*), sum(r.clicks) FROM rows r {pages} WHERE page IS NULL"
        ((orphans, clicks),) = staging.sql(lost)
        yield Read(Counter(clicks_orphan=orphans, clicks_dropped=int(clicks or 0)))
    # step by step, each of which fits into the memory
    staging.db.execute(
        f"CREATE TABLE numbered AS SELECT {page} AS page, n, {ids}, {columns} FROM rows r {pages} "
        f"{staging.joins()} WHERE {page} IS NOT NULL"
    )
    for table in ("rows", *([] if whole else ["pages"]), *(f"names_{k}" for k in staging.text)):
        staging.db.execute(f"DROP TABLE {table}")
    found = staging.stream("SELECT * FROM numbered ORDER BY page, n", CHUNK_ROWS)
    done = 0
    for chunk in _whole_pages(found):
        yield partial(pages_of, chunk, facts, done)
        done += len(page_cuts(chunk["page"].to_numpy())) + 1
        reading.advance((1 - READING) * reading.size * len(chunk) / max(rows, 1))


def _facts(staging: Staging, layout: Layout, there: frozenset[str]) -> Facts:
    def least(role: str) -> int | None:
        return staging.sql(f"SELECT min({role}) FROM rows")[0][0] if role in there else None

    first_day = least("day") if layout.has_dates else None
    time = least("time" if "time" in there else "click_time") if layout.has_clock else None
    return Facts(
        staging.reading.positions,
        there,
        base=0 if least("position") == 0 else 1,
        first_day=first_day,
        midnight=(time or 0) // DAY * DAY,
    )


def _whole_pages(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Rows cut where a page ends."""
    held: list[pa.Table] = []
    for table in tables:
        page = table["page"].to_numpy()
        cuts = page_cuts(page)
        first = len(cuts) == 0 or sum(map(len, held)) == 0
        held.append(table)
        if sum(map(len, held)) < CHUNK_ROWS and first:
            continue
        whole = pa.concat_tables(held)
        cuts = page_cuts(whole["page"].to_numpy())
        if len(cuts):
            yield whole.slice(0, cuts[-1])
            held = [whole.slice(cuts[-1])]
        elif len(whole) > MOST_ROWS:
            raise LogevalError(
                f"over {MOST_ROWS:,} rows are of one search; is its column the right one?"
            )
        else:
            held = [whole]
    if held:
        yield pa.concat_tables(held)


def pages_of(chunk: pa.Table, facts: Facts, before: int) -> tuple[pa.Table, Read]:
    """The SERPs of whole searches, and what was counted; ``before`` pages are before them."""
    with scratch() as own:
        own.register("chunk", chunk)
        if _is_plain(chunk, facts):
            own.execute(f"CREATE TEMP VIEW placed AS {_plainly_placed(facts)}")
            own.execute(f"CREATE TEMP VIEW cells AS {_plain_cells(facts)}")
        else:
            own.execute(f"CREATE TEMP TABLE placed AS {_placed(facts)}")
            own.execute(f"CREATE TEMP TABLE cells AS {_cells(facts)}")
        counts = _counts(own, facts)
        cells = own.sql(_shown(facts)).to_arrow_table()
        searches = own.sql(_searches(facts, before)).to_arrow_table()
    if (pc.max(cells["clicks"]).as_py() or 0) > MOST_CLICKS:
        raise LogevalError(
            f"over {MOST_CLICKS:,} clicks are on one result of a search; is their column the right "
            "one?"
        )
    pages = len(page_cuts(chunk["page"].to_numpy())) + 1
    counts.update(
        _counts_of_cells(cells, facts.base),
        queries=len(searches),
        pages_empty=pages - len(searches),
    )
    return _with_lists(searches, cells, facts), Read(counts)


def _is_plain(chunk: pa.Table, facts: Facts) -> bool:
    """Whether every search has one query, and its rows in the order of their positions."""
    position = chunk["position"]
    if position.null_count or not len(chunk):
        return False
    page, at = chunk["page"].to_numpy(), position.to_numpy()
    same = page[1:] == page[:-1]
    plain = at.max() - facts.base < facts.limit and not (same & (at[1:] <= at[:-1])).any()
    for name in (name for name in SAME if name in facts.there):
        values = chunk[name].fill_null(-1).to_numpy()
        plain = plain and not (same & (values[1:] != values[:-1])).any()
    return bool(plain)


def _plainly_placed(facts: Facts) -> str:
    """What ``_placed`` makes of such rows."""
    return (
        "SELECT *, false AS contrary, true AS is_result, 1 AS nth, item AS holder, "
        f"position + {1 - facts.base} AS place FROM chunk"
    )


def _plain_cells(facts: Facts) -> str:
    """What ``_cells`` makes of them."""
    more = "".join(f", {name}" for name in OF_RESULT if name in facts.there)
    time = "click_time" if "click_time" in facts.there else "NULL::BIGINT AS click_time"
    reward = "reward" if "reward" in facts.there else "NULL::DOUBLE AS reward"
    every = f"page, place, position, item, clicks, 0 AS times, {time}, {reward}{more}"
    return f"SELECT {every} FROM placed"


def _placed(facts: Facts) -> str:
    """Rows with their place; those that contradict their search, or do not say where, have none."""
    same = [name for name in SAME if name in facts.there]
    firsts = ", ".join(f"any_value({name}) FILTER (n = page) AS {name}_1" for name in same)
    other = " OR ".join(f"coalesce(c.{name} <> f.{name}_1, false)" for name in same)
    return f"""
        WITH f AS (SELECT page, {firsts} FROM chunk GROUP BY page),
        r AS (SELECT c.*, {other} AS contrary FROM chunk c JOIN f ON c.page = f.page)
        SELECT *, NOT contrary AND position IS NOT NULL AS is_result,
            row_number() OVER same AS nth, first_value(item) OVER same AS holder,
            dense_rank() OVER (PARTITION BY page, contrary, position IS NULL ORDER BY position)
                AS place
        FROM r WINDOW same AS (PARTITION BY page, position, contrary ORDER BY n)"""


def _cells(facts: Facts) -> str:
    """A row per place that is kept, with the clicks that belong there."""
    of_result = [name for name in OF_RESULT if name in facts.there]
    firsts = "".join(f", any_value({name}) FILTER (nth = 1) AS {name}" for name in of_result)
    time = "click_time" if "click_time" in facts.there else "NULL::BIGINT"
    reward = "reward" if "reward" in facts.there else "NULL::DOUBLE"
    return f"""
        WITH results AS (
            SELECT page, place, any_value(position) AS position, any_value(holder) AS item,
                sum(clicks) FILTER (item = holder) AS clicks,
                min({time}) FILTER (item = holder) AS click_time,
                sum({reward}) FILTER (item = holder) AS reward{firsts}
            FROM placed WHERE is_result AND place <= {facts.limit} GROUP BY page, place),
        apart AS (
            SELECT p.page, p.n, min(r.place) AS place, any_value(p.clicks) AS clicks,
                any_value({time.replace("click_time", "p.click_time")}) AS click_time,
                any_value({reward.replace("reward", "p.reward")}) AS reward
            FROM placed p JOIN results r ON p.page = r.page AND p.item = r.item
            WHERE p.position IS NULL AND NOT p.contrary GROUP BY p.page, p.n),
        added AS (
            SELECT page, place, sum(clicks) AS more, count(*) AS times,
                min(click_time) AS click_time_too, sum(reward) AS more_reward
            FROM apart GROUP BY page, place)
        SELECT results.* EXCLUDE (clicks, click_time, reward),
            CASE WHEN reward IS NULL AND more_reward IS NULL THEN NULL
                ELSE coalesce(reward, 0) + coalesce(more_reward, 0) END AS reward,
            (clicks + coalesce(more, 0))::BIGINT AS clicks, coalesce(times, 0) AS times,
            least(click_time, click_time_too) AS click_time
        FROM results LEFT JOIN added USING (page, place)"""


def _counts(db: duckdb.DuckDBPyConnection, facts: Facts) -> Counter[str]:
    """What became of the rows of a chunk."""
    ((contrary, dropped, doubled, beyond, apart, repeated),) = db.execute(
        f"""SELECT count(*) FILTER (contrary),
            coalesce(sum(clicks) FILTER (contrary
                OR (is_result AND (item <> holder OR place > {facts.limit}))), 0),
            count(*) FILTER (is_result AND item <> holder),
            count(*) FILTER (is_result AND item = holder AND place > {facts.limit}),
            count(*) FILTER (NOT contrary AND position IS NULL),
            count(*) FILTER (is_result AND item = holder AND nth > 1 AND place <= {facts.limit})
        FROM placed"""
    ).fetchall()
    counts = {
        "rows_repeated": repeated, "rows_doubled": doubled, "rows_cut": beyond,
        "rows_contrary": contrary, "clicks_orphan": apart, "clicks_dropped": dropped,
    }  # fmt: skip
    if "random" in facts.there:
        unclear = (
            "SELECT 1 FROM placed SEMI JOIN cells USING (page) WHERE NOT contrary "
            "GROUP BY page HAVING min(random) < max(random)"
        )
        ((counts["pages_random_unclear"],),) = db.execute(
            f"SELECT count(*) FROM ({unclear})"
        ).fetchall()
    if "test" in facts.there:
        tests = "FROM placed SEMI JOIN cells USING (page) WHERE n = page AND test > 0"
        ((counts["test_queries"],),) = db.execute(f"SELECT count(*) {tests}").fetchall()
    return Counter({name: int(value) for name, value in counts.items()})


def _counts_of_cells(cells: pa.Table, base: int) -> Counter[str]:
    """What pages hold, of their results in order; clicks that found theirs are no orphans."""
    page, position, item = (cells[name].to_numpy() for name in ("page", "position", "items"))
    clicks = cells["clicks"].to_numpy()
    matched, joined = int((clicks > 0).sum()), int(cells["times"].to_numpy().sum())
    starts, ends = _ends(page)
    by_item = np.lexsort((item, page))
    again = (np.diff(page[by_item]) == 0) & (np.diff(item[by_item]) == 0)
    found = Counter(
        results=len(clicks), clicks_matched=matched, clicks_repeat=int(clicks.sum()) - matched,
        clicks_apart=joined,
        pages_with_gaps=int((position[ends - 1] - position[starts] + 1 != ends - starts).sum()),
        pages_later=int((position[starts] > base).sum()),
        pages_with_item_twice=len(np.unique(page[by_item][1:][again])),
    )  # fmt: skip
    found["clicks_orphan"] -= joined
    return found


def _ends(page: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the results of each page begin, and where they end."""
    starts = np.flatnonzero(np.diff(page, prepend=-1))
    return starts, np.append(starts, len(page))[1:]


def _with_lists(searches: pa.Table, cells: pa.Table, facts: Facts) -> pa.Table:
    """Searches with the lists of their results; one of which something is missing has none."""
    starts, ends = _ends(cells["page"].to_numpy())
    columns = {name: searches[name] for name in searches.schema.names}
    first = cells["position"].to_numpy()[starts] - facts.base + 1
    columns["first"] = pa.array(first, mask=first == 1)
    for name in ("items", "domains", "clicks", "click_times", "propensities", "rewards"):
        values, size = one_array(cells[name]), ends - starts
        missing = np.add.reduceat(values.is_null().to_numpy(False).astype(np.int64), starts)
        most = {"click_times": size, "rewards": size - 1}.get(name, 0)
        none = missing > most
        if none.any():
            values = values.filter(pa.array(np.repeat(~none, size)))
        offsets = np.append(0, np.cumsum(np.where(none, 0, size)))
        offsets = pa.array(offsets, pa.int32(), mask=np.append(none, False))
        columns[name] = pa.ListArray.from_arrays(offsets, values)
    return pa.table(columns).select(SERPS.names).cast(SERPS)


def _shown(facts: Facts) -> str:
    """The results of pages in their order."""
    times = f"CASE WHEN clicks > 0 THEN click_time - {facts.midnight} END"
    more = [
        f"{name if name in facts.there else none} AS {column}"
        for name, column, none in (
            ("domain", "domains", "NULL::BIGINT"),
            ("propensity", "propensities", "NULL::DOUBLE"),
            ("reward", "rewards", "NULL::DOUBLE"),
        )
    ]
    return (
        f"SELECT page, position, item AS items, clicks, times, {times} AS click_times, "
        f"{', '.join(more)} FROM cells ORDER BY page, place"
    )


def _searches(facts: Facts, before: int) -> str:
    """What is known of the searches that have results, in the order of the log."""
    there = facts.there
    firsts = [
        f"any_value({name}) FILTER (n = page) AS {name}" for name in OF_SEARCH if name in there
    ]
    if "random" in there:
        flags = "FILTER (NOT contrary)"
        firsts.append(
            f"coalesce(max(random) {flags} = 1 AND min(random) {flags} = 1, false) AS random"
        )

    session = "number" if "session" not in there else f"coalesce(session, number | {1 << 62})"
    shift = 0 if facts.first_day is None else 1 - facts.first_day
    values: dict[str, Any] = {
        "session_id": session,
        "user_id": "user" if "user" in there else "NULL",
        "day": f"day + {shift}" if "day" in there else "NULL",
        "time": f"coalesce(time - {facts.midnight}, 0)" if "time" in there else "0",
        "serp_id": f"coalesce(serp, {session})" if "serp" in there else (
            session if "session" in there else "0"
        ),
        "query_id": "query",
        "region_id": "region" if "region" in there else "NULL",
        "test": "coalesce(test, 0) > 0" if "test" in there else "false",
        "random": "random" if "random" in there else "NULL",
    }  # fmt: skip
    chosen = ", ".join(f'{value} AS "{name}"' for name, value in values.items())
    return f"""
        SELECT {chosen} FROM (SELECT *, row_number() OVER (ORDER BY page) - 1 + {before} AS number
            FROM (SELECT page, {", ".join(firsts)} FROM placed GROUP BY page))
        SEMI JOIN cells USING (page) ORDER BY page"""
