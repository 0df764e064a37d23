"""Which estimator is right for which users: python -m benchmarks.replay_worlds [sessions]

The world of ``logeval generate --explore 1``, once with DCM and once with PBM users: lists in
random order, sessions of several SERPs. Its queries 5 and 7 alone are drawn, whose DCM users often
leave after a click (with users who seldom do, DCM and PBM are nearly the same). The targets order
the ten items of the production ranking in other ways, most of them well; their true value is that
of the true click model. The clip of an estimator is the one that is best on the other logs.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from logeval.replay.estimators import parse_estimators
from logeval.replay.logged import Logged, cut
from logeval.replay.models import fit_models
from logeval.replay.targets import lists_target
from logeval.replay.values import Values
from logeval.running import seeds
from logeval.synthetic.sessions import draw_sessions
from logeval.synthetic.world import World, make_world
from tests.replay.worlds import logged_of

USERS = ("DCM", "PBM")
QUERIES = (4, 6)  # numbers in the world, of ids 5 and 7
POSITIONS = (1, 2, 3, 5, 10)
ESTIMATORS = (
    "List", "Prefix", "IP", "PBM", "Item", "RCTR", "DM", "DM(dcm)", "DR", "DR(dcm)", "Cascade-DR",
    "Cascade-DR(dcm)",
)  # fmt: skip
CLIPS = (10.0, 100.0, 1000.0, np.inf)
SESSIONS, TARGETS, LOGS = 40_000, 4, 3


def draw(users: str, sessions: int, seed: int) -> tuple[World, Logged]:
    """A log of the two queries, all of its lists in random order."""
    world = make_world(users, max(QUERIES) + 1, seed=1)
    only = np.isin(np.arange(max(QUERIES) + 1), QUERIES)
    drawn = draw_sessions(
        replace(world, popularity=np.cumsum(only / only.sum())), sessions, sessions, seed, 0, 1.0
    )
    session = np.repeat(np.arange(sessions), np.diff(drawn.first))
    kept = ~drawn.test
    logged = logged_of(
        drawn.lists[kept] + 1, drawn.clicks[kept] > 0, session[kept], drawn.query[kept] + 1
    )
    return world, logged


def rankers(w: Any, targets: int, seed: int) -> Any:
    """Orders of the items (targets, L), drawn with a growing preference for the attractive ones."""
    noise = seeds.generator(seed, "rankers").gumbel(size=(targets, len(w)))
    strength = np.linspace(0.0, 4.0, targets)[:, None]
    return np.argsort(-(strength * np.log(w / (1 - w)) + noise), axis=1)


def errors(users: str, sessions: int, targets: int, seed: int) -> list[dict[str, Any]]:
    """One row per K, target, query, estimator and clip: the error, and the support of them all."""
    world, whole = draw(users, sessions, seed)
    patterns, chosen = whole.patterns, parse_estimators(ESTIMATORS)
    (true,) = world.models().fitted.values()
    models = [true.of(query) for query in patterns.queries]
    orders = [rankers(m.w[:10], targets, seed) for m in models]  # type: ignore[attr-defined]
    fitted = fit_models(chosen, whole, patterns.count, "per-query")
    share = patterns.serps / patterns.serps.sum()
    rows = []
    for K in POSITIONS:
        short = cut(whole, K)
        for t in range(targets):
            lists = [order[t] for order in orders]
            value = [
                m.click_probs_of_rows(A[None, :K]).sum() for m, A in zip(models, lists, strict=True)
            ]
            ids = [m.items[A] for m, A in zip(models, lists, strict=True)]
            target = lists_target(f"ranker {t}", patterns, patterns.queries, ids, K)
            found = Values(short, target, chosen)
            predictions = found.predictions(fitted)
            support = dict.fromkeys(chosen, np.nan)
            for e in chosen:
                if (figures := found.support(e, predictions)) is not None:
                    support[e] = figures.columns(patterns.serps, share, 0.8)["support"][0]
            for clip in CLIPS:
                found.clip = clip
                by_estimator = found.values(short.patterns.count[:, None], predictions)
                for e, values in by_estimator.items():
                    for q in range(patterns.Q):
                        rows.append(
                            {
                                "users": users, "log": seed, "positions": K, "clip": clip,
                                "estimator": str(e), "error": values[q, 0] - value[q],
                                "value": value[q],
                                "support": support[e],
                            }
                        )  # fmt: skip
    return rows


def rows(
    sessions: int = SESSIONS, targets: int = TARGETS, logs: int = LOGS
) -> list[dict[str, Any]]:
    """One row per kind of users, estimator and K: RMSE over logs, targets and queries."""
    import pandas as pd

    found = pd.DataFrame(
        [
            row
            for users in USERS
            for seed in range(1, logs + 1)
            for row in errors(users, sessions, targets, seed)
        ]
    )
    out = []
    by = ["users", "estimator", "positions"]
    for (users, name, K), mine in found.groupby(by, sort=False):
        square = mine["error"] ** 2
        squares = square.groupby([mine["log"], mine["clip"]]).mean().unstack()  # (logs, clips)
        others = squares.sum(axis=0) - squares
        chosen = np.asarray(squares)[np.arange(logs), np.asarray(others).argmin(axis=1)]
        rmse = float(np.sqrt(chosen.mean()))
        out.append(
            {
                "users": users,
                "estimator": name,
                "positions": K,
                "value": mine["value"].mean(),
                "rmse": rmse,
                # that of the mean square over logs, carried over to its root
                "stderr": chosen.std(ddof=1) / np.sqrt(logs) / (2 * rmse),
                "support": mine["support"].mean(),
            }
        )
    return out


if __name__ == "__main__":
    import pandas as pd

    frame = pd.DataFrame(rows(*(int(x) for x in sys.argv[1:])))
    frame.to_csv(sys.stdout, index=False, float_format="%.4f")
    for users, mine in frame.groupby("users", sort=False):
        for column in ("rmse", "support"):
            print(f"\n{column}, {users} users, by K")
            table = mine.pivot(index="estimator", columns="positions", values=column)
            print(table.reindex(ESTIMATORS).to_string(float_format="%.4f"))
