"""Lists in random order as the truth: how often intervals of models hold there.

Logs of 20,000 sessions of 20 queries, users of a DCM or a PBM, 5% of the SERPs in random order. A
DCM and a PBM are fitted to the rest, for the ten most frequent queries, and predict the clicks on
these: shares of queries, of ranks of queries, and of items within their 95% intervals, and the
order of SERPs, as ``check-models --randomised`` prints them. Means over logs, with standard errors.

    python benchmarks/run.py randomised
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from logeval.clicks.fit import Fit
from logeval.clicks.quality.randomised import against_randomised
from logeval.log.ingest import ingest
from logeval.synthetic.generate import generate

LOGS = 12
SHOWN = ["queries_within", "ranks_within", "items_within", "order"]


def rows(seed: int = 1, logs: int = LOGS) -> Iterator[dict[str, Any]]:
    """A row per kind of users and model."""
    for users in ("dcm", "pbm"):
        parts = [_one(users, 1000 * seed + log) for log in range(logs)]
        table = pd.concat(parts)
        table["off"] = (table["predicted"] / table["clicks"] - 1).abs()
        for model, mine in table.groupby("model"):
            numbers = mine[[*SHOWN, "off"]].agg(["mean", "sem"]).T
            cells = {str(name): f"{m:.3f} ± {se:.3f}" for name, m, se in numbers.itertuples()}
            yield {"users": users.upper(), "model": model, **cells}


def _one(users: str, seed: int) -> pd.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "log.csv"
        generate(raw, format="table", sessions=20_000, queries=20, model=users, randomised=0.05,
                 seed=seed, quiet=True)  # fmt: skip
        log = ingest(raw, out=Path(folder) / "log", quiet=True)
        fit = Fit(log, ["dcm", "pbm"], top_queries=10, holdout="random")
        data, test = fit.patterns()
        assert test is not None
        return against_randomised({name: fit.fit(name, data) for name in fit.models}, test)
