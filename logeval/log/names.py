"""The names of ids: a log with text ids has numbers inside, and tables of names beside them.

``names/item.parquet`` holds the names of items, likewise for the other KINDS, an id and its name a
row, ids from 0 on. A kind without a table has numbers of its own, and is named by them. Models keep
the names of their queries and items likewise; results that speak of queries only keep theirs in
their manifest (``Names.kept``). Tables have ids, whatever a person reads has names.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from logeval.errors import LogevalError, visible
from logeval.log.queries import GivenQueries, GivenQuery, Query, several
from logeval.storage import tables
from logeval.storage.schemas import NAMES

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("query", "item", "user", "domain", "region")
FOLDER = "names"
WIDTH = 40  # characters of a name in a table or a figure
DOTS = "\u2026"
LOOKED_AT = 100_000  # names, for one that is like an unknown one


def file_of(folder: Path, kind: str) -> Path:
    """Where the names of a kind are written."""
    return folder / FOLDER / f"{kind}.parquet"


def shortened(name: str, width: int | None = WIDTH) -> str:
    """A name of at most ``width`` characters, shortened in the middle; no control characters.

    Without a width it stays as it is.

    >>> shortened("https://www.example.com/shoes/running/42", 20)
    'https://ww…unning/42'
    """
    if width is None:
        return name
    name = visible(name)
    if len(name) <= width:
        return name
    front = (width - 1) // 2 + (width - 1) % 2
    return name[:front] + DOTS + name[len(name) - (width - 1 - front) :]


def apart(names: Iterable[str], width: int | None = WIDTH) -> dict[str, str]:
    """Names, each shortened, but no two to the same: these lose what they begin with in common.

    >>> list(apart(["https://a.b/red/shoe?r=123", "https://a.b/blue/shoe?r=123"], 16).values())
    ['…red/shoe?r=123', '…blue/shoe?r=123']
    """
    cut = {name: shortened(name, width) for name in names}
    groups: dict[str, list[str]] = {}
    for name, short in cut.items():
        groups.setdefault(short, []).append(name)
    for alike in groups.values():
        if len(alike) > 1:
            low, high = min(alike), max(alike)
            first = next(n for n in range(len(high)) if not low.startswith(high[: n + 1]))
            own = {name: shortened(DOTS + name[first:], width) for name in alike}
            many = Counter(own.values())
            cut |= {name: own[name] if many[own[name]] == 1 else name for name in alike}
    return cut


@dataclass(frozen=True)
class Names:
    """Names in a folder, or those that are held; ``Log.names`` are those of a log.

    Of a folder only what is asked for is held in memory: there may be ten million.
    """

    folder: Path | None = None
    held: dict[str, dict[int, str]] = field(default_factory=dict, repr=False)  # kind -> id -> name
    manifest: Mapping[str, Any] | None = field(default=None, repr=False)  # of the folder, if known

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of ids that have names."""
        if self.folder is None:
            return [kind for kind in KINDS if kind in self.held]
        return list(self._files)

    @cached_property
    def _files(self) -> dict[str, Path]:
        """The file of each kind, checked."""
        folder = self.folder
        if folder is not None and self.manifest is not None:
            return _files_of(folder, self.manifest)
        if folder is None or not tables.there_is(folder):
            return {}
        return tables.consistent(folder, lambda manifest: _files_of(folder, manifest))

    def name_of(self, kind: str, number: int) -> str:
        """The name of an id; its digits, if it has none."""
        return self.names_of(kind, [number])[0]

    def names_of(self, kind: str, numbers: Iterable[int]) -> list[str]:
        """The names of ids."""
        wanted = [int(number) for number in numbers]
        if kind not in self.kinds:
            return list(map(str, wanted))
        known = self.held.setdefault(kind, {})
        if self.folder and (unknown := [n for n in dict.fromkeys(wanted) if n not in known]):
            rows = self._rows(kind, pc.field("id").isin(unknown))
            known.update(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))
        return [known.get(number, str(number)) for number in wanted]

    def id_of(self, kind: str, name: str) -> int | None:
        """The id that has this name; None if there is none."""
        if kind not in self.kinds:
            return int(name) if name.isascii() and name.isdigit() else None
        found = self._rows(kind, pc.field("name") == name)["id"].to_pylist()
        return found[0] if found else None

    def ids_of(self, kind: str, names: Iterable[str]) -> dict[str, int | None]:
        """The ids of many names of a kind that has some; None for those that are not there."""
        found: dict[str, int | None] = dict.fromkeys(names)
        rows = self._rows(kind, pc.field("name").isin(list(found)))
        found.update(zip(rows["name"].to_pylist(), rows["id"].to_pylist(), strict=True))
        return found

    def table(self, kind: str) -> pa.Table:
        """All ids of a kind and their names."""
        return self._rows(kind, None) if kind in self.kinds else NAMES.empty_table()

    def _rows(self, kind: str, condition: pc.Expression | None) -> pa.Table:
        if self.folder is None:
            known = self.held[kind]
            rows = pa.table([list(known), list(known.values())], schema=NAMES)
            return rows if condition is None else rows.filter(condition)
        return ds.dataset(self._files[kind]).to_table(filter=condition)

    # -- queries ------------------------------------------------------------------------------

    def meant(self, query: GivenQuery) -> Query:
        """The query that a user means: by its name where it has one, in a region if one is named.

        A number is an id, as in tables.
        """
        if not isinstance(query, str) or "query" not in self.kinds:
            return Query.of(query)
        if (number := self.id_of("query", query)) is not None:
            return Query(number)
        name, _, place = query.rpartition("@")
        region = self.id_of("region", place)
        if (number := self.id_of("query", name)) is not None and region is not None:
            return Query(number, region)
        known = self.table("query")["name"].slice(0, LOOKED_AT).to_pylist()
        close = difflib.get_close_matches(query, known, n=2)
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise LogevalError(f"there is no query {query!r}{hint or '; `describe` lists those'}")

    def all_meant(self, queries: GivenQueries) -> list[Query] | None:
        """Queries as users give them: one or several; None for all."""
        if queries is None:
            return None
        given = [one for query in several(queries) for one in self._apart(query)]
        return [self.meant(query) for query in given]

    def _apart(self, given: GivenQuery) -> list[GivenQuery]:
        """The queries of a text with commas between them; names may hold commas themselves."""
        parts = given.split(",") if isinstance(given, str) else []
        if len(parts) < 2:
            return [given]
        known: dict[str, int | None] = {}
        if "query" in self.kinds:
            ends = [(i, j) for i in range(len(parts)) for j in range(i + 2, len(parts) + 1)]
            known = self.ids_of("query", (",".join(parts[i:j]).strip() for i, j in ends))

        def there(parts: list[str]) -> bool:
            return known.get(",".join(parts).strip()) is not None

        found: list[GivenQuery] = []
        while parts:
            fits = (n for n in range(len(parts), 1, -1) if there(parts[:n]))
            n = next(fits, 1)
            found += [one] if (one := ",".join(parts[:n]).strip()) else []
            parts = parts[n:]
        return found

    def query(self, query: GivenQuery) -> str:
        """The whole name of a query, as ``meant`` reads it."""
        number, region = Query.of(query)
        name = self.name_of("query", number)
        return name if region is None else f"{name}@{self.name_of('region', region)}"

    def titles(self, queries: Iterable[str], width: int | None = WIDTH) -> dict[str, str]:
        """The queries in the order of their ids, as people read and give them: ``12``, or the name.

        With its region, ``12@3``, where one query has several. Names are shortened to ``width``,
        unless two would be the same then. ``2@0+1@0`` are several that take turns.
        """
        given = sorted(queries, key=_order)
        short = {q: self._title(re.sub(r"@-?\d+", "", q)) for q in given}
        many = Counter(short.values())
        whole = {q: short[q] if many[short[q]] == 1 else self._title(q) for q in given}
        cut = {q: shortened(title, width) for q, title in whole.items()}
        alike = Counter(cut.values())
        return {q: cut[q] if alike[cut[q]] == 1 else whole[q] for q in given}

    def _title(self, query: str) -> str:
        """Queries that take turns by their names; what is not of a log has a name of its own."""
        if not {"query", "region"} & set(self.kinds):
            return query
        parts = query.split("+")
        if not all(re.fullmatch(r"-?\d+(@-?\d+)?", part) for part in parts):
            return query
        return "+".join(self.query(part) for part in parts)

    def shown(self, frame: pd.DataFrame, width: int | None = None) -> pd.DataFrame:
        """A table for people: names in the place of ids in the columns ``query`` and ``item``."""
        found = frame.copy()
        if "query" in frame and {"query", "region"} & set(self.kinds):
            there = frame["query"].dropna().unique()
            whole = {q: self.query(str(q)) for q in there}
            short = apart(whole.values(), width)
            names = {q: short[name] for q, name in whole.items()}
            found["query"] = frame["query"].map(names).where(frame["query"].notna(), None)
        if "item" in frame and "item" in self.kinds:
            items = self.names_of("item", frame["item"])
            short = apart(items, width)
            found["item"] = [short[name] for name in items]
        return found

    # -- kept beside what is made of the log --------------------------------------------------

    def only(self, kept: Mapping[str, Iterable[int]]) -> Names:
        """The names of some ids, held."""
        ids = {kind: sorted(set(map(int, kept[kind]))) for kind in self.kinds if kind in kept}
        return Names(
            None, {k: dict(zip(n, self.names_of(k, n), strict=True)) for k, n in ids.items()}
        )

    def of_queries(self, queries: Iterable[GivenQuery]) -> Names:
        """The names of some queries and their regions, held."""
        if not self.kinds:
            return Names()
        given = [Query.of(query) for query in queries]
        regions = [query.region_id for query in given if query.region_id is not None]
        return self.only({"query": [query.query_id for query in given], "region": regions})

    def kept(self) -> dict[str, dict[str, str]]:
        """Names that are held, as a manifest keeps them."""
        return {kind: {str(n): name for n, name in one.items()} for kind, one in self.held.items()}

    @classmethod
    def read(cls, folder: Path, manifest: Mapping[str, Any]) -> Names:
        """All names of a folder, held: another output may take its place."""
        held = {}
        for kind, file in _files_of(folder, manifest).items():
            rows = ds.dataset(file).to_table()
            held[kind] = dict(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))
        return cls(None, held)

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Names:
        """The names that a manifest keeps."""
        kept = manifest.get("names", {}).items()
        return cls(None, {kind: {int(n): name for n, name in one.items()} for kind, one in kept})

    def __or__(self, others: Names) -> Names:
        """Those of both, which are held."""
        kinds = dict.fromkeys([*self.held, *others.held])
        return Names(None, {k: self.held.get(k, {}) | others.held.get(k, {}) for k in kinds})

    def write(self, folder: Path) -> None:
        """Write names that are held beside a table, before its manifest is written."""
        for kind, names in self.held.items():
            file = file_of(folder, kind)
            file.parent.mkdir(exist_ok=True)
            ids = np.array(sorted(names), dtype=np.int64)
            texts = pa.array([names[n] for n in ids.tolist()], pa.string())
            tables.write_parquet(pa.table([pa.array(ids), texts], schema=NAMES), file)


def _files_of(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Path]:
    """The files of the kinds that a manifest names, checked."""
    listed = {kind: tables.file_of(manifest, f"{FOLDER}/{kind}") for kind in KINDS}
    there = {kind: file for kind, file in listed.items() if file is not None}
    tables.check_files(folder, manifest, there.values())
    return {kind: folder / file for kind, file in there.items()}


def _order(query: str) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", query)
    ]
