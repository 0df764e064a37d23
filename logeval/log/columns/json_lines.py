"""NDJSON: an object per line; compressed or not.

Arrow parses a block of lines with the types of the first ones. A block that it cannot, since a line
is no object or a value is of another type, is parsed line by line. What elasticdump and its like
wrap in ``_source`` is taken out of it. Names with a point in them are as good as nested ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from logeval.errors import LogevalError, visible
from logeval.log.columns.blocks import record_blocks
from logeval.log.columns.table_file import DAMAGED, SAMPLE, Batch, TableFile, batch_of
from logeval.log.reading.source import HEAD, Source
from logeval.log.rejects import EXCERPT, Reject

WRAPPED = "_source."


class JsonLines(TableFile):
    """A file of objects."""

    def __init__(self, source: Source) -> None:
        self.name, self._source = source.name, source
        self.complete = len(source.head) < HEAD - 3  # and a byte order mark
        lines = source.first_lines.splitlines()[:SAMPLE]
        found = [each for each in map(_object, lines) if each is not None]
        if not found:
            raise LogevalError(
                f"{self.name}: begins as JSON, but its first line is not an object; "
                "write one object per line (NDJSON)"
            )
        wrapped = all(isinstance(each.get("_source"), dict) for each in found)
        self._prefix = WRAPPED if wrapped else ""
        self._first = list(map(_flat, found))
        self._plain = not any("." in key for each in found for key in each)
        paths = dict.fromkeys(path for each in self._first for path in each)
        self.names = [
            path.removeprefix(self._prefix) for path in paths if path.startswith(self._prefix)
        ]

    @cached_property
    def _first_columns(self) -> dict[str, pa.Array]:
        return {
            name: as_array([each.get(self._prefix + name) for each in self._first])
            for name in self.names
        }

    def _sample(self) -> pa.Table:
        return pa.table(self._first_columns)

    def _batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]:
        text = pa.array([], pa.string())  # what is not among the first rows may come later
        types = {self._prefix + name: self._first_columns.get(name, text).type for name in wanted}
        schema = _schema(types) if self._plain else None
        for block in record_blocks(self._source, None):
            yield partial(self._parse, block, wanted, schema)

    def _parse(self, block: memoryview, wanted: Sequence[str], schema: pa.Schema | None) -> Batch:
        if schema is None:
            return self._line_by_line(bytes(block), wanted)
        try:
            read = pajson.ReadOptions(use_threads=False, block_size=len(block) + 1)
            parse = pajson.ParseOptions(schema, unexpected_field_behavior="ignore")
            table = pajson.read_json(pa.BufferReader(block), read, parse)
            table.validate(full=True)  # whether text is UTF-8
        except DAMAGED:
            return self._line_by_line(bytes(block), wanted)
        batch = batch_of(table, [self._prefix + name for name in wanted])
        columns = {name.removeprefix(self._prefix): a for name, a in batch.columns.items()}
        return Batch(columns, batch.rows)

    def _line_by_line(self, block: bytes, wanted: Sequence[str]) -> Batch:
        rows, rejects = [], []
        lines = [line for line in block.split(b"\n") if line.strip()]
        for number, line in enumerate(lines):
            found = _object(line)
            if found is None:
                text = visible(line[:EXCERPT].decode(errors="backslashreplace"))
                rejects.append(Reject(number, "not a JSON object", text))
            else:
                rows.append(_flat(found))
        columns = {
            name: as_array([each.get(self._prefix + name) for each in rows]) for name in wanted
        }
        return Batch(columns, len(lines), rejects)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
        if b"\\ud" in line.lower():
            json.dumps(found, ensure_ascii=False).encode()  # half a character is no text
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _flat(found: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """The values of an object, those of inner ones by their path."""
    flat: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{path}{name}.")
        else:
            flat[path + name] = value
    return flat


def as_array(values: Sequence[Any]) -> pa.Array:
    """Values as an array; as text, if they are of several types."""
    try:
        found = pa.array(values, from_pandas=True)
    except (*DAMAGED, OverflowError):
        if any(isinstance(value, list | tuple) for value in values):
            return pa.array(
                [None if v is None else _texts(v) for v in values], pa.list_(pa.string())
            )
        return pa.array([_text(value) for value in values], pa.string())
    return found.cast(pa.string()) if pa.types.is_null(found.type) else found


def _texts(value: Any) -> list[str | None]:
    return [_text(one) for one in value] if isinstance(value, list | tuple) else [_text(value)]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | list | dict) else str(value)


def _schema(types: Mapping[str, pa.DataType]) -> pa.Schema:
    """The schema of nested objects with these paths."""
    inner: dict[str, dict[str, pa.DataType]] = {}
    for path, kind in types.items():
        name, _, rest = path.partition(".")
        inner.setdefault(name, {})[rest] = kind
    return pa.schema(
        [
            (name, below[""] if "" in below else pa.struct(list(_schema(below))))
            for name, below in inner.items()
        ]
    )
