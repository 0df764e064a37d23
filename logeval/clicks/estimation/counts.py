"""Counts that several models share."""

from __future__ import annotations

import numpy as np

from logeval.arrays import Floats, sum_by
from logeval.clicks.estimation.patterns import Patterns


def up_to_last_click(data: Patterns) -> tuple[Floats, Floats]:
    """Clicks and impressions of each item down to the last click; without one, all of them."""
    shown = data.shown
    last = np.where(data.last_click < 0, data.K, data.last_click)
    above = shown.position <= last[shown.pattern]
    return data.sum_items(shown.clicks), data.sum_items(shown.count * above)


def last_clicks(data: Patterns) -> tuple[Floats, Floats]:
    """Last clicks, and clicks, of each item."""
    shown = data.shown
    last = shown.position == data.last_click[shown.pattern]
    return data.sum_items(shown.count * last), data.sum_items(shown.clicks)


def over_expected_clicks(data: Patterns) -> tuple[Floats, Floats]:
    """Clicks of each item, and impressions weighted by the CTR of the rank over the best rank's.

    Their ratio is "clicks over expected clicks" on the scale of a PBM whose largest
    examination is one (Zhang and Jones, 2007).
    """
    shown = data.shown
    impressions = sum_by(shown.position, shown.count, data.K)
    ctr = sum_by(shown.position, shown.clicks, data.K) / np.maximum(impressions, 1.0)
    relative = ctr / max(float(ctr.max(initial=0.0)), 1e-12)
    return data.sum_items(shown.clicks), data.sum_items(shown.count * relative[shown.position])
