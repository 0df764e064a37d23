"""Tables as CSV that a spreadsheet can open without running what is in it.

A cell that begins with = + - @ is a formula to a spreadsheet, and one of a target or a policy that
somebody else named could start a program. Such text gets an apostrophe in front, numbers do not.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

FORMULA = re.compile(r"[=+@\t\r]|-(?![0-9.]+(@[0-9]+)?$)")  # but -5 and -5@0 are queries


def csv_of(frame: pd.DataFrame, float_format: str | None = None) -> str:
    """The table as CSV; numbers in all their digits unless told otherwise."""
    frame = frame.rename(columns=_plain)
    texts = frame.select_dtypes(exclude="number").columns  # numbers may change when mapped
    frame[texts] = frame[texts].map(_plain)
    # Python quotes a field for \n and not for \r, which ends a row to others
    returns = frame[texts].map(lambda value: "\r" in str(value)).any(axis=None)
    return frame.to_csv(
        index=False,
        lineterminator="\n",
        float_format=float_format,
        quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL,
    )


def _plain(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value
