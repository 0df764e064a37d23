"""A column as it is stored -> numbers, texts, times, and which of its values are none.

Numbers may come as text, booleans or floats (1.0), times as text (ISO 8601), timestamps or numbers.
Empty text and null are missing; of numbers so are nan, null, none and na, as programs write them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logeval.errors import LogevalError, visible
from logeval.log.columns.table_file import DAMAGED, is_list
from logeval.log.rows.texts import BAD, GOOD, MISSING, numbers_of
from logeval.running.arrays import Floats, Ints

WORDS = {"true": 1, "false": 0, "yes": 1, "no": 0, "t": 1, "f": 0, "y": 1, "n": 0}
NO_NUMBER = pa.array(["nan", "null", "none", "na", "n/a", "\\n"])
PER_SECOND = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
DAY = 86_400  # seconds
# typical numbers from here on are times since 1970; smaller ones are taken as they are
EPOCH = 10**9
# from here on a number is milliseconds, microseconds, nanoseconds: in seconds it is the year 2286
FINER = 10 ** np.array([10, 13, 16])


@dataclass(frozen=True)
class Values:
    """The values of a column, and of each whether it is GOOD, MISSING or BAD."""

    values: Ints | Floats
    states: Ints

    def filled(self, value: float) -> Ints | Floats:
        """The values; where there is none, another one."""
        return np.where(self.states == GOOD, self.values, self.values.dtype.type(value))


def as_texts(array: pa.Array) -> pa.StringArray:
    """A column as text; null is empty."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        with_ints = _whole(array)
        array = array if with_ints is None else with_ints
    if not pa.types.is_string(array.type):
        array = array.cast(pa.string())
    return array.fill_null("") if array.null_count else array


def is_whole(array: pa.Array) -> bool:
    """Whether a column holds whole numbers as such; those that floats are count, too."""
    if pa.types.is_dictionary(array.type):
        return is_whole(array.dictionary)
    floating = pa.types.is_floating(array.type)
    return pa.types.is_integer(array.type) or (floating and _whole(array) is not None)


def _whole(array: pa.Array) -> pa.Array | None:
    """Floats as whole numbers, as pandas has them where some are missing; None if one is not."""
    try:
        return array.cast(pa.int64())
    except DAMAGED:
        return None


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


def as_numbers(array: pa.Array, exact: bool = False) -> Values:
    """A column as whole numbers from 0 on.

    Unless it is to be ``exact``, so are 1.0, 01 and True.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if is_whole(array):
        missing = array.is_null().to_numpy(zero_copy_only=False)
        try:
            values = array.cast(pa.int64()).fill_null(0).to_numpy()
        except DAMAGED:  # over 2^63
            return as_numbers(as_texts(array), exact)
        states = np.where(missing, MISSING, np.where(values < 0, BAD, GOOD)).astype(np.uint8)
        return Values(values, states)
    texts = as_texts(array)
    values, states = numbers_of(texts)
    if not exact and (states == BAD).any():
        _by_value(texts, values, states, _number)
        if (bad := np.flatnonzero(states == BAD)).size:
            left = pc.utf8_lower(pc.utf8_trim_whitespace(texts.take(pa.array(bad))))
            states[bad[pc.is_in(left, NO_NUMBER).to_numpy(zero_copy_only=False)]] = MISSING
    return Values(values, states)


def as_floats(array: pa.Array) -> Values:
    """A column as numbers."""
    texts = None
    if not (pa.types.is_floating(array.type) or pa.types.is_integer(array.type)):
        texts = as_texts(array)
        array = pc.if_else(pc.equal(texts, ""), None, texts)
    missing = array.is_null(nan_is_null=texts is None).to_numpy(zero_copy_only=False)
    try:
        values = (
            array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False, writable=True)
        )
    except DAMAGED:
        values = np.full(len(array), np.nan)
    states = np.where(missing, MISSING, np.where(np.isfinite(values), GOOD, BAD)).astype(np.uint8)
    if texts is not None and (states == BAD).any():
        _by_value(texts, values, states, _float)
    return Values(values, states)


def as_times(array: pa.Array, unit: str | None) -> Values:
    """A column as seconds since 1970; as they are, if the ``unit`` is plain.

    A unit says that they are numbers. Each may have another one: files do, before and after a
    change of what writes them.
    """
    if unit is not None:
        found = as_numbers(array)
        per = np.array(list(PER_SECOND.values()))[_unit_of(found.values)]
        seconds, states = found.values // (1 if unit == "plain" else per), found.states
        if unit != "plain" and (states == BAD).any():  # some clients write numbers, some ISO 8601
            _by_value(as_texts(array), seconds, states, _seconds)
        return Values(seconds, states)
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("s", array.type.tz), safe=False).cast(pa.int64())
        missing = array.is_null().to_numpy(zero_copy_only=False)
        return Values(
            array.fill_null(0).to_numpy(), np.where(missing, MISSING, GOOD).astype(np.uint8)
        )
    texts = as_texts(array)
    empty = pc.equal(texts, "")
    for zone in (None, "UTC"):  # Arrow reads texts with a zone or without, but not both
        try:
            times = pc.if_else(empty, None, texts).cast(pa.timestamp("s", zone), safe=False)
        except DAMAGED:
            continue
        return as_times(times, None)
    values = np.zeros(len(texts), np.int64)
    states = np.where(empty.to_numpy(zero_copy_only=False), MISSING, BAD).astype(np.uint8)
    _by_value(texts, values, states, _seconds)
    return Values(values, states)


def time_unit(array: pa.Array) -> str | None:
    """The unit of a column of times by its first values; None for text and timestamps."""
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        return None
    found = as_numbers(array)
    numbers = found.values[found.states == GOOD]
    if len(numbers) < (found.states == BAD).sum() or not len(numbers):
        return None
    typical = int(np.median(numbers))
    return list(PER_SECOND)[int(_unit_of(typical))] if typical >= EPOCH else "plain"


def _unit_of(numbers: Ints | int) -> Ints:
    """Which of the units numbers have by their size."""
    return np.searchsorted(FINER, numbers, side="right")


def _by_value(
    texts: pa.StringArray,
    values: Ints | Floats,
    states: Ints,
    convert: Callable[[str], float | None],
) -> None:
    """Convert what is BAD so far, each different text once."""
    places = np.flatnonzero(states == BAD)
    encoded = texts.take(pa.array(places)).dictionary_encode()
    found = [convert(text) for text in encoded.dictionary.to_pylist()]
    which = encoded.indices.to_numpy()
    good = np.array([value is not None for value in found], dtype=np.bool_)[which]
    numbers = np.array([value or 0 for value in found], dtype=values.dtype)[which]
    values[places[good]], states[places[good]] = numbers[good], GOOD


def _number(text: str) -> int | None:
    text = text.strip()
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    value = _float(text)
    if value is None or value != int(value) or not 0 <= value < 2**53:
        return None
    return int(value)


def _float(text: str) -> float | None:
    if "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _seconds(text: str) -> int | None:
    number = _number(text)
    if number is not None and (per := [p for p in PER_SECOND.values() if number >= EPOCH * p]):
        return number // per[-1]
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return math.floor((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
