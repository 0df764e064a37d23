"""Whether intervals of attraction are wide where the clicks do not decide it, and hold there.

The queries of ``benchmarks/identifiability.py``, 10 of each kind with 2,000 SERPs, and 10 that show
one list always; items shown 100 times or more, inside and outside of the largest part of their
query, by scope of the fit.

    python benchmarks/run.py identified_intervals
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.identifiability import KINDS, world
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.pbm import PBM
from logeval.clicks.support.identified import identified


def rows(seed: int = 9, queries: int = 10) -> Iterator[dict[str, Any]]:
    """A row per kind of queries, scope and side."""
    for number, kind in enumerate((*KINDS, "one list")):
        data, w = world(kind, queries, 2_000, np.random.default_rng([seed, number]))
        found = identified(PBM, data, "per-query")
        assert found is not None
        often = data.impressions >= 100
        for scope in ("per-query", "partial"):
            x = fit_one("PBM", data, Options("em", scope=scope)).estimates["w"]
            for side, mine in (("inside", often & found.items), ("outside", often & ~found.items)):
                if mine.any():
                    low, high = np.maximum(x.low[mine], 1e-6), x.high[mine]
                    yield {
                        "queries": kind,
                        "scope": scope,
                        "items": side,
                        "number": int(mine.sum()),
                        "holds": float(((low <= w[mine]) & (w[mine] <= high)).mean()),
                        "log(high / low)": float(np.median(np.log(high / low))),
                    }
