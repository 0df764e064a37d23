"""The generalized likelihood ratio test of all splits of a history, without trying them all.

After n observations with X clicks, of which x in the first s, the statistic of a split is

    s d(x / s, X / n) + (n - s) d((X - x) / (n - s), X / n),

a sum of two perspectives of a convex function: convex in the point (s, x), and 0 at both ends. Its
maximum over the points of a walk is therefore at a corner of their convex hull, and a walk of n
steps has some 2 log n of those. Two chains keep them, the corners above and those below.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from logeval.policies.shared.bounds import kl
from logeval.policies.shared.memory import ints
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_views

CORNERS = 128  # of a chain: 12 are expected after 100,000 steps; the last would make room


class Walks(NamedTuple):
    """The observations of each item as a walk of points (steps, clicks)."""

    n: Ints = ints("L")  # steps
    X: Ints = ints("L")  # clicks
    size: Ints = ints("L", 2)  # corners above and below; the first point is (0, 0)
    corner: Ints = ints("L", 2, CORNERS, 2)


@njit_views
def add(e, click, walks):
    """One more observation of item e."""
    walks.n[e] += 1
    walks.X[e] += click
    n, X = walks.n[e], walks.X[e]
    for side in range(2):
        sign = 1 - 2 * side  # the chain below is the one above, upside down
        corner, size = walks.corner[e, side], walks.size[e, side]
        while size > 0:
            before_s = corner[size - 2, 0] if size > 1 else 0
            before_x = corner[size - 2, 1] if size > 1 else 0
            s, x = corner[size - 1, 0], corner[size - 1, 1]
            turn = (s - before_s) * (X - before_x) - (x - before_x) * (n - before_s)
            if sign * turn < 0:
                break
            size -= 1  # on or inside the line from the corner before to the new point
        size = min(size, CORNERS - 1)
        corner[size, 0], corner[size, 1] = n, X
        walks.size[e, side] = size + 1


@njit_views
def changed(e, delta, walks):
    """Whether the mean of item e has changed."""
    n, X = walks.n[e], walks.X[e]
    if n < 2:
        return False
    threshold, mean = math.log(3.0 * n * math.sqrt(n) / delta), X / n
    for side in range(2):
        for i in range(walks.size[e, side] - 1):
            s, x = walks.corner[e, side, i, 0], walks.corner[e, side, i, 1]
            first, second = kl(x / s, mean), kl((X - x) / (n - s), mean)
            if s * first + (n - s) * second >= threshold:
                return True
    return False


@njit_views
def forget(walks):
    """All items begin anew."""
    for e in range(walks.n.shape[0]):
        walks.n[e] = walks.X[e] = walks.size[e, 0] = walks.size[e, 1] = 0
