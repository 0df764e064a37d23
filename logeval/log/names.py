"""The names of ids: a log with text ids has numbers inside, and tables of names beside them.

``names/item.parquet`` holds the names of items, likewise for the other KINDS, an id and its name a
row, ids from 0 on. A kind without a table has numbers of its own, and is named by them. Any stage
may keep the names that it needs beside its output (``Names.write``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from logeval.errors import visible
from logeval.storage import tables
from logeval.storage.schemas import NAMES

KINDS = ("query", "item", "user", "domain", "region")
FOLDER = "names"
WIDTH = 40  # characters of a name in a table or a figure
DOTS = "\u2026"


def file_of(folder: Path, kind: str) -> Path:
    """Where the names of a kind are."""
    return folder / FOLDER / f"{kind}.parquet"


def shortened(name: str, width: int = WIDTH) -> str:
    """A name of at most ``width`` characters, shortened in the middle; no control characters.

    >>> shortened("https://www.example.com/shoes/running/42", 20)
    'https://ww…unning/42'
    """
    name = visible(name)
    if len(name) <= width:
        return name
    front = (width - 1) // 2 + (width - 1) % 2
    return name[:front] + DOTS + name[len(name) - (width - 1 - front) :]


@dataclass(frozen=True)
class Names:
    """The names beside a table; ``Log.names`` are those of a log.

    Only what is asked for is held in memory: there may be ten million.
    """

    folder: Path | None = None  # None: there are none
    _known: dict[tuple[str, int], str] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of ids that have names."""
        if self.folder is None:
            return []
        there = [kind for kind in KINDS if file_of(self.folder, kind).exists()]
        if there:
            listed = [f"{FOLDER}/{file_of(self.folder, kind).name}" for kind in there]
            tables.check_files(self.folder, tables.read_manifest(self.folder), listed)
        return there

    def name_of(self, kind: str, number: int) -> str:
        """The name of an id; its digits, if it has none."""
        return self.names_of(kind, [number])[0]

    def names_of(self, kind: str, numbers: Iterable[int]) -> list[str]:
        """The names of ids."""
        wanted = [int(number) for number in numbers]
        unknown = [n for n in dict.fromkeys(wanted) if (kind, n) not in self._known]
        if unknown and kind in self.kinds:
            rows = self._rows(kind, pc.field("id").isin(unknown))
            pairs = zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True)
            self._known.update({(kind, number): name for number, name in pairs})
        return [self._known.get((kind, number), str(number)) for number in wanted]

    def id_of(self, kind: str, name: str) -> int | None:
        """The id that has this name; None if there is none."""
        if kind not in self.kinds:
            return int(name) if name.isascii() and name.isdigit() else None
        found = self._rows(kind, pc.field("name") == name)["id"].to_pylist()
        return found[0] if found else None

    def table(self, kind: str) -> pa.Table:
        """All ids of a kind and their names."""
        return self._rows(kind, None) if kind in self.kinds else NAMES.empty_table()

    def _rows(self, kind: str, condition: pc.Expression | None) -> pa.Table:
        assert self.folder is not None
        return ds.dataset(file_of(self.folder, kind)).to_table(filter=condition)

    def write(self, folder: Path, kept: Mapping[str, Iterable[int]]) -> None:
        """Keep the names of some ids beside another table, before its manifest is written."""
        for kind in self.kinds:
            if kind in kept:
                ids = np.unique(np.asarray(list(kept[kind]), dtype=np.int64))
                names = pa.array(self.names_of(kind, ids), pa.string())
                file = file_of(folder, kind)
                file.parent.mkdir(exist_ok=True)
                tables.write_parquet(pa.table([pa.array(ids), names], schema=NAMES), file)


def notes_on_names(folder: Path) -> list[str]:
    """Names that differ by case, blanks at their ends or Unicode form only; they are kept apart."""
    notes = []
    for kind in KINDS:
        if not (file := file_of(folder, kind)).exists():
            continue
        with duckdb.connect(config={"memory_limit": "300MB"}) as db:
            path = str(file).replace("'", "''")
            found = db.execute(
                "SELECT count(*), any_value(names) FROM (SELECT list(name)[:2] AS names FROM "
                f"read_parquet(['{path}']) GROUP BY lower(nfc_normalize(trim(name))) "
                "HAVING count(*) > 1)"
            ).fetchone()
        if found and found[0]:
            like = " and ".join(repr(shortened(name)) for name in sorted(found[1]))
            notes.append(
                f"{found[0]:,} names of {kind} ids differ only by case, blanks or Unicode form, as "
                f"{like}; they are kept apart"
            )
    return notes
