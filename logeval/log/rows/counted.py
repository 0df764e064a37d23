"""Rows that were counted before (query, item, position, impressions, clicks) -> one row of each.

Who counts clicks may count a repeated one again: a row with more clicks than impressions has them
all clicked, and is counted (``clicks_capped``).
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from logeval.errors import LogevalError
from logeval.log.columns.table_file import Batch, TableFile
from logeval.log.formats.format import Job, Read, Reading
from logeval.log.layouts import Layout
from logeval.log.rows.conversion import Converted, Rejects, Rows
from logeval.log.rows.ids import Ids
from logeval.log.rows.reader import common_layout, converted, text_kinds
from logeval.log.rows.values import GOOD, as_numbers
from logeval.storage import database
from logeval.storage.schemas import COUNTS

ACCOUNTS = {
    "results": "items at a position",
    "rows_repeated": "the same item at the same position again, added up",
    "rows_cut": "beyond the last position that is kept",
    "rejected": "rejected (rejects.tsv)",
}
ROWS = 1 << 20  # of a part
MOST = 1 << 62  # impressions of all rows


def read_counts(reading: Reading, tables: list[TableFile]) -> Iterator[Job | Read]:
    """All files together; what is counted several times is added up."""
    layout = common_layout(tables, reading.columns, "counts")
    reading.say(layout.sentence())
    text = reading.text | text_kinds(tables, layout)
    ids = Ids(reading.folder, text)
    folder = reading.folder / ".rows"
    folder.mkdir()
    convert = partial(convert_counts, layout=layout, text=text)
    with pq.ParquetWriter(folder / "counts.parquet", _schema()) as writer:
        for batch, read in converted(reading, tables, layout.wanted, convert):
            writer.write_table(_numbered(batch.rows, ids))
            yield read
    ids.close()
    yield from _added_up(reading, folder / "counts.parquet")
    shutil.rmtree(folder)


def convert_counts(batch: Batch, file: int, layout: Layout, text: frozenset[str]) -> Converted:
    """The rows of a batch; raises NotNumbers for an id that should be a number."""
    columns = layout.of(batch)
    rejects = Rejects(batch)
    ids = {
        kind: rejects.ids(kind, columns[kind], text)
        for kind in ("query", "region", "item")
        if kind in columns
    }
    for kind in ("query", "item"):
        rejects.add(ids[kind].missing, f"{kind} is empty")
    found = {}
    for role in ("position", "impressions", "clicks"):
        values = as_numbers(columns[role])
        bad = (values.states != GOOD) | (values.values > MOST)
        rejects.add(bad, f"{role}: no whole number from 0 on", columns[role])
        found[role] = values.values
    more = found["clicks"] > found["impressions"]
    clicks = np.minimum(found["clicks"], found["impressions"])
    kept = np.flatnonzero(rejects.good)
    rows = Rows(
        None,
        {kind: given[kept] for kind, given in ids.items()},
        found["position"][kept],
        clicks[kept],
        of_result={"impressions": found["impressions"][kept]},
    )
    rejected = rejects.all()
    counts = Counter(rows=batch.rows, rejected=len(rejected), clicks_capped=int(more[kept].sum()))
    return Converted(rows, rejected, counts)


def _schema() -> pa.Schema:
    """That of the table, positions as they were given."""
    return pa.schema([(field.name, pa.int64()) for field in COUNTS])


def _numbered(rows: Rows, ids: Ids) -> pa.Table:
    numbers = {kind: ids.of(kind, given) for kind, given in rows.ids.items()}
    region = numbers.get("region", np.full(len(rows), -1))
    arrays = [
        numbers["query"],
        pa.array(region, mask=region < 0),
        numbers["item"],
        rows.position,
        rows.of_result["impressions"],
        rows.clicks,
    ]
    return pa.Table.from_arrays([pa.array(array) for array in arrays], schema=_schema())


def _added_up(reading: Reading, file: object) -> Iterator[Job | Read]:
    """The table, sorted, part by part."""
    path = str(file).replace("'", "''")
    settings: dict[str, Any] = {
        "memory_limit": "300MB",
        "temp_directory": str(reading.folder / ".rows" / "sorting"),
    }
    with database.connect(settings) as db:
        db.execute(f"CREATE VIEW rows AS FROM read_parquet(['{path}'])")
        ((every, first, shown),) = db.execute(
            "SELECT count(*), min(position), sum(impressions) FROM rows"
        ).fetchall()
        if shown is not None and shown > MOST:
            raise LogevalError(f"over {MOST:,} impressions in all; is their column the right one?")
        shift = 1 if first == 0 else 0  # some count positions from 0
        kept = f"position + {shift} <= {reading.positions}"
        ((rows,),) = db.execute(f"SELECT count(*) FROM rows WHERE {kept}").fetchall()
        relation = db.sql(
            f"""SELECT query_id, region_id, item_id, (position + {shift})::INTEGER AS position,
                sum(impressions)::BIGINT AS impressions, sum(clicks)::BIGINT AS clicks
            FROM rows WHERE {kept}
            GROUP BY ALL ORDER BY query_id, region_id, position, item_id"""
        )
        results = 0
        for batch in relation.to_arrow_reader(ROWS):
            table = pa.Table.from_batches([batch]).cast(COUNTS)
            results += len(table)
            yield partial(_counted, table)
        yield Read(Counter(rows_cut=every - rows, rows_repeated=rows - results))


def _counted(table: pa.Table) -> tuple[pa.Table, Read]:
    impressions, clicks = (int(table[name].to_numpy().sum()) for name in ("impressions", "clicks"))
    counts = Counter(results=len(table), impressions=impressions, clicks=clicks)
    return table, Read(counts)
