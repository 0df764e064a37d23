"""Numbers in sentences: digits by size, intervals, p-values, lists of names, queries."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence


def number(x: float, sign: str = "") -> str:
    """A value with the digits that matter: about three."""
    if not math.isfinite(x):
        return "?" if x != x else ("-" if x < 0 else "") + "infinite"
    size = abs(x)
    if size < 1e-9:
        return "0"
    return f"{x:{sign},.{_digits(size)}f}" if size >= 0.001 else f"{x:{sign}.1e}"


def interval(low: float, high: float) -> str:
    """The two ends, with the digits of the larger."""
    size = max(abs(low), abs(high))
    if 0.0 < size < 0.001:
        return f"{low:.1e} to {high:.1e}"
    digits = _digits(size)
    return f"{low:,.{digits}f} to {high:,.{digits}f}"


def _digits(size: float) -> int:
    return 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 3


def p_value(p: float) -> str:
    """``p = 0.012``, ``p = 0.0003``, or ``p < 0.0001``; nothing where there is no test."""
    if p != p:
        return ""
    if p < 1e-4:
        return "p < 0.0001"
    return f"p = {p:.1g}" if p < 0.001 else f"p = {p:.3f}"


def joined(names: Sequence[str], last: str = "and") -> str:
    """``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def query_names(queries: list[str]) -> dict[str, str]:
    """The queries in numeric order, with their titles: ``query 12``.

    The region is named where one query has several.
    """
    split = {q: (q.partition("@")[0], q.partition("@")[2]) for q in queries}
    numbers = [query for query, _ in split.values()]
    return {
        q: f"query {split[q][0]}"
        + (f", region {split[q][1]}" if numbers.count(split[q][0]) > 1 and split[q][1] else "")
        for q in sorted(queries, key=_order)
    }


def _order(query: str) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", query)
    ]
