"""Features counted by the kernel, and by hand; their derivatives, and by enumeration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from logeval.clicks.quality.deviations import BINS, COUNT, EDGES, MOST_CLICKS, TOP_ITEMS, Layout
from logeval.clicks.quality.predictive import Batch, observed_features, replicates
from tests.clicks.examples import all_patterns, random_model

NAMES = ("shown", "rank", "first", "last", "distance", "after", "item_shown", "item")
NAMES = (*NAMES, "bin_n", "bin_q", "bin_hit")


def slow_features(c, q, top, layout):
    """The features of one SERP, written down from their definitions."""
    out = np.zeros(layout.size)
    at = dict(zip(NAMES, layout.at.tolist()[:-1], strict=True))
    clicked = [k for k in range(len(c)) if c[k]]
    out[0], out[1], out[2] = 1, bool(clicked), max(len(clicked) - 1, 0)
    out[COUNT + min(len(clicked), MOST_CLICKS)] = 1
    for k in range(len(c)):
        out[at["shown"] + k] += 1
        out[at["rank"] + k] += c[k]
        b = int(np.searchsorted(EDGES, q[k], side="right"))
        out[at["bin_n"] + b] += 1
        out[at["bin_q"] + b] += q[k]
        out[at["bin_hit"] + b] += c[k]
        if top[k] >= 0:
            out[at["item_shown"] + top[k]] += 1
            out[at["item"] + top[k]] += c[k]
    if clicked:
        out[at["first"] + clicked[0]] += 1
        out[at["last"] + clicked[-1]] += 1
    for r, k in pairwise(clicked):
        out[at["distance"] + k - r] += 1
    for r in clicked:
        for k in clicked:
            if r < k < layout.R:
                out[at["after"] + r * layout.R + k] += 1
    return out


@pytest.mark.parametrize("K", [1, 5, 12])
def test_the_kernel_counts_what_the_definitions_say(K):
    rng = np.random.default_rng(K)
    layout = Layout(K + 1)  # lists may be shorter than the longest
    model = random_model("UBM", rng, L=K + 3, K=K + 1)
    A = np.array([rng.permutation(K + 3)[:K] for _ in range(40)])
    clicks = rng.random(A.shape) < 0.5
    count = rng.integers(1, 4, 40).astype(float)
    top = np.where(A < TOP_ITEMS, A, -1)
    found = observed_features(model, [Batch(A, clicks, count, top)], layout)
    q = model.conditional_click_probs(A, clicks)
    each = [slow_features(c, p, t, layout) for c, p, t in zip(clicks, q, top, strict=True)]
    assert found == pytest.approx(count @ np.array(each))


def test_components_are_shares_of_what_they_say():
    parts = Layout(4).components
    by_check = {check: parts.check.count(check) for check in dict.fromkeys(parts.check)}
    assert by_check == {
        "clicks-per-serp": MOST_CLICKS + 1,
        "ctr-by-rank": 4,
        "first-click": 4,
        "last-click": 4,
        "distance": 3,
        "after-click": 6,
        "calibration": BINS,
    }


def expected_features(model, A, top, layout, at):
    """E[feature] by all click patterns, whose probabilities are those of ``at``."""
    c = all_patterns(len(A)).astype(bool)
    lists = np.tile(A, (len(c), 1))
    p = np.exp(at.log_likelihood(lists, c))
    q = model.conditional_click_probs(lists, c)
    return p @ np.array([slow_features(x, y, top, layout) for x, y in zip(c, q, strict=True)])


@pytest.mark.parametrize("name", ["DBN", "PBM"])
def test_replicates_have_the_exact_means_of_their_users(name):
    rng = np.random.default_rng(7)
    model, *users = (random_model(name, rng, L=4, K=3, low=0.3, high=0.7) for _ in range(3))
    A, top, layout = np.array([2, 0, 3]), np.array([2, 0, 3]), Layout(3)
    serps = 600
    batch = Batch(A[None], np.zeros((1, 3), dtype=bool), np.array([float(serps)]), top[None])
    drawn = replicates(model, users, [batch], layout, 100, np.random.default_rng(1)) / serps
    error = np.sqrt(0.25 * 4 / (50 * serps))  # features of a SERP vary by at most about 1
    for at, half in zip(users, np.split(drawn, 2), strict=True):
        exact = expected_features(model, A, top, layout, at)  # the model's bins, their clicks
        assert np.abs(half.mean(axis=0) - exact).max() < 5 * error
