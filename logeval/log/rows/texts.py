"""Columns of text -> whole numbers, or checksums of 128 bits that stand for the texts.

The kernels read Arrow's buffers: text r is data[offsets[r] : offsets[r + 1]], an empty one is
missing. Two of ten million texts have the same checksum with a probability of 10^-25, so what is
equal by it is taken as equal. The mixing is that of wyhash: 64 x 64 bits, both halves of the
product folded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from logeval.running.arrays import Bytes, Ints
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
