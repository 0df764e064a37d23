"""What clicks say of examination (PBM, UBM), the items being unknown.

The observed information in the logits of w and e: items meet only through cells, so their block is
diagonal, and what is left for the cells of a group is a Schur complement.
"""

from __future__ import annotations

import numpy as np

from logeval.clicks.estimation.browsing.cells import Cells
from logeval.running.arrays import Bools, Floats, sum_by

CHUNK = 100_000  # rows whose information is in memory at a time


def examination_variances(
    cells: Cells, w: Floats, e: Floats, prior_w: Floats, prior_e: Floats, fixed: Bools
) -> Floats:
    """The variance of the logit of each e, (G * J,).

    The priors are given by their a + b. ``fixed`` cells are taken as known (the PBM's scale), with
    variance 0.
    """
    information_w, information_e = prior_w * w * (1 - w), prior_e * e * (1 - e)
    out = 1.0 / np.maximum(information_e, 1e-12)  # what no row speaks of has its prior alone
    out[fixed] = 0.0
    for g, chunks in cells.by_group(CHUNK):
        mine = slice(g * cells.J, (g + 1) * cells.J)
        schur = np.diag(information_e[mine])
        for rows in chunks:
            schur += _without_items(cells, rows, g, w, e, information_w)
        free = np.flatnonzero(~fixed[mine])
        schur = schur[np.ix_(free, free)]
        ridge = 1e-9 * max(float(np.abs(np.diag(schur)).max(initial=0.0)), 1.0)
        values, vectors = np.linalg.eigh(schur)
        inverse = (vectors / np.maximum(values, ridge)) @ vectors.T
        out[g * cells.J + free] = np.diag(inverse)
    return out


def _without_items(
    cells: Cells, rows: slice, g: int, w: Floats, e: Floats, prior: Floats
) -> Floats:
    """What some items of group g, complete in these rows, say of its cells, (J, J)."""
    item, at = cells.item[rows], cells.cell[rows]
    n, c, J = cells.impressions[rows], cells.clicks[rows], cells.J
    x = np.minimum(w[item] * e[at], 1 - 1e-9)
    slope = (c - n * x) / (1 - x)
    curve = (n - c) * x / (1 - x) ** 2  # minus the second derivative in ln w, ln e
    dw, de = 1 - w[item], 1 - e[at]
    new = np.append(True, item[1:] != item[:-1])
    mine, local, j = item[new], np.cumsum(new) - 1, at - g * J
    items = sum_by(local, curve * dw**2 + slope * w[item] * dw, len(mine))
    items = np.maximum(items + prior[mine], 1e-12)
    cross = np.zeros((len(mine), J))
    cross[local, j] = curve * dw * de
    diagonal = sum_by(j, curve * de**2 + slope * e[at] * de, J)
    return np.diag(diagonal) - (cross / items[:, None]).T @ cross
