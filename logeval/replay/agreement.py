"""Do simulators and the log agree on which policy is best?

The same policies on the same queries and items three times: simulated with click models fitted
to the log, replayed on the log, and by the value of the lists they ended with, estimated from the
log. Simulators can be wrong about users, replay has few SERPs, and estimates cover the last
lists only; where the three agree there is little reason to doubt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from logeval.clicks.models.model import ClickModel
from logeval.clicks.quality.compare import compare_models
from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.log.queries import Query
from logeval.replay.estimates import point_and_interval
from logeval.replay.estimators.registry import parse_estimators
from logeval.replay.fitting import fit
from logeval.replay.logged import cut, read_logged
from logeval.replay.policy import replay_policy
from logeval.replay.replays import PolicyReplay, curve
from logeval.replay.stream import streams_of
from logeval.replay.targets.read import lists_target
from logeval.running.arrays import Ints
from logeval.storage import tables
from logeval.storage.results import Stored

if TYPE_CHECKING:
    import pandas as pd

    from logeval.replay.cross_check import ReplayCrossCheck

ESTIMATORS = ("IP", "Prefix", "DR")
CANDIDATES = ("dcm", "pbm", "ubm", "sdbn", "ccm")  # for the best-scoring model


@dataclass(frozen=True)
class CrossCheck(Stored):
    """One row per method and policy: clicks per SERP with interval; and the verdict."""

    TABLES: ClassVar = {"table": "cross_check"}
    KEPT = ("verdict", "notes")

    table: pd.DataFrame  # in the schema ``schemas.CROSS_CHECK``
    verdict: list[str]
    notes: list[str] = field(default_factory=list)
    manifest: tables.Manifest = field(default_factory=dict)


def cross_check(asked: ReplayCrossCheck, manifest: tables.Manifest) -> CrossCheck:
    """The clicks per SERP of all policies by all methods, and the verdict."""
    log, positions, seed = asked.opened, asked.positions, asked.seed
    replayed = replay_policy(
        log, asked.policies, positions=positions, queries=asked.queries,
        top_queries=asked.top_queries, items=asked.items, horizon=asked.horizon,
        shuffles=asked.runs, seed=seed, quiet=asked.quiet,
    )  # fmt: skip
    summary = replayed.summary()
    steps = int(summary["common_t"].min())
    if not steps:
        raise LogevalError(
            f"{log.path}: some queue was exhausted before the first checkpoint; the lists of this "
            "log vary too little; try fewer positions, fewer items or other queries"
        )
    chosen = [Query.parse(q) for q in dict.fromkeys(replayed.table["query"])]
    whole = read_logged(log, queries=chosen)
    streams = {s.query: s.item_ids for s in streams_of(cut(whole, positions).patterns, asked.items)}
    score = compare_models(log, CANDIDATES, queries=[str(q) for q in chosen], seed=seed, quiet=True)
    best = str(score.overall().index[0]).lower()
    rows: list[dict[str, Any]] = []
    names = list(summary["policy"])
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
        mine = replayed.table[replayed.table["policy"] == name]
        rows.append(_row("replay", name, *curve(mine, steps)))
    rows += _final_lists(replayed, names, whole, positions, asked.rounds, seed)
    import pandas as pd

    table = pd.DataFrame(rows)
    verdict = _verdict(table, steps)
    manifest["log_folder"] = str(log.path)
    return CrossCheck(table, verdict, replayed.notes, manifest)


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
        own = {p.field: getattr(model, p.field)[keep] for p in model.PARAMETERS if p.kind == "item"}
        yield name, query, replace(model, items=model.items[keep], **own)


def _final_lists(
    replayed: PolicyReplay, names: list[str], whole: Any, K: int, rounds: int, seed: int
) -> list[dict[str, Any]]:
    estimators = parse_estimators(ESTIMATORS)
    rows = []
    for name in names:
        lists = {(q, run): A for (policy, q, run), A in replayed.lists.items() if policy == name}
        target = lists_target(
            f"last lists of {name}", whole.patterns, [Query.parse(q) for q, _ in lists],
            list(lists.values()), K,
        )  # fmt: skip
        found = point_and_interval(whole, target, estimators, rounds, seed)
        for e, (value, half) in found.items():
            rows.append(_row(f"last lists, {e}", name, value, half))
    return rows


def _verdict(table: pd.DataFrame, steps: int) -> list[str]:
    best: dict[str, tuple[str, bool]] = {}
    for method, rows in table.groupby("method", sort=False):
        rows = rows.sort_values("value", ascending=False)
        clear = bool((rows["low"].iloc[0] > rows["high"].iloc[1:]).all())  # not beside a nan
        best[str(method)] = (str(rows["policy"].iloc[0]), clear)
    lines = [
        f"{method}: {policy} is best" + ("" if clear else ", within the intervals of another")
        for method, (policy, clear) in best.items()
    ]
    lines += _levels(table)
    winners = {policy for policy, _ in best.values()}
    sure = {policy for policy, clear in best.values() if clear}
    if len(winners) == 1:
        lines.append(f"After {steps} steps all methods agree: {winners.pop()} is best.")
    elif len(sure) <= 1:
        who = f" {sure.pop()} is best where the intervals tell." if sure else ""
        lines.append(f"After {steps} steps the methods do not contradict each other.{who}")
    else:
        lines.append(
            f"After {steps} steps the methods disagree: {', '.join(sorted(sure))} are each clearly "
            "best by some of them. Trust the log before a simulator."
        )
    return lines


def _levels(table: pd.DataFrame) -> list[str]:
    """Simulators whose clicks are not those of the replay, whoever they say is best."""
    replayed = table[table["method"] == "replay"].set_index("policy")
    lines = []
    for method, rows in table.groupby("method", sort=False):
        if not str(method).startswith("simulated"):
            continue
        mine = rows.set_index("policy").loc[replayed.index]
        apart = (mine["high"] < replayed["low"]) | (mine["low"] > replayed["high"])
        if apart.any():
            off = (mine["value"] / replayed["value"] - 1.0)[apart]
            lines.append(
                f"{method}: the clicks of {int(apart.sum())} of {len(apart)} policies lie outside "
                f"what the replay allows, by {off.min():+.0%} to {off.max():+.0%}"
            )
    return lines
