"""What the values of a column are, in SQL: macros over text, whatever a file stores it as.

A macro has three answers: a value, NULL where there is none, and BAD for what is something else.
"""

from __future__ import annotations

import math
import os
from functools import cache

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from logeval.errors import LogevalError, visible
from logeval.log.tables.files import is_list
from logeval.storage import database

BAD = -(1 << 62)  # no whole number, day or time is that
DAY = 86_400  # seconds
EPOCH = 10**9  # typical numbers from here on are times since 1970; smaller ones stay as they are
MOST_CLICKS = 2**31 - 1  # on a result
BLANKS = r"\s+"  # between the values of a list in text
MACROS = f"""
CREATE MACRO exact(x) AS CASE WHEN TRY_CAST(x AS BIGINT)::VARCHAR = x AND x[1] <> '-'
    THEN TRY_CAST(x AS BIGINT) END;
CREATE MACRO number(x) AS CASE WHEN coalesce(x, '') = '' THEN NULL
    WHEN TRY_CAST(x AS DOUBLE) BETWEEN 0 AND 9007199254740991 AND TRY_CAST(x AS DOUBLE) % 1 = 0
        AND NOT contains(x, '_') THEN TRY_CAST(x AS DOUBLE)::BIGINT
    ELSE coalesce(exact(x), CASE WHEN lower(trim(x)) IN ('true', 'yes', 't', 'y') THEN 1
        WHEN lower(trim(x)) IN ('false', 'no', 'f', 'n') THEN 0
        WHEN lower(trim(x)) NOT IN ('nan', 'null', 'none', 'na', 'n/a', '\\n') THEN {BAD} END) END;
CREATE MACRO amount(x) AS CASE WHEN coalesce(x, '') = '' THEN NULL
    WHEN isfinite(TRY_CAST(x AS DOUBLE)) AND NOT contains(x, '_') THEN TRY_CAST(x AS DOUBLE)
    WHEN lower(trim(x)) IN ('nan', 'null', 'none', 'na', 'n/a', '\\n') THEN NULL
    ELSE 'inf'::DOUBLE END;
CREATE MACRO calendar(x) AS CASE WHEN coalesce(x, '') = '' THEN NULL
    ELSE coalesce((epoch_us(TRY_CAST(x AS TIMESTAMPTZ)) // 1000000)::BIGINT, {BAD}) END;
CREATE MACRO instant(x) AS list_transform([number(x)], lambda n:  -- which is planned only once
    CASE WHEN n = {BAD} THEN calendar(x) WHEN n >= {10**16} THEN n // 1000000000
        WHEN n >= {10**13} THEN n // 1000000 WHEN n >= {10**10} THEN n // 1000 ELSE n END)[1];
CREATE MACRO date_of(x) AS CASE WHEN calendar(x) = {BAD} THEN {BAD} ELSE calendar(x) // {DAY} END;
CREATE MACRO whole_list(x, between) AS CASE WHEN coalesce(trim(x), '') = '' THEN NULL
    WHEN trim(x)[1] <> '[' THEN list_transform(regexp_split_to_array(trim(x), between),
        lambda v: nullif(v, '-'))
    WHEN json_valid(x) AND NOT contains(lower(x), 'nan') THEN json_extract_string(x, '$[*]')
    ELSE list_transform(
        regexp_extract_all(x, '''(?:[^''\\\\]|\\\\.)*''|"(?:[^"\\\\]|\\\\.)*"|[^\\s,\\[\\]]+'),
        lambda v: CASE WHEN v[1] IN ('''', '"') THEN v[2:-2]
            WHEN v IN ('-', 'null', 'None', 'nan', 'NaN') THEN NULL ELSE v END) END;
"""


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def text_of(column: str, kind: pa.DataType) -> str:
    """A column of a type as text in SQL, or as a list of texts; a float that is whole as digits."""
    if pa.types.is_string(kind):
        return column
    if is_list(kind):
        value = _text("v", kind.value_type)
        return f"list_transform({column}, lambda v: {value})"
    return _text(column, kind)


def _text(value: str, kind: pa.DataType) -> str:
    if pa.types.is_floating(kind):
        whole = f"{value} = floor({value}) AND abs({value}) < 9007199254740992"
        return f"CASE WHEN {whole} THEN {value}::BIGINT::VARCHAR ELSE {value}::VARCHAR END"
    return f"{value}::VARCHAR"


def check_exact(name: str, array: pa.Array) -> None:
    """Raise if ids are floats so large that two of them may be one."""
    if is_list(array.type):
        array = array.flatten()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary
    if not pa.types.is_floating(array.type):
        return
    bits = {16: 11, 32: 24, 64: 53}[array.type.bit_width]
    most = pc.max(pc.abs(array.cast(pa.float64()))).as_py()
    if most is not None and 2**bits <= most < math.inf:
        raise LogevalError(
            f"column {visible(name)} has ids as floats, as {most:.0f}; from 2^{bits} on two ids "
            "may be the same float: make the column text or whole numbers where the log is "
            "written, as pandas.read_csv(..., dtype={...: 'Int64'}) or 'string' does"
        )


def unit_of(number: int) -> str:
    """The unit that a typical number of a column of times has by its size."""
    if number < EPOCH:
        return "plain"
    units = {10**10: "seconds", 10**13: "milliseconds", 10**16: "microseconds"}
    return next((unit for most, unit in units.items() if number < most), "nanoseconds")


@cache
def _shared(process: int) -> duckdb.DuckDBPyConnection:
    db = database.connect({})
    db.execute(MACROS)
    return db


def scratch() -> duckdb.DuckDBPyConnection:
    """A connection for small things, with the macros; to open a database each time takes longer."""
    return _shared(os.getpid()).cursor()


class Sample:
    """The first rows of a file, of which SQL may be asked."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self._db = scratch()
        self._db.register("sample", rows.rename_columns([f"c{i}" for i in range(rows.num_columns)]))

    def text(self, name: str) -> str:
        """A column as text in SQL."""
        i = self.rows.schema.names.index(name)
        return text_of(f"c{i}", self.rows.schema.field(i).type)

    def is_list(self, name: str) -> bool:
        """Whether a column holds lists as such."""
        return is_list(self.rows.schema.field(name).type)

    def share_bad(self, name: str, macro: str) -> tuple[float, bool]:
        """The share of a column's values that a macro cannot read, and whether there are any."""
        bad = "= 'inf'" if macro == "amount" else f"= {BAD}"
        ((wrong, there),) = self._db.execute(
            f"SELECT count(*) FILTER (v {bad}), count(v) FROM (SELECT {macro}(t) v "
            f"FROM (SELECT {self.text(name)} t FROM sample))"
        ).fetchall()
        return wrong / max(there, 1), bool(there)

    def typical(self, name: str, lists: bool) -> int | None:
        """The median of a column's numbers, or of those in its lists, if most values are some."""
        text = self.text(name)
        if lists:
            split = text if self.is_list(name) else f"whole_list({text}, '{BLANKS}')"
            text = f"unnest({split})"
        ((bad, good, middle),) = self._db.execute(
            f"SELECT count(*) FILTER (v = {BAD}), count(*) FILTER (v <> {BAD}), "
            f"median(v) FILTER (v <> {BAD}) FROM (SELECT number(t) v FROM "
            f"(SELECT {text} t FROM sample))"
        ).fetchall()
        return int(middle) if good and good >= bad else None
