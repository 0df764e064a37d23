"""How often the logger showed each cell: its propensity, from the log itself or as logged.

The frequency of a cell among the n SERPs of its query is N / n; smoothing adds s SERPs to each of
the D cells of a query and position, (N + s) / (n + s D). With cross-fitting the SERPs of one
part of the sessions get the frequencies of the other parts, so that a SERP has no part in its
own propensity.
"""

from __future__ import annotations

import numpy as np

from logeval.errors import LogevalError
from logeval.replay.cells import Cells
from logeval.running.arrays import Bools, Floats


def propensities(cells: Cells, N: Floats, n: Floats, smoothing: float = 0.0) -> Floats:
    """p of each cell (c, B), from N (c, B) SERPs in it and n (Q, B) in its query; 0: never."""
    if cells.logged_p is not None:
        return np.repeat(cells.logged_p[:, None], N.shape[1], axis=1)
    serps = n[cells.query]
    if smoothing:
        seen = N > 0
        D = cells.sums(seen.astype(np.float64))[cells.query, cells.position]
        return np.where(seen, (N + smoothing) / (serps + smoothing * D), 0.0)
    return np.divide(N, serps, out=np.zeros(N.shape), where=serps > 0)


def check_logged(propensity: Floats, shown: Bools, where: str) -> Floats:
    """Logged propensities, known and between 0 and 1 wherever a result is shown."""
    if np.isnan(propensity[shown]).any():
        raise LogevalError(
            f"{where}: some results have no logged propensity; ingest a log with the column "
            "`propensities`, or use propensities=estimated"
        )
    return propensity
