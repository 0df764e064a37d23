"""A column with a list per row: Arrow's lists, or text.

As text a list is written with blanks between its values (in UBI commas, too), or in brackets, as
JSON and Python write it; ``-`` stands for a value that is missing.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logeval.log.columns.table_file import is_list, plain
from logeval.log.rows.values import as_texts

VALUE = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s,]+)""")
MISSING = ("-", "null", "None", "nan", "NaN")


def as_lists(array: pa.Array, between: str = r"\s+") -> pa.ListArray:
    """The lists of a column; those of text hold text, with a pattern ``between`` values.

    A cell that is empty is null.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_list(array.type):
        return _whole(plain(array))
    texts = pc.utf8_trim_whitespace(as_texts(array))
    if not pc.any(pc.starts_with(texts, "[")).as_py():
        lists = pc.split_pattern_regex(texts, between)
        values = lists.flatten()
        values = pc.if_else(pc.equal(values, "-"), None, values)
        empty = pc.equal(texts, "")
        mask = empty if pc.any(empty).as_py() else None
        return pa.ListArray.from_arrays(lists.offsets, values, mask=mask)
    cells = [_cell(text, between) for text in texts.to_pylist()]
    return pa.array(cells, pa.list_(pa.string()))


def _whole(array: pa.ListArray) -> pa.ListArray:
    """Lists that have no values under nulls, or before the first."""
    if array.null_count or array.offset:
        array = array.take(pa.array(np.arange(len(array))))
    return array


def _cell(text: str, between: str) -> list[str | None] | None:
    if not text.startswith("["):
        return [None if v == "-" else v for v in re.split(between, text)] if text else None
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, list):
        return [None if v is None else v if isinstance(v, str) else json.dumps(v) for v in found]
    inner = text[1:].removesuffix("]")
    values = [single or double or bare for single, double, bare in VALUE.findall(inner)]
    return [None if value in MISSING else value for value in values]
