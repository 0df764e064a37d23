"""Gradients of the chain likelihood, against differences."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.chain_inference import tally
from logeval.clicks.estimation.chain_information import gradient_rows
from logeval.clicks.estimation.patterns import Patterns
from tests.clicks.examples import all_patterns


def test_gradients_agree_with_differences_of_the_likelihood():
    rng = np.random.default_rng(2)
    K = 4
    patterns = all_patterns(K) > 0
    P = len(patterns)
    w, stay = rng.uniform(0.1, 0.9, (P, K)), rng.uniform(0.1, 0.9, (P, K))
    skip, length = np.full(P, 0.8), np.full(P, K)
    last = np.where(patterns, np.arange(K), -1).max(axis=1)

    def likelihood(w, stay, skip):
        out = np.empty(P)
        for p in range(P):
            one = Patterns(
                ["q"], np.zeros(1, int), np.arange(K)[None], patterns[p : p + 1], np.array([K]),  # type: ignore[list-item]
                np.ones(1), np.arange(K), np.array([0, K]),
            )  # fmt: skip
            t = tally(one, np.zeros(1, int), np.ones(1, bool), w[p], stay[p], np.ones((1, K)),
                      skip[p : p + 1])  # fmt: skip
            out[p] = t.log_likelihood[0]
        return out

    dw, dstay, dskip = np.empty((P, K)), np.empty((P, K)), np.empty(P)
    gradient_rows(w, stay, skip, patterns, length, last, dw, dstay, dskip)
    h = 1e-6
    assert dskip == pytest.approx(
        (likelihood(w, stay, skip + h) - likelihood(w, stay, skip - h)) / (2 * h), abs=1e-6
    )
    for k in range(K):
        step = h * (np.arange(K) == k)
        up, down = likelihood(w + step, stay, skip), likelihood(w - step, stay, skip)
        assert dw[:, k] == pytest.approx((up - down) / (2 * h), abs=1e-6)
        up, down = likelihood(w, stay + step, skip), likelihood(w, stay - step, skip)
        assert dstay[:, k] == pytest.approx((up - down) / (2 * h), abs=1e-6)
