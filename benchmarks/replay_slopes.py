"""Does the slope of `replay validate` hold 1?: python -m benchmarks.replay_slopes [logs] [serps]

Four queries of five items, lists of three, a logger that prefers some; five parts, each predicted
from the others. The slope of an estimator that is right of these users is 1, but for its own noise,
which makes it smaller (List); of one that is wrong it is not.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.pbm import PBM
from logeval.clicks.quality.value import regression
from logeval.replay.estimators import parse_estimators
from logeval.replay.logged import cut
from logeval.replay.models import fit_models
from logeval.replay.validate import Errors
from logeval.running import seeds
from tests.replay.worlds import all_lists, logged_of, plackett_luce

L, K, QUERIES, PARTS = 5, 3, 4, 5
ESTIMATORS = (
    "RCTR", "IP", "PBM", "Item", "List", "DM", "DR", "DM(dcm)", "DR(dcm)", "Cascade-DR(dcm)",
    "CIPS(dcm)",
)  # fmt: skip


def slopes(kind: str, log: int, serps: int) -> dict[str, tuple[float, float, float]]:
    """The slope and its interval of every estimator, of one log with so many SERPs per query."""
    rng, lists = seeds.generator(16, "slopes", kind, log), all_lists(L, K)
    p = plackett_luce(lists, np.exp(-0.4 * np.arange(L)))
    shown, clicked = [], []
    for q in range(QUERIES):
        w = seeds.generator(17, "attraction", q).beta(1.5, 3.0, L)  # the same in every log
        users: Any = (
            PBM(items=np.arange(L), K=K, w=w, e=np.array([1.0, 0.6, 0.35]))
            if kind == "PBM"
            else DCM(items=np.arange(L), K=K, w=w, v=np.array([0.7, 0.6, 0.5]))
        )
        A = lists[rng.choice(len(lists), serps, p=p)]
        shown.append(A + 10 * q)
        clicked.append(users.sample(A, rng.random(A.shape)))
    query, part = np.repeat(np.arange(QUERIES), serps), rng.integers(0, PARTS, QUERIES * serps)
    whole = logged_of(np.concatenate(shown), np.concatenate(clicked), query=query, part=part)
    chosen, short = parse_estimators(ESTIMATORS), cut(whole, K)
    errors = Errors(chosen, [np.inf], K, PARTS, QUERIES)
    for i in range(PARTS):
        rest = whole.patterns.count * (whole.part != i)
        models = fit_models(chosen, whole, rest, "per-query")
        errors.leave_out(i, i, short, short.part != i, models, True)
    return {str(e): regression(errors.lists[j]) for j, e in enumerate(chosen)}


def rows(logs: int = 60, serps: int = 4000) -> list[dict[str, Any]]:
    """One row per kind of users and estimator."""
    out = []
    for kind in ("PBM", "DCM"):
        every = [slopes(kind, log, serps) for log in range(logs)]
        for name in ESTIMATORS[1:]:
            slope, low, high = np.array([found[name] for found in every]).T
            out.append(
                {
                    "users": kind,
                    "estimator": name,
                    "slope": slope.mean(),
                    "half its interval": ((high - low) / 2).mean(),
                    "holds 1": ((low <= 1.0) & (high >= 1.0)).mean(),
                }
            )
    return out


if __name__ == "__main__":
    import pandas as pd

    table = pd.DataFrame(rows(*(int(x) for x in sys.argv[1:])))
    print(table.to_string(index=False, float_format="%.3f"))
