"""Two runs tables beside each other: what became of every policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from logeval.errors import LogevalError
from logeval.evaluation.results import Runs
from logeval.evaluation.running.store import agree
from logeval.evaluation.statistics.comparisons import compare
from logeval.evaluation.statistics.intervals import CONFIDENCE
from logeval.evaluation.statistics.paired import REPLICA
from logeval.storage.tables import read_manifest

KEY = ["simulator", "track", "policy"]


def between(first: Runs, second: Runs) -> pd.DataFrame:
    """One row per simulator, track and policy that both have, at the last step that both have.

    ``first`` and ``second`` are mean regrets on the queries and runs that both have;
    ``difference`` (second - first) has a paired 95% interval and p as ``Runs.pairs``, corrected
    by Bonferroni for the number of rows: they hold for all rows together. Equal runs met the same
    users only if the seeds are equal; else the pairing is by query alone.
    """
    a, b = first.table(), second.table()
    steps = np.intersect1d(a["t"], b["t"])
    if not len(steps):
        raise LogevalError("the two have no step in common; evaluate them with equal checkpoints")
    t = int(steps[-1])
    both = a[a["t"] == t].merge(b[b["t"] == t], on=[*KEY, *REPLICA], suffixes=("_a", "_b"))
    if both.empty:
        raise LogevalError("the two have no simulator, policy, query and run in common")
    parts = list(both.groupby(KEY, sort=True))
    return pd.DataFrame([_row(key, part, t, rows=len(parts)) for key, part in parts])


def _row(key: Any, part: pd.DataFrame, t: int, rows: int) -> dict[str, Any]:
    wide = [
        part.pivot(index="query", columns=["draw", "run"], values=f"regret_{side}") for side in "ab"
    ]
    x = np.stack([w.to_numpy(dtype=np.float64) for w in wide], axis=2)  # (queries, runs, 2)
    x[np.isnan(x).any(axis=2)] = np.nan
    row = {
        **dict(zip(KEY, key, strict=True)),
        "first": float(np.nanmean(x[:, :, 0])),
        "second": float(np.nanmean(x[:, :, 1])),
        "queries": len(x),
        "replicas": len(part),
        "t": t,
    }
    found = compare(x, 1.0 - (1.0 - CONFIDENCE) / rows)
    return row | {
        "difference": found.difference[1, 0],
        "low": found.low[1, 0],
        "high": found.high[1, 0],
        "p": np.minimum(1.0, rows * found.p[1, 0]),
    }


def settings(first: Path | str, second: Path | str) -> list[str]:
    """In which arguments, models and versions two folders of runs differ, one line each."""
    a, b = read_manifest(first), read_manifest(second)
    lines = []
    for name, x, y in (
        ("logeval", a["version"], b["version"]),
        *((key, a["arguments"].get(key), b["arguments"].get(key))
          for key in sorted({*a["arguments"], *b["arguments"]})),
    ):  # fmt: skip
        if not agree(x, y):
            short = len(str(x)) + len(str(y)) < 100
            lines.append(f"{name}: {x} and {y}" if short else f"{name} differ")
    shared = a.get("problems", {}).keys() & b.get("problems", {}).keys()
    other = [name for name in sorted(shared) if a["problems"][name] != b["problems"][name]]
    if other:
        lines.append(f"the models differ in {len(other)} of {len(shared)} ({', '.join(other[:3])})")
    return lines
