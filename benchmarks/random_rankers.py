"""Lists in random order as the truth of estimators: intervals that hold, rankers in order.

Logs of 8,000 sessions of 4 queries, users of a DCM or a PBM; the ranker shows 30% of its lists in
random order without saying so, and 20% more are said to be. ``replay validate --randomised`` makes
four rankers of these, and estimates them from the others at K = 3. ``lists`` are those judged over
all logs, ``within`` the share whose clicks are in the 95% interval, ``order`` the share of
``pairs`` of rankers that are in the right order. Standard errors are over logs.

    python benchmarks/run.py random_rankers
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from logeval.log.ingest import ingest
from logeval.replay.estimators import parse_estimators
from logeval.replay.logged import read_logged
from logeval.replay.validation import against_random
from logeval.synthetic.generate import generate

LOGS = 15
ESTIMATORS = ["Prefix", "Item", "PBM", "DR(dcm)", "DR(pbm)", "DM(dcm)", "DM(pbm)", "RCTR"]


def rows(seed: int = 2, logs: int = LOGS) -> Iterator[dict[str, Any]]:
    """A row per kind of users and estimator."""
    for users in ("dcm", "pbm"):
        table = pd.concat([_one(users, 1000 * seed + log) for log in range(logs)])
        table["held"] = table["within"] * table["lists"]
        table["right"] = table["order"] * table["pairs"]
        for name, mine in table.groupby("estimator", sort=False):
            n, pairs = mine["lists"].sum(), mine["pairs"].sum()
            spread = (mine["held"].fillna(0) - mine["held"].sum() / max(n, 1) * mine["lists"]).std()
            yield {
                "users": users.upper(),
                "estimator": name,
                "lists": int(n),
                "within": mine["held"].sum() / n if n else np.nan,
                "se": float(spread * np.sqrt(len(mine)) / n) if n else np.nan,
                "pairs": int(pairs),
                "order": mine["right"].sum() / pairs if pairs else np.nan,
            }


def _one(users: str, seed: int) -> pd.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "log.csv"
        generate(raw, format="table", sessions=8_000, queries=4, model=users, explore=0.3,
                 randomised=0.2, seed=seed, quiet=True)  # fmt: skip
        log = ingest(raw, out=Path(folder) / "log", quiet=True)
        whole = read_logged(log, part="CASE WHEN random THEN 0 ELSE -1 END")
        random = whole.patterns.take(whole.part >= 0)
        chosen = parse_estimators(ESTIMATORS)
        return pd.DataFrame(against_random(log, random, 3, chosen, "per-query", 0.0, seed, True))
