"""Columns of text -> whole numbers, or checksums of 128 bits that stand for the texts.

The kernels read Arrow's buffers: text r is data[offsets[r] : offsets[r + 1]], an empty one is
missing. Two of ten million texts have the same checksum with a probability of 10^-25, so what is
equal by it is taken as equal. The mixing is that of wyhash: 64 x 64 bits, both halves of the
product folded.

A column as it is stored -> numbers, texts, times, and which of its values are none.

Numbers may come as text, booleans or floats (1.0), times as text (ISO 8601), timestamps or numbers.
Empty text and null are missing; of numbers so are nan, null, none and na, as programs write them.

A column with a list per row: Arrow's lists, or text.

As text a list is written with blanks between its values (in UBI commas, too), or in brackets, as
JSON and Python write it; ``-`` stands for a value that is missing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logeval.errors import LogevalError, visible
from logeval.log.columns.table_file import DAMAGED, is_list, plain
from logeval.running.arrays import Bytes, Floats, Ints
from logeval.running.kernels import njit_inline, njit_views

A, B, C = (np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
ONE, EIGHT, TEN, ZERO, NINE = (np.uint64(n) for n in (1, 8, 10, ord("0"), 9))
GOOD, MISSING, BAD = range(3)  # what a value is
DIGITS = np.uint64(19)  # of the largest number
LIMIT = np.uint64(1 << 63)


class Sums(NamedTuple):
    """The two halves of the checksum of each row."""

    hi: Ints
    lo: Ints


def buffers(texts: pa.StringArray) -> tuple[Ints, Bytes]:
    """The offsets and the bytes of an array of texts without nulls."""
    _, offsets, data = texts.buffers()
    if offsets is None or not len(texts):
        return np.zeros(1, np.int32), np.zeros(1, np.uint8)
    found = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    size = 0 if data is None else data.size
    return found, np.frombuffer(data, np.uint8) if size else np.zeros(1, np.uint8)


def sums_of_texts(texts: pa.StringArray) -> Sums:
    """The checksum of each text."""
    sums = Sums(np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64))
    _sum_texts(*buffers(texts), *sums)
    return sums


def sums_of_numbers(values: Ints) -> Sums:
    """The checksum of each number."""
    sums = Sums(np.empty(len(values), np.uint64), np.empty(len(values), np.uint64))
    _sum_numbers(values.astype(np.int64, copy=False), *sums)
    return sums


def together(sums: Sums, others: Sums) -> Sums:
    """The checksum of both, one after the other."""
    both = Sums(np.empty_like(sums.hi), np.empty_like(sums.lo))
    _sum_together(*sums, *others, *both)
    return both


def numbers_of(texts: pa.StringArray) -> tuple[Ints, Ints]:
    """The number that each text is, and whether it is one.

    A number is written as programs write it: digits, below 2^63, without a sign or a leading zero,
    so that another text is never the same number.
    """
    values, states = np.empty(len(texts), np.int64), np.empty(len(texts), np.uint8)
    _parse_numbers(*buffers(texts), values, states)
    return values, states


@njit_inline
def mixed(a, b):
    """Both halves of a product of 128 bits, folded."""
    a0, a1, b0, b1 = a & LOW, a >> HALF, b & LOW, b >> HALF
    low, m, n = a0 * b0, a0 * b1, a1 * b0
    middle = (low >> HALF) + (m & LOW) + (n & LOW)
    return (a1 * b1 + (m >> HALF) + (n >> HALF) + (middle >> HALF)) ^ (a * b)


@njit_inline
def word(data, i, end):
    """The next up to eight bytes as a number."""
    found = np.uint64(0)
    if i + EIGHT <= end:
        for k in range(8):
            found |= np.uint64(data[i + np.uint64(k)]) << np.uint64(8 * k)
        return found
    shift = np.uint64(0)
    while i < end:
        found |= np.uint64(data[i]) << shift
        shift += EIGHT
        i += ONE
    return found


@njit_inline
def is_same(data, i, j, length):
    """Whether two texts of one length are the same."""
    k = np.uint64(0)
    while k + EIGHT <= length:
        if word(data, i + k, i + k + EIGHT) != word(data, j + k, j + k + EIGHT):
            return False
        k += EIGHT
    return word(data, i + k, i + length) == word(data, j + k, j + length)


@njit_views
def _sum_texts(offsets, data, hi, lo):
    """Neighbours are often the same, and then share the work."""
    before, length_before = np.uint64(0), -1
    h, g = np.uint64(0), np.uint64(0)
    for r in range(hi.shape[0]):
        i, end = np.uint64(offsets[r]), np.uint64(offsets[r + 1])
        length = np.int64(end - i)
        if length != length_before or not is_same(data, before, i, np.uint64(length)):
            before, length_before = i, length
            h, g = np.uint64(length) * A + B, np.uint64(length) * C + A
            while i < end:
                w = word(data, i, end)
                h, g = mixed(h ^ w, B), mixed(g + w, C)
                i += EIGHT
            h, g = mixed(h ^ A, C), mixed(g ^ B, A)
        hi[r], lo[r] = h, g


@njit_views
def _sum_numbers(values, hi, lo):
    for r in range(hi.shape[0]):
        w = np.uint64(values[r])
        hi[r], lo[r] = mixed(mixed(A ^ w, B) ^ A, C), mixed(mixed(C + w, A) ^ B, A)


@njit_views
def _sum_together(hi, lo, other_hi, other_lo, both_hi, both_lo):
    for r in range(hi.shape[0]):
        both_hi[r] = mixed(mixed(hi[r] + A, C) ^ other_hi[r], B)
        both_lo[r] = mixed(mixed(lo[r] + B, A) ^ other_lo[r], C)


@njit_views
def _parse_numbers(offsets, data, values, states):
    for r in range(values.shape[0]):
        i, end = np.uint64(offsets[r]), np.uint64(offsets[r + 1])
        values[r], states[r] = 0, MISSING
        if i == end:
            continue
        states[r] = BAD
        if end - i > DIGITS or (data[i] == ZERO and end - i > ONE):
            continue
        value = np.uint64(0)
        while i < end:
            digit = np.uint64(data[i]) - ZERO  # below 0 it is very large
            if digit > NINE:
                break
            value = value * TEN + digit
            i += ONE
        if i == end and value < LIMIT:
            values[r], states[r] = np.int64(value), GOOD


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


VALUE = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s,]+)""")
NO_LIST = ("-", "null", "None", "nan", "NaN")


def as_lists(array: pa.Array, between: str = r"\s+") -> pa.ListArray:
    """The lists of a column; those of text hold text, with a pattern ``between`` values.

    A cell that is empty is null.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_list(array.type):
        return _whole_list(plain(array))
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


def _whole_list(array: pa.ListArray) -> pa.ListArray:
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
    return [None if value in NO_LIST else value for value in values]
