"""Numbers and names as people read them, in sentences and in tables: terminal, page, papers."""

from __future__ import annotations

import math
from collections.abc import Sequence

ROUNDING = 1e-12  # what is smaller in a table is 0, and a difference of rounding
# what a reward counts, as people say it
UNITS = {
    "satisfaction": "satisfied searches",
    "clicks": "clicks",
    "any-click": "searches with a click",
}


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
    return 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 3 if size >= 0.01 else 4


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


def cell(value: object, spec: str = "") -> str:
    """A value in a table: nothing for what is missing, and four digits, or all before the point.

    >>> [cell(x) for x in (123456.7, 1234.5, 3.14159, 0.0012345, -0.5, 7.0, True, None)]
    ['123,457', '1,234', '3.142', '0.001234', '-0.5', '7', 'yes', '']
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, float) and value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(cell(v) for v in value)
    if spec:
        return format(value, spec)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if abs(value) < ROUNDING:
            return "0"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def with_interval(value: float, low: float, high: float, sign: str = "") -> str:
    """``171.2 [165.1, 177.3]``, all with as many places as the value needs by its size."""
    if value != value:
        return ""
    size = max(abs(value), abs(high - low) if high == high else 0.0)
    places = 0 if size >= 1000 else 1 if size >= 10 or not size else 2 if size >= 1 else 4
    shown = f"{value:{sign},.{places}f}"
    return shown if low != low else f"{shown} [{low:,.{places}f}, {high:,.{places}f}]"


def rounded(value: float) -> str:
    """With places by its size.

    >>> [rounded(x) for x in (123456.7, 1234.5, 12.345, 0.4567)]
    ['123,457', '1,234', '12.3', '0.46']
    """
    if value != value:
        return ""
    size = abs(value)
    return f"{value:,.{0 if size >= 1000 else 1 if size >= 10 else 2}f}"


def p_cell(p: float) -> str:
    """Four places; smaller ones are not told apart."""
    return "" if p != p else "<0.0001" if p < 0.0001 else f"{p:.4f}"


def out_of(shares: Sequence[float]) -> str:
    """Shares, or their range, as people count: ``50 of 1,000``, ``29 to 141 of 1,000``.

    >>> out_of([0.0502]), out_of([0.141, 0.029]), out_of([0.00004]), out_of([0.0])
    ('50 of 1,000', '29 to 141 of 1,000', '40 of 1,000,000', '0 of 1,000')
    """
    low, high = min(shares), max(shares)
    base = 1000 if high >= 0.0005 or high < 5e-7 else 1_000_000
    ends = [f"{round(share * base):,}" for share in (low, high)]
    return f"{' to '.join(dict.fromkeys(ends))} of {base:,}"


def searches(steps: float, never: str = "") -> str:
    """A number of searches; what is said of none at all is ``never``."""
    return never if math.isinf(steps) else f"{math.ceil(steps):,}"
