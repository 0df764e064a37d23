"""Counts that several models share."""

from __future__ import annotations

import numpy as np

from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.running.arrays import Floats, Ints, sum_by


def up_to_last_click(data: FoldedClicks) -> tuple[Floats, Floats]:
    """Clicks and impressions of each item down to the last click; without one, all of them."""

    def count(block: Patterns) -> tuple[Floats]:
        shown = block.shown
        last = np.where(block.last_click < 0, block.K, block.last_click)
        return (block.sum_items(shown.count * (shown.position <= last[shown.pattern])),)

    return data.item_clicks, data.total(count)[0]


def up_to_first_click(data: FoldedClicks) -> tuple[Floats, Floats]:
    """First clicks, and impressions down to the first click, of each item."""

    def count(block: Patterns) -> tuple[Floats, Floats]:
        shown = block.shown
        first = block.first_click[shown.pattern]
        clicks = block.sum_items(shown.count * (shown.position == first))
        return clicks, block.sum_items(shown.count * (shown.position <= first))

    clicks, examined = data.total(count)
    return clicks, examined


def last_clicks(data: FoldedClicks) -> tuple[Floats, Floats]:
    """Last clicks, and clicks, of each item."""

    def count(block: Patterns) -> tuple[Floats]:
        shown = block.shown
        last = shown.position == block.last_click[shown.pattern]
        return (block.sum_items(shown.count * last),)

    return data.total(count)[0], data.item_clicks


def by_position(data: FoldedClicks, G: int, group: Ints) -> tuple[Floats, Floats]:
    """Clicks and impressions of each group and position, (G, K)."""

    def count(block: Patterns) -> tuple[Floats, Floats]:
        shown = block.shown
        cell = group[shown.query] * data.K + shown.position
        clicks, impressions = (sum_by(cell, x, G * data.K) for x in (shown.clicks, shown.count))
        return clicks.reshape(G, -1), impressions.reshape(G, -1)

    clicks, impressions = data.total(count)
    return clicks, impressions


def over_expected_clicks(data: FoldedClicks) -> tuple[Floats, Floats]:
    """Clicks of each item, and impressions weighted by the CTR of the rank over the best rank's.

    Their ratio is "clicks over expected clicks" on the scale of a PBM whose largest
    examination is one (Zhang and Jones, 2007).
    """
    clicks, impressions = by_position(data, 1, np.zeros(data.Q, dtype=np.int64))
    ctr = clicks[0] / np.maximum(impressions[0], 1.0)
    relative = ctr / max(float(ctr.max(initial=0.0)), 1e-12)

    def count(block: Patterns) -> tuple[Floats]:
        shown = block.shown
        return (block.sum_items(shown.count * relative[shown.position]),)

    return data.item_clicks, data.total(count)[0]
