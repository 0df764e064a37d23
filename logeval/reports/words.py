"""Numbers in sentences: digits by size, intervals, p-values, lists of names."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(x: float, sign: str = "") -> str:
    """A value with the digits that matter: about three."""
    if not math.isfinite(x):
        return "?" if x != x else ("-" if x < 0 else "") + "infinite"
    size = abs(x)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 or size == 0 else 3
    return f"{x:{sign},.{digits}f}"


def interval(low: float, high: float) -> str:
    """The two ends, with the digits of the larger."""
    size = max(abs(low), abs(high))
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 3
    return f"{low:,.{digits}f} to {high:,.{digits}f}"


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
