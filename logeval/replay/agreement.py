"""Do simulators and the log agree on which policy is best?

The same policies on the same queries and items three times: simulated with click models fitted
to the log, replayed on the log, and by the value of the lists they ended with, estimated from the
log. Simulators can be wrong about users, replay has few SERPs, and estimates cover the last
lists only; where the three agree there is little reason to doubt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from logeval.clicks.models.model import ClickModel
from logeval.clicks.quality.stages import compare_models
from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.log.queries import Query
from logeval.replay.estimates import point_and_interval
from logeval.replay.estimators import Estimator, parse_estimators
from logeval.replay.fitting import fit
from logeval.replay.logged import cut, read_logged
from logeval.replay.reading import lists_target
from logeval.replay.replays import PolicyReplay, curve, streams_of
from logeval.replay.stages import replay_policy
from logeval.running.arrays import Ints
from logeval.storage import tables
from logeval.storage.results import Stored

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from logeval.replay.stages import ReplayCrossCheck
    from logeval.reports.answers.checks import Answer

ESTIMATORS = ("IP", "Prefix")  # beside DR with the best-scoring model
CANDIDATES = ("dcm", "pbm", "ubm", "sdbn", "ccm")  # for the best-scoring model


@dataclass(frozen=True)
class CrossCheck(Stored):
    """One row per method and policy: clicks per SERP with interval, over so many steps."""

    TABLES: ClassVar = {"table": "cross_check"}
    KEPT = ("steps", "notes")

    table: pd.DataFrame  # in the schema ``schemas.CROSS_CHECK``
    steps: int
    notes: list[str] = field(default_factory=list)
    manifest: tables.Manifest = field(default_factory=dict)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Every policy by every method."""
        from logeval.reports.figures.models import plot_cross_check

        return plot_cross_check(self, ax)

    def verdict(self) -> Answer:
        """The answer in words."""
        from logeval.reports.answers.estimates import cross_check_verdict

        return cross_check_verdict(self)


def cross_check(asked: ReplayCrossCheck, manifest: tables.Manifest) -> CrossCheck:
    """The clicks per SERP of all policies by all methods."""
    log, positions, seed = asked.opened, asked.positions, asked.seed
    replayed = replay_policy(
        log, asked.policies, positions=positions, queries=asked.queries,
        top_queries=asked.top_queries, items=asked.items, horizon=asked.horizon,
        shuffles=asked.runs, seed=seed, quiet=asked.quiet,
    )  # fmt: skip
    covered = replayed.covered()
    if not covered:
        raise LogevalError(
            f"{log.path}: on no query the log shows the first lists of all policies; ask for fewer "
            "positions, as positions=1, or fewer candidates, as items=4"
        )
    rows_of = replayed.table[replayed.table["query"].isin(covered)]
    steps = replayed.common(rows_of)
    chosen = [Query.parse(q) for q in covered]
    whole = read_logged(log, queries=chosen)
    streams = {s.query: s.item_ids for s in streams_of(cut(whole, positions).patterns, asked.items)}
    score = compare_models(log, CANDIDATES, queries=chosen, seed=seed, quiet=True)
    best = str(score.overall().index[0]).lower()
    rows: list[dict[str, Any]] = []
    names = list(dict.fromkeys(rows_of["policy"]))
    for model in dict.fromkeys(("dcm", "pbm", best)):
        fitted = fit(model, whole.patterns, whole.patterns.count, "per-query")
        simulated = evaluate(
            list(_restricted(model.upper(), fitted, chosen, streams, positions)),
            policies=names, horizon=steps, runs=asked.runs, reward="clicks", seed=seed,
            quiet=asked.quiet,
        ).table()  # fmt: skip
        label = f"simulated {model.upper()}" + (", best-scoring" if model == best else "")
        for name in names:
            mine = simulated[simulated["policy"] == name]
            rows.append(_row(label, name, *curve(mine, steps)))
    for name in names:
        rows.append(_row("replay", name, *curve(rows_of[rows_of["policy"] == name], steps)))
    estimators = parse_estimators([*ESTIMATORS, f"DR({best})"])
    rows += _final_lists(replayed, names, whole, positions, asked.rounds, seed, estimators)
    import pandas as pd

    manifest["log_folder"] = str(log.path)
    every = replayed.table["query"].nunique()
    lost = [
        f"{every - len(chosen)} of {every} queries are left out, as the log does not show the "
        "first lists of some policy there"
    ] * (len(chosen) < every)
    return CrossCheck(pd.DataFrame(rows), steps, [*lost, *replayed.notes], manifest)


def _row(method: str, policy: str, value: float, half: float) -> dict[str, Any]:
    return {
        "method": method, "policy": policy, "value": value, "low": value - half,
        "high": value + half,
    }  # fmt: skip


def _restricted(
    name: str, fitted: Any, queries: list[Query], items: dict[str, Ints], K: int
) -> Iterator[tuple[str, Query, ClickModel]]:
    """The models of the queries with the candidates and positions of the replay."""
    for query in queries:
        model = fitted.of(query, K=K)
        keep = model.rows_of(items[str(query)])
        yield name, query, model.only(keep)


def _final_lists(
    replayed: PolicyReplay,
    names: list[str],
    whole: Any,
    K: int,
    rounds: int,
    seed: int,
    estimators: list[Estimator],
) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        lists = {
            (q, run): A
            for (policy, q, run), A in replayed.lists.items()
            if policy == name and q in replayed.covered()
        }
        target = lists_target(
            f"last lists of {name}", whole.patterns, [Query.parse(q) for q, _ in lists],
            list(lists.values()), K,
        )  # fmt: skip
        found = point_and_interval(whole, target, estimators, rounds, seed)
        for e, (value, half) in found.items():
            rows.append(_row(f"last lists, {e}", name, value, half))
    return rows
