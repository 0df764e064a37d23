"""How often replay's verdict is right: python -m benchmarks.replay_verdicts [repetitions]

Known loggers and users, in a narrow world (6 items, lists of 3) and in a wide one (ten queries of
very different traffic, 100 items each, most of them rare). In each repetition a log is drawn and
the verdict on a target read: does it name one estimator, does its interval hold the truth, is what
it says of the log's ranker (more, less) true; or does it say that the answer depends on the users?
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.replay_coverage import USERS, draw
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.pbm import PBM
from logeval.replay.estimates import Estimates
from logeval.replay.estimators.registry import parse_estimators
from logeval.replay.fitting import fit_models
from logeval.replay.logged import cut
from logeval.replay.values.estimate import Estimate, add_intervals
from logeval.replay.values.values import Values
from logeval.reports.answers.estimates import judged
from logeval.running import seeds
from tests.replay.worlds import logged_of, target_of

ESTIMATORS = ("IP", "PBM", "Prefix", "DR")  # the default
ITEMS, K, QUERIES, SERPS = 100, 3, 10, 20_000
EXAMINATION = np.array([1.0, 0.6, 0.4])
TERMINATION = np.array([0.7, 0.5, 0.4])


def wide(kind: str, repetition: int) -> tuple[Any, Any, float]:
    """A log of ten queries, a target that swaps items near the top, and its true value."""
    rng = seeds.generator(12, "verdicts", kind, repetition)
    share = 1.0 / np.arange(1, QUERIES + 1) ** 1.2
    query = rng.choice(QUERIES, SERPS, p=share / share.sum())
    lists, clicks = np.empty((SERPS, K), dtype=int), np.empty((SERPS, K), dtype=int)
    wanted, worth = [], np.zeros(QUERIES)
    for q in range(QUERIES):
        world = seeds.generator(13, "world", q)  # the same in every repetition
        w = np.clip(0.5 * np.exp(-0.1 * np.arange(ITEMS)) * world.lognormal(0, 0.5, ITEMS), 0, 0.9)
        items = 1000 * q + np.arange(ITEMS)
        users: Any = (
            PBM(items=items, K=K, w=w, e=EXAMINATION)
            if kind == "PBM"
            else DCM(items=items, K=K, w=w, v=TERMINATION)
        )
        mine = np.flatnonzero(query == q)
        score = -0.8 * np.arange(ITEMS) + rng.gumbel(size=(len(mine), ITEMS))
        A = np.argsort(-score, axis=1)[:, :K]
        lists[mine] = items[A]
        clicks[mine] = users.sample(A, rng.random(A.shape))
        best = np.array([[1, 0, 2]]) if q % 2 else np.array([[2, 0, 1]])
        wanted.append(items[best[0]])
        worth[q] = users.click_probs(items[best[0]]).sum()
    logged = logged_of(lists, clicks, query=query)
    target = target_of(logged, np.array(wanted), np.ones(QUERIES), query=np.arange(QUERIES))
    serps = np.bincount(query, minlength=QUERIES)
    return logged, target, float(worth @ serps / serps.sum())


def verdict_on(logged: Any, target: Any, seed: int, rounds: int, refits: int) -> Any:
    """The judged target."""
    chosen = parse_estimators(ESTIMATORS)
    models = partial(fit_models, chosen, logged, scope="per-query")
    values = Values(cut(logged, target.K), target, chosen)
    found = Estimate(values, values.predictions(models(logged.patterns.count)), 0.8)
    add_intervals([found], logged, models, rounds, refits, seed, quiet=True)
    return judged(Estimates(found.table(), [], found.contradictions()))[0]


def rows(repetitions: int = 100, rounds: int = 200, refits: int = 20) -> list[dict[str, Any]]:
    """One row per world and kind of users."""
    out = []
    for world in ("narrow", "wide"):
        for kind in USERS:
            said: list[dict[str, Any]] = []
            for r in range(repetitions):
                logged, target, truth = draw(USERS[kind], r) if world == "narrow" else wide(kind, r)
                one = verdict_on(logged, target, r, rounds, refits)
                if one.believed is None:
                    said.append({"silent": 1})
                    continue
                row, d = one.row, truth - one.row["logged"]
                clear = not row["difference_low"] <= 0 <= row["difference_high"]
                said.append(
                    {
                        "by": one.believed,
                        "depends": bool(one.rivals),
                        "holds": bool(row["low"] <= truth <= row["high"]),
                        "clear": clear and not one.rivals,
                        "right": np.sign(row["difference"]) == np.sign(d),
                        "covered": row["covered"],
                    }
                )
            told = [s for s in said if "by" in s and not s["depends"]]
            clear = [s for s in told if s["clear"]]
            by = [s["by"] for s in told]
            out.append(
                {
                    "world": world,
                    "users": kind,
                    "depends on users": np.mean([s.get("depends", False) for s in said]),
                    "one estimator": len(told) / len(said),
                    "its interval holds": np.mean([s["holds"] for s in told]) if told else np.nan,
                    "more or less": len(clear) / len(said),
                    "which is right": np.mean([s["right"] for s in clear]) if clear else np.nan,
                    "covered": np.mean([s["covered"] for s in told]) if told else np.nan,
                    "by": ", ".join(f"{e} {by.count(e)}" for e in dict.fromkeys(by)),
                }
            )
    return out


if __name__ == "__main__":
    import pandas as pd

    found = rows(*(int(x) for x in sys.argv[1:2]))
    print(pd.DataFrame(found).to_string(index=False, float_format="%.3f"))
