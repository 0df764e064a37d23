"""Where the variance of a mean comes from: nested random effects."""

from __future__ import annotations

import numpy as np

from logeval.errors import LogevalError
from logeval.running.arrays import Floats


def components_of(x: Floats, levels: tuple[str, ...]) -> dict[str, float]:
    """Variance components of x, one axis per level, each nested in the one before it.

    For queries x draws x runs, x_qdr = mean + a_q + b_qd + e_qdr, with the mean squares MS of
    each level the unbiased estimates of the analysis of variance are (Searle, Casella and
    McCulloch 1992, chapter 3)

        run: MS_r    draw: (MS_d - MS_r) / N    query: (MS_q - MS_d) / (D N)

    cut off at 0, and Var(mean) = query / Q + draw / (Q D) + run / (Q D N). A level with one unit
    has no estimate: it counts as 0, and what varies there is in the level above it (draws with
    one run each contain the runs) or, at the top, left out (one query).
    """
    if x.ndim != len(levels):
        raise LogevalError(f"samples with {x.ndim} axes do not have the levels {levels}")
    if not np.isfinite(x).all():
        raise LogevalError("variance components need the same number of runs everywhere")
    components = {}
    inner = 0.0  # mean square of the next level below that has one
    for axis in reversed(range(x.ndim)):
        below = int(np.prod(x.shape[axis + 1 :]))
        means = x.mean(axis=tuple(range(axis + 1, x.ndim)))
        if x.shape[axis] < 2:
            components[levels[axis]] = 0.0
            continue
        square = below * float(means.var(axis=-1, ddof=1).mean())
        components[levels[axis]] = max(0.0, (square - inner) / below)
        inner = square
    return {level: components[level] for level in levels}
