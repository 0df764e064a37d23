"""How often replay's verdict is right: python -m benchmarks.replay_verdicts [repetitions] [world]

Known loggers and users, in a narrow world (6 items, lists of 3) and in a wide one (ten queries of
very different traffic, 100 items each, most of them rare) one target each; in the third, `five`
(five queries of 15 items, lists of five by quality and noise, 3,000 to 15,000 SERPs), the true best
ranking, a far one and a near one, estimated together. In each repetition a log is drawn and
the verdict on a target read: does it name one estimator, does its interval hold the truth, is what
it says of the log's ranker (more, less) true; or does it say that the answer depends on the users?
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.replay_coverage import USERS, draw
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.pbm import PBM
from logeval.replay.believed import judged
from logeval.replay.estimate import Estimate, Estimates, add_intervals
from logeval.replay.estimators import parse_estimators
from logeval.replay.logged import cut
from logeval.replay.models import fit_models, with_best_model
from logeval.replay.stages import ReplayEstimate
from logeval.replay.values import Values
from logeval.running import seeds
from tests.replay.worlds import logged_of, target_of

ESTIMATORS = ReplayEstimate.estimators  # the default
NONE = dict.fromkeys(("holds", "error", "right", "covered"), np.nan)  # where nothing was said
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


def five(kind: str, repetition: int) -> tuple[Any, list[Any], list[float]]:
    """A log of five queries; the best ranking, a far and a near one, and their true values."""
    rng = seeds.generator(15, "five", kind, repetition)
    n = (3000, 7000, 15_000)[repetition % 3]
    query = rng.integers(5, size=n)
    lists, clicks = np.empty((n, 5), dtype=int), np.empty((n, 5), dtype=int)
    wanted, worth = np.empty((3, 5, 5), dtype=int), np.empty((3, 5))
    for q in range(5):
        items, w = 100 * q + np.arange(15), np.sort(rng.beta(1.0, 3.0, 15))[::-1]
        users: Any = (
            PBM(items=items, K=5, w=w, e=np.array([1.0, 0.75, 0.55, 0.42, 0.33]))
            if kind == "PBM"
            else DCM(items=items, K=5, w=w, v=np.array([0.65, 0.55, 0.5, 0.5, 0.5]))
        )
        logit, mine = np.log(w / (1 - w)), np.flatnonzero(query == q)
        A = np.argsort(-logit - rng.normal(0, 1.5, (len(mine), 15)), axis=1)[:, :5]
        lists[mine], clicks[mine] = items[A], users.sample(A, rng.random(A.shape))
        near = np.argsort(-logit - rng.normal(0, 0.7, 15))
        for t, order in enumerate((np.arange(15), rng.permutation(15), near)):
            wanted[t, q] = items[order[:5]]
            worth[t, q] = users.click_probs(wanted[t, q][None]).sum()
    logged, one = logged_of(lists, clicks, query=query), np.ones(5)
    place = np.argsort([known.query_id for known in logged.patterns.queries])  # by frequency there
    targets = [
        target_of(logged, A, one, query=place, name=name)
        for name, A in zip(("best", "far", "near"), wanted, strict=True)
    ]
    return logged, targets, (worth @ np.bincount(query, minlength=5) / n).tolist()


def verdicts_on(
    logged: Any, targets: list[Any], seed: int, rounds: int = 200, refits: int = 20
) -> Any:
    """The judged targets."""
    chosen = parse_estimators(ESTIMATORS)
    chosen, predicting = with_best_model(chosen, logged, "per-query", seed)
    models = partial(fit_models, chosen, logged, scope="per-query")
    short, fitted = cut(logged, targets[0].K), models(logged.patterns.count)
    found = []
    for target in targets:
        values = Values(short, target, chosen)
        found.append(Estimate(values, values.predictions(fitted), 0.8))
    add_intervals(found, logged, models, rounds, refits, seed, quiet=True)
    table = pd.concat([each.table() for each in found], ignore_index=True)
    contradictions = [pair for each in found for pair in each.contradictions()]
    return judged(Estimates(table, [], contradictions, {}, predicting))


def drawn(world: str, kind: str, repetition: int) -> tuple[Any, list[Any], list[float]]:
    """A log of a world, its targets, and their true values."""
    if world == "five":
        return five(kind, repetition)
    logged, target, truth = (
        draw(USERS[kind], repetition) if world == "narrow" else wide(kind, repetition)
    )
    return logged, [target], [truth]


def said(one: Any, truth: float) -> dict[str, Any]:
    """What the verdict says of a target, and whether that is so."""
    if one.believed is None:
        return {}
    row, d = one.row, truth - one.row["logged"]
    clear = not row["difference_low"] <= 0 <= row["difference_high"]
    return {
        "by": one.believed,
        "depends": bool(one.rivals),
        "holds": bool(row["low"] <= truth <= row["high"]),
        "error": row["value"] - truth,
        "clear": clear and not one.rivals,
        "right": np.sign(row["difference"]) == np.sign(d),
        "covered": row["covered"],
    }


def rows(repetitions: int = 100, world: str | None = None) -> list[dict[str, Any]]:
    """One row per world, kind of users and target."""
    out = []
    for name in [world] if world else ["narrow", "wide", "five"]:
        for kind in USERS:
            found: dict[str, list[dict[str, Any]]] = {}
            for r in range(repetitions):
                logged, targets, truths = drawn(name, kind, r)
                for one, truth in zip(verdicts_on(logged, targets, r), truths, strict=True):
                    found.setdefault(one.name, []).append(said(one, truth))
            for target, every in found.items():
                told = [s for s in every if s and not s["depends"]]
                clear = [s for s in told if s["clear"]]
                by = [s["by"] for s in told]
                out.append(
                    {
                        "world": name,
                        "users": kind,
                        "target": target,
                        "depends on users": np.mean([s.get("depends", False) for s in every]),
                        "one estimator": len(told) / len(every),
                        "its interval holds": np.mean([s["holds"] for s in told or [NONE]]),
                        "error": np.mean([s["error"] for s in told or [NONE]]),
                        "more or less": len(clear) / len(every),
                        "which is right": np.mean([s["right"] for s in clear or [NONE]]),
                        "covered": np.mean([s["covered"] for s in told or [NONE]]),
                        "by": ", ".join(f"{e} {by.count(e)}" for e in dict.fromkeys(by)),
                    }
                )
    return out


if __name__ == "__main__":
    repetitions, *world = sys.argv[1:3] or ["100"]
    table = pd.DataFrame(rows(int(repetitions), *world))
    print(table.to_string(index=False, float_format="%.3f"))
