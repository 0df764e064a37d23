"""Whether intervals of attraction are wide where the clicks do not decide it, and hold there.

Four logs of each kind of queries of ``benchmarks/identifiability.py``, 10 queries with 2,000 SERPs
each, and of queries that show one list always; items shown 100 times or more, inside and outside of
the largest part of their query, by scope of the fit.

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


def rows(seed: int = 9, queries: int = 10, logs: int = 4) -> Iterator[dict[str, Any]]:
    """A row per kind of queries, scope and side."""
    for number, kind in enumerate((*KINDS, "one list")):
        found: dict[tuple[str, str], list[np.ndarray]] = {}
        for log in range(logs):
            data, w = world(kind, queries, 2_000, np.random.default_rng([seed, number, log]))
            known = identified(PBM, data, "per-query")
            assert known is not None
            often = data.impressions >= 100
            for scope in ("per-query", "partial"):
                x = fit_one("PBM", data, Options("em", scope=scope)).estimates["w"]
                low = np.maximum(x.low, 1e-6)
                both = np.stack([(low <= w) & (w <= x.high), np.log(x.high / low)])
                for side, inside in (("inside", known.items), ("outside", ~known.items)):
                    found.setdefault((scope, side), []).append(both[:, often & inside])
        for (scope, side), each in found.items():
            held, width = np.concatenate(each, axis=1)
            if len(held):
                by_log = [one[0].mean() for one in each if one.shape[1]]
                yield {
                    "queries": kind,
                    "scope": scope,
                    "items": side,
                    "number": len(held),
                    "holds": held.mean(),
                    "standard error": float(np.std(by_log, ddof=1) / np.sqrt(len(by_log)))
                    if len(by_log) > 1
                    else np.nan,
                    "log(high / low)": float(np.median(width)),
                }
