"""Clicks and views of items at positions, and the examination kappa: known, or estimated.

With S_il clicks in N_il views of item i at position l, N~_i = sum_l kappa_l N_il is the number of
views that were looked at, as far as kappa is right (Lagree, Vernade, Cappe 2016, section 3).

``kappa=estimated``: the first right singular vector of (S_il + a) / (N_il + a), a = 1/2, scaled to
maximum 1, after every step up to the 100th and then after every ``lag`` steps. That is the "greedy
SVD" of the programs of Gauthier et al. (2021); nothing is proven for it. Unseen cells count as 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from logeval.policies.shared.memory import floats, ints
from logeval.policies.shared.places import sort_descending
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views

A = 0.5  # added to clicks and to views
EVERY_STEP = 100  # until then kappa is estimated after every step
DIGITS = 9  # of an estimate: ties shall not depend on rounding


class Views(NamedTuple):
    """Counts and examination of one replica."""

    S: Ints = ints("L", "K")  # clicks
    N: Ints = ints("L", "K")  # views
    clicks: Floats = floats("L")  # over positions
    views: Floats = floats("L")
    looked: Floats = floats("L")  # N~
    kappa: Floats = floats("K", fill=1.0)
    best: Ints = ints("K")  # positions from the most to the least examined
    M: Floats = floats("L", "K", fill=1.0)  # (S + a) / (N + a)
    gram: Floats = floats("K", "K")  # M'M
    image: Floats = floats("K", shared=True)  # scratch: M'M kappa


@njit_views
def look(i, views):
    """N~ of item i."""
    looked = 0.0
    for k in range(views.kappa.shape[0]):
        looked += views.kappa[k] * views.N[i, k]
    views.looked[i] = looked


@njit_views
def count(item, c, views):
    """Count the views of the item at each position, and the clicks c."""
    for k in range(item.shape[0]):
        i = item[k]
        views.S[i, k] += c[k]
        views.N[i, k] += 1
        views.clicks[i] += c[k]
        views.views[i] += 1.0
        look(i, views)


@njit_views
def is_due(t, lag):
    """Whether kappa is estimated after step t."""
    return t <= EVERY_STEP or t % lag == 0


@njit_views
def note(item, views):
    """The cells of M that a step has changed, and M'M."""
    K = item.shape[0]
    for k in range(K):
        i = item[k]
        old, new = views.M[i, k], (views.S[i, k] + A) / (views.N[i, k] + A)
        for j in range(K):
            if j != k:
                views.gram[k, j] += (new - old) * views.M[i, j]
                views.gram[j, k] = views.gram[k, j]
        views.gram[k, k] += new * new - old * old
        views.M[i, k] = new


@njit_views
def estimate(views):
    """kappa from M'M by power iteration, which starts at the last estimate."""
    K = views.kappa.shape[0]
    x, y = views.kappa, views.image
    for _ in range(10_000):
        largest, change = 0.0, 0.0
        for k in range(K):
            y[k] = 0.0
            for j in range(K):
                y[k] += views.gram[k, j] * x[j]
            largest = max(largest, y[k])
        for k in range(K):
            new = y[k] / largest
            change = max(change, abs(new - x[k]))
            x[k] = new
        if change < 1e-14:
            break
    scale = 10.0**DIGITS
    for k in range(K):
        x[k] = max(math.floor(x[k] * scale + 0.5) / scale, 1.0 / scale)
    sort_descending(x, K, views.best)
    for i in range(views.looked.shape[0]):
        look(i, views)
