"""Bias and coverage of replay estimates: python -m benchmarks.replay_coverage [repetitions]

python -m benchmarks.replay_coverage 100 20     DM and DR, which fit their model again in 20 rounds

Worlds with a known logger and known users, sessions of one to three SERPs that tend to show one
list. In each repetition a log is drawn, and the 95% interval either holds the true value of the
target or does not. The estimator whose assumption the users break is there to be seen failing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.pbm import PBM
from logeval.replay.estimators import parse_estimators
from logeval.running import seeds
from tests.replay.worlds import (
    all_lists,
    logged_of,
    plackett_luce,
    point_and_interval,
    target_of,
)

L, K, SESSIONS = 6, 3, 4000
W = np.array([0.5, 0.4, 0.3, 0.2, 0.15, 0.1])
USERS = {
    "PBM": PBM(items=np.arange(L), K=K, w=W, e=np.array([1.0, 0.6, 0.4])),
    "DCM": DCM(items=np.arange(L), K=K, w=W, v=np.array([0.7, 0.5, 0.4])),
}
ESTIMATORS = (
    "List", "List(normalised)", "Prefix", "Prefix(normalised)", "IP", "PBM", "INTERPOL(window=1)",
    "Item", "RCTR", "DR", "DR(dcm)", "Cascade-DR(dcm)",
)  # fmt: skip


MODELLED = ("DM", "DM(dcm)", "DR", "DR(dcm)", "Cascade-DR(dcm)")


def draw(users: Any, repetition: int) -> tuple[Any, Any, float]:
    """A log, the target, and its true value."""
    rng = seeds.generator(11, "coverage", users.name, repetition)
    lists = all_lists(L, K)
    logger = plackett_luce(lists, np.exp(-0.3 * np.arange(L)))
    wanted = plackett_luce(lists, np.exp(0.15 * np.arange(L)))
    session = np.repeat(np.arange(SESSIONS), rng.integers(1, 4, SESSIONS))
    list_of_session = rng.choice(len(lists), SESSIONS, p=logger)[session]
    again = rng.random(len(session)) < 0.5
    shown = np.where(again, rng.choice(len(lists), len(session), p=logger), list_of_session)
    A = lists[shown]
    clicks = users.sample(A, rng.random(A.shape))
    logged = logged_of(A, clicks, session)
    truth = float(wanted @ users.click_probs(lists).sum(axis=1))
    return logged, target_of(logged, lists, wanted), truth


def rows(repetitions: int = 300, refits: int = 0, rounds: int = 200) -> list[dict[str, Any]]:
    """One row per kind of users and estimator."""
    out = []
    chosen = parse_estimators(MODELLED if refits else ESTIMATORS)
    if refits:
        rounds = 2  # the intervals come from the refits
    for name, users in USERS.items():
        errors = {e: np.empty(repetitions) for e in chosen}
        halves = {e: np.empty(repetitions) for e in chosen}
        for r in range(repetitions):
            logged, target, truth = draw(users, r)
            found = point_and_interval(logged, target, chosen, rounds, r, refits)
            for e, (value, half) in found.items():
                errors[e][r], halves[e][r] = value - truth, half
        for e in chosen:
            out.append(
                {
                    "users": name,
                    "estimator": str(e),
                    "true value": truth,
                    "bias": errors[e].mean(),
                    "its s.e.": errors[e].std(ddof=1) / np.sqrt(repetitions),
                    "s.d.": errors[e].std(ddof=1),
                    "mean s.e.": halves[e].mean() / 1.96,
                    "coverage": (np.abs(errors[e]) <= halves[e]).mean(),
                }
            )
    return out


if __name__ == "__main__":
    import pandas as pd

    found = rows(*(int(x) for x in sys.argv[1:3]))
    print(pd.DataFrame(found).to_string(index=False, float_format="%.4f"))
