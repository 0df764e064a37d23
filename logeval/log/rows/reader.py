"""Files of rows per result, or per page -> SERPs.

Rows per result go onto the disk first, and then off it page by page: a search may be anywhere. A
page of its own row need not, unless days are dates: then the first one must be known.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from logeval.errors import LogevalError, printable
from logeval.log.columns.table_file import Batch, TableFile, one_array
from logeval.log.formats.format import Job, Read, Reading
from logeval.log.layouts import Kind, Layout, Map, check_complete, recognise
from logeval.log.names import KINDS
from logeval.log.reading.parts import in_order
from logeval.log.rows.conversion import Converted, Numbering, Spill
from logeval.log.rows.grouping import Chunk, chunks
from logeval.log.rows.ids import Ids, NotNumbers, are_numbers
from logeval.log.rows.pages import ALL_COUNTS, Facts, serps_of
from logeval.log.rows.results import convert_pages, convert_results
from logeval.log.rows.values import DAY, as_lists

READING = 0.6  # of the time, where rows go onto the disk
Convert = Callable[[Batch, int], Converted]  # of a batch and the number of its file


def read_tables(
    reading: Reading,
    tables: list[TableFile],
    kind: Kind,
    known: Map | None = None,
    by_file: bool = False,
) -> Iterator[Job | Read]:
    """All files together; ``known`` names the columns of their format.

    With ``by_file`` searches of two files are never the same, even if they have the same id.
    """
    layout = replace(common_layout(tables, reading.columns, kind, known), by_file=by_file)
    reading.say(layout.sentence())
    text = reading.text | text_kinds(tables, layout)
    numbering = Numbering(Ids(reading.folder, text))
    pages = kind == "pages"
    convert = partial(convert_pages if pages else convert_results, layout=layout, text=text)
    read = direct_pages if pages and not layout.has_dates else spilled_pages
    yield from read(reading, tables, layout.wanted, convert, numbering)
    numbering.ids.close()


def direct_pages(
    reading: Reading,
    tables: list[TableFile],
    wanted: list[str],
    convert: Convert,
    numbering: Numbering,
) -> Iterator[Job | Read]:
    """Pages of rows that are one each."""
    facts = Facts(reading.positions)
    yield Read(Counter(dict.fromkeys(ALL_COUNTS, 0)))
    for batch, read in converted(reading, tables, wanted, convert):
        yield read
        if len(batch.rows):
            found = numbering.of(batch.rows)
            pages = {"page": found.runs["run"], **found.runs}
            yield partial(serps_of, Chunk(pages, found.rows, found.first), facts)


def spilled_pages(
    reading: Reading,
    tables: list[TableFile],
    wanted: list[str],
    convert: Convert,
    numbering: Numbering,
    views: bool = False,
) -> Iterator[Job | Read]:
    """Pages of rows that may be anywhere."""
    spill = Spill(reading.folder / ".rows", numbering)
    yield Read(Counter(dict.fromkeys(ALL_COUNTS, 0)))
    for source in reading.sources:
        source.advance = lambda n: reading.advance(n * READING)
    for batch, read in converted(reading, tables, wanted, convert):
        spill.add(batch.rows)
        yield read
    spill.close()
    facts = Facts(
        reading.positions,
        first_position=0 if spill.first_position == 0 else 1,
        first_day=spill.first_day,
        midnight=(spill.first_time or 0) // DAY * DAY,
        views=views,
    )
    for chunk in chunks(spill, reading.workers):
        yield partial(serps_of, chunk, facts)
        done = len(chunk.rows["item"]) / spill.rows
        reading.advance((1 - READING) * reading.size * done)
    if spill.repeated:
        yield Read(Counter(queries_repeated=spill.repeated))
    shutil.rmtree(spill.folder)


def converted(
    reading: Reading, tables: list[TableFile], wanted: list[str], convert: Convert
) -> Iterator[tuple[Converted, Read]]:
    """The batches of all files, and what was counted in each."""
    for file, table in enumerate(tables):
        rows = 0
        try:
            calls = (
                partial(_converted, convert, read, file, reading.most)
                for read in table.batches(wanted)
            )
            for batch in in_order(calls, reading.workers):
                rows += batch.counts["rows"]
                yield batch, Read(batch.counts, partial(tuple, batch.rejects), file)
                if reading.most is not None:
                    break
        except NotNumbers as error:
            raise error.found_in(table.name, rows) from None
        if not rows:
            raise LogevalError(f"{table.name}: has no rows; there is nothing to ingest")


def _converted(
    convert: Convert, read: Callable[[], Batch], file: int, most: int | None
) -> Converted:
    batch = read()
    return convert(batch if most is None else batch.first(most), file)


def common_layout(
    tables: Iterable[TableFile], given: Map, kind: Kind, known: Map | None = None
) -> Layout:
    """What the columns of the first file are taken for; the others must have the same ones."""
    first, *others = tables
    layout = check_complete(first, recognise(first, given, known, kind))
    for other in others:
        if missing := [name for name in layout.wanted if name not in other.names]:
            raise LogevalError(
                f"{other.name}: has no column {missing[0]!r}, which {first.name} has; its columns "
                f"are {printable(other.names)}; ingest files with other columns one by one"
            )
    return layout


def text_kinds(tables: Iterable[TableFile], layout: Layout) -> frozenset[str]:
    """The kinds of ids that are not numbers in the first rows of each file."""
    found = set()
    for table in tables:
        sample = table.sample()
        for kind in [kind for kind in KINDS if kind in layout.columns]:
            values = one_array(sample[layout.columns[kind][0]])
            if layout.kind == "pages" and kind in ("item", "domain"):
                values = as_lists(values).flatten()
            if not are_numbers(values, table.typed):
                found.add(kind)
    return frozenset(found)
