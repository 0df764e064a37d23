"""How sure a log of this size is: expected widths of intervals, from its own counts.

With examination e(k) from swaps, an item was examined x(i) = sum of n(i, k) e(k) times, so its
attraction w(i), clicks over x(i), drawn to the mean of the query as if by ``BELIEF`` examinations
more, has the variance w (1 - w) / (x + BELIEF). The best list has the largest w, and is worth the
sum of e(k) w(k) clicks. More SERPs of the same ranker multiply x.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from logeval.clicks.estimation.patterns import Patterns
from logeval.running.arrays import Floats, sum_by
from logeval.running.words import number

BELIEF = 25.0  # examinations; chosen on other logs than those of docs/measured.md
NORMAL = 1.959964


def expected_widths(data: Patterns, examination: Floats) -> pd.DataFrame:
    """Per query: value of the best list, widths of 95% intervals, SERPs that would halve the first.

    ``width_value`` is of that value in clicks per search, ``width_items`` the median of the
    attraction of its items; ``serps_to_halve`` is the number of SERPs in all, with which the first
    would be half as wide.
    """
    e = filled(examination)
    x = data.sum_items(data.shown.count * e[data.shown.position])
    clicks = data.item_clicks
    by_query = [sum_by(data.item_query, each, data.Q) for each in (clicks, x)]
    mean = (by_query[0] / np.maximum(by_query[1], 1e-300))[data.item_query]
    w = np.clip((clicks + BELIEF * mean) / (x + BELIEF), 0.0, 1.0)
    rows = []
    for q in range(data.Q):
        mine = np.arange(data.offsets[q], data.offsets[q + 1])
        K = min(int(data.positions[q]), len(mine))
        top = mine[np.argsort(-w[mine], kind="stable")[:K]]
        weight = np.sort(e[: data.positions[q]])[::-1][:K]
        spread = w[top] * (1 - w[top])
        variance = _variance(1.0, weight**2 * spread, x[top])
        half = np.nan
        if variance > 0.0:
            half = brentq(_more_than, 1.0, 1e9, (weight**2 * spread, x[top], variance / 4))
        rows.append(
            {
                "value": float(weight @ w[top]),
                "width_value": 2 * NORMAL * np.sqrt(variance),
                "width_items": float(np.median(2 * NORMAL * np.sqrt(spread / (x[top] + BELIEF)))),
                "serps_to_halve": np.ceil(half * data.serps[q]),
            }
        )
    return pd.DataFrame(rows)


def _variance(more: float, spread: Floats, x: Floats) -> float:
    """Of the value of a list, with so many times the SERPs."""
    return float((spread / (more * x + BELIEF)).sum())


def _more_than(more: float, spread: Floats, x: Floats, wanted: float) -> float:
    return _variance(more, spread, x) - wanted


def filled(examination: Floats) -> Floats:
    """Examination by rank, relative to the largest; a rank without a value has that above it."""
    known = pd.Series(examination).ffill().fillna(1.0).to_numpy(dtype=np.float64)
    return np.asarray(known / known.max())


def size_words(table: pd.DataFrame) -> list[str]:
    """How sure a fit would be, and what would halve its intervals."""
    sure = table[table["width_value"] > 0.0]
    if sure.empty:
        return []
    middle = sure.iloc[(sure["width_value"] / sure["value"]).argsort().iloc[len(sure) // 2]]
    return [
        f"Expect a 95% interval about {number(middle['width_value'])} wide for the best list's "
        f"{number(middle['value'])} clicks per search (query {middle['query']}, in relative width "
        "the median), "
        f"and {number(middle['width_items'])} wide for the attraction of its items; "
        f"{middle['serps_to_halve']:,.0f} SERPs of it, in place of {middle['serps']:,}, would "
        "halve the first"
    ]
