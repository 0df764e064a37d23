"""How often ``decide`` is right, on small logs whose users are known.

A log has some queries with 24 results each, lists of 5, and 6,000 searches (Zipf). Today's ranker
sorts by quality with an error, which changes from search to search a little. One click model is
fitted, checked for value by cross-fitting, and asked about one period of the same traffic; then the
policies serve the true users, several times, and today's ranker does.

    python -m benchmarks.decide 200            200 logs of each world, seed 1
    python -m benchmarks.decide 40 all 7       with another seed: the rule was chosen on seed 7
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import expit, logit

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.lists import Lists
from logeval.clicks.quality.value import cross_fitted
from logeval.decision.answer import answered, break_even
from logeval.decision.decide import Decide
from logeval.decision.earnings import PIECES, with_order
from logeval.decision.world import Traffic, today_of
from logeval.policies.registry import PolicySpec, parse_policies
from logeval.policies.setting import Setting
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.storage.schemas import CLICK_STATISTICS

K, L, SEARCHES, QUERIES = 5, 24, 6_000, 5
DRAWS, RUNS = 12, 4
POLICIES = ("dcmKL-UCB", "TopRank")
OUT = "decide-{}.csv"  # by seed: a row per policy of each log

Clicks = Callable[[Floats, Floats], Floats]  # of attractions (n, K) and uniforms (n, K + 2)
EXAMINATION = np.array([1.0, 0.85, 0.65, 0.5, 0.4])


@dataclass(frozen=True)
class Users:
    """What users of a world do: clicks (n, K) on lists of results, and how many to expect."""

    clicks: Clicks
    expected: Callable[[Floats], Floats]
    model: str = "DCM"  # that is fitted
    error: float = 1.0  # of today's ranker, on the logit scale
    queries: int = QUERIES
    drift: float = 0.0  # of qualities from one period to the next, logit


def cascade(w: Floats, u: Floats, stop: Floats | float = 0.5) -> Floats:
    """Users who read from the top; after a click they stop with this probability."""
    c, on = np.zeros(w.shape), np.ones(len(w), dtype=bool)
    for k in range(w.shape[1]):
        c[:, k] = on & (u[:, k] < w[:, k])
        on &= ~((c[:, k] > 0) & ((u[:, k] / np.maximum(w[:, k], 1e-12)) < stop))
    return c


def of_cascade(w: Floats, stop: float = 0.5) -> Floats:
    """Their expected clicks."""
    there = np.cumprod(1.0 - stop * w, axis=1)
    return np.asarray(w[:, 0] + (w[:, 1:] * there[:, :-1]).sum(axis=1))


def pbm(w: Floats, u: Floats) -> Floats:
    """Users who look at each position by itself."""
    return (u[:, :K] < w * EXAMINATION).astype(float)


def kinds(w: Floats) -> list[tuple[Floats, float]]:
    """Thirds of users: hardly clicks and then leaves; leaves after a click; never leaves."""
    return [(expit(logit(w) - 2.0), 0.95), (w, 0.95), (w, 0.05)]


def mixture(w: Floats, u: Floats) -> Floats:
    """Users of three kinds."""
    kind = np.minimum((3.0 * u[:, K + 1]).astype(int), 2)
    each = np.stack([cascade(of, u, stop) for of, stop in kinds(w)])
    return np.asarray(each[kind, np.arange(len(w))])


def of_mixture(w: Floats) -> Floats:
    """Their expected clicks."""
    return np.mean([of_cascade(of, stop) for of, stop in kinds(w)], axis=0)


def shares(w: Floats) -> Floats:
    """Where the one click of a search goes: results take it from each other."""
    odds = w / (1.0 - w)
    p = 1.6 * odds / (3.0 + odds.sum(axis=1, keepdims=True))
    return np.minimum(p.cumsum(axis=1), 1.0)


def competing(w: Floats, u: Floats) -> Floats:
    """One click at most, on a result in proportion to its odds."""
    first = (u[:, :1] >= shares(w)).sum(axis=1)
    return (first[:, None] == np.arange(w.shape[1])).astype(float)


def of_competing(w: Floats) -> Floats:
    """Their expected clicks."""
    return shares(w)[:, -1]


DCM = (cascade, of_cascade)
WORLDS = {
    "dcm": Users(*DCM),
    "pbm": Users(pbm, lambda w: w @ EXAMINATION, "PBM"),
    "good ranker": Users(*DCM, error=0.35),
    "best ranker": Users(*DCM, error=0.0),
    "mixture": Users(mixture, of_mixture),
    "competing": Users(competing, of_competing),
    "drift": Users(*DCM, drift=0.5),
    "thin": Users(*DCM, queries=60),
}


@dataclass(frozen=True)
class World:
    """Users, qualities (Q, L) in this period and the next, searches (Q,), scores of the ranker."""

    users: Users
    w: Floats
    later: Floats
    n: Ints
    score: Floats

    def lists(self, q: Ints, rng: np.random.Generator) -> Ints:
        """What today's ranker shows in searches of queries q (n,)."""
        score = self.score[q] + 0.35 * rng.standard_normal((len(q), L))
        return np.argsort(-score, axis=1)[:, :K]

    def clicked(self, w: Floats, q: Ints, A: Ints, rng: np.random.Generator) -> Floats:
        """Clicks (n, K) on lists A."""
        return self.users.clicks(w[q[:, None], A], rng.random((len(q), K + 2)))


def make(name: str, seed: int) -> World:
    """A world of that name."""
    users, rng = WORLDS[name], seeds.generator(seed, "decide-benchmark", name)
    logits = rng.normal(rng.normal(-2.0, 0.5, (users.queries, 1)), 0.9, (users.queries, L))
    later = logits + users.drift * rng.standard_normal(logits.shape)
    share = 1.0 / np.arange(1, users.queries + 1)
    n = np.maximum((SEARCHES * share / share.sum()).round().astype(int), 40)
    score = logits + users.error * rng.standard_normal(logits.shape)
    return World(users, expit(logits), expit(later), n, score)


def log_of(world: World, rng: np.random.Generator) -> Patterns:
    """The log of a period."""
    q = np.repeat(np.arange(len(world.n)), world.n)
    A = world.lists(q, rng)
    bits = (world.clicked(world.w, q, A, rng) > 0).astype(np.int64) @ (1 << np.arange(K))
    folded = pd.DataFrame(np.column_stack([q, A + q[:, None] * L, bits])).value_counts(sort=False)
    rows = [
        {"query_id": q, "holdout": False, "items": items, "clicks": c, "count": n}
        for (q, *items, c), n in folded.items()
    ]
    return patterns_of(pa.Table.from_pylist(rows, schema=CLICK_STATISTICS))


def fitted_to(world: World, data: Patterns, seed: int) -> FittedModels:
    """The model with the slopes of its value check."""
    name = world.users.model

    def fit(patterns: Patterns, intervals: bool = False) -> Any:
        return fit_one(name, patterns, Options("em", draws=DRAWS, seed=seed, intervals=intervals))

    one = fit(data, True)
    found = cross_fitted(fit, data, seed=seed)
    one.report["value"] = [slope.row() for slope in found]
    return FittedModels({name: one}, lists=Lists.of(data))


def truly(world: World, spec: PolicySpec, known: list[Ints], seed: int) -> Floats:
    """What RUNS runs of a policy on the true users are ahead of today's ranker, (RUNS, PIECES).

    Expected clicks, as shares of what the ranker earns in all.
    """
    rng = seeds.generator(seed, "truth", spec.name)
    ahead, today = np.zeros((RUNS, PIECES)), 0.0
    for q, n in enumerate(world.n.tolist()):
        A = world.lists(np.full(4_000, q), rng)
        level = float(world.users.expected(world.later[q][A]).mean())
        today += n * level
        items = np.array([rng.permutation(known[q]) for _ in range(RUNS)])
        own = [seeds.generator(seed, "policy", spec.name, str(q), r) for r in range(RUNS)]
        policy: Any = spec.make(Setting(np.full((RUNS, K), len(known[q])), True, n, own))
        earned = np.zeros((RUNS, n + 1))
        uniforms = rng.random((n, RUNS, K + 2))
        for t in range(1, n + 1):
            labels = policy.recommend(t)
            w = world.later[q][np.take_along_axis(items, labels, axis=1)]
            policy.update(t, labels, world.users.clicks(w, uniforms[t - 1]).astype(np.int64))
            earned[:, t] = world.users.expected(w)
        ends = np.ceil(n * np.arange(1, PIECES + 1) / PIECES).astype(int)
        ahead += earned.cumsum(axis=1)[:, ends] - level * ends
    return ahead / today


def row_of(name: str, seed: int) -> list[dict[str, Any]]:
    """A row per policy of one log: what was said, and what is true."""
    world = make(name, seed)
    rng = seeds.generator(seed, "log", name)
    data = log_of(world, rng)
    models = fitted_to(world, data, seed)
    asked = Decide(Path("nowhere"), models=models, policies=POLICIES, draws=DRAWS, seed=seed,
                   quiet=True)  # fmt: skip
    queries = models.lists.queries if models.lists else []
    n = np.array([float(world.n[query.query_id]) for query in queries])
    shown: Any = [today_of(models, query) for query in queries]
    found = answered(asked, models, Traffic(queries, n, n.sum(), 27.0), shown, str, {})
    order = found.fact("order")
    rows = []
    for spec in parse_policies(POLICIES):
        said = next((one for one in found.choices if one.policy == spec.name), None)
        if said is None:
            continue
        told = with_order(spec, None if order is None else order.more["order"])
        every = [known_of(data, q, 0.01 * n) for q, n in enumerate(world.n)]
        gains = truly(world, told, every, seed)
        end = gains[:, -1]
        value = next(one for one in found.simulators if one.used)
        rows.append(
            {
                "world": name, "seed": seed, "decision": found.decision, "reason": found.reason,
                "chosen": found.policy == spec.name, "policy": spec.name, "gain": said.gain,
                "low": said.gain_low, "high": said.gain_high, "worse": said.worse,
                "true": end.mean(), "one run": end[0], "slope": value.slope,
                "slope low": value.slope_low, "slope high": value.slope_high,
                "pays back": np.nan if said.pays_back is None else said.pays_back / 27.0,
                "pays low": np.nan if said.pays_back_low is None else said.pays_back_low / 27.0,
                "pays high": np.nan if said.pays_back_high is None else said.pays_back_high / 27.0,
                "true pays back": break_even(gains.mean(axis=0)),
                "pays back of a run": break_even(gains[0]),
            }
        )  # fmt: skip
    return rows


def known_of(data: Patterns, query: int, least: float) -> Ints:
    """The results that the log showed so often, at least K."""
    mine = np.array([q.query_id for q in data.queries])[data.query] == query
    items, count = data.items[mine], data.count[mine]
    shown = np.bincount(items.ravel(), np.repeat(count, items.shape[1]), len(data.item_ids))
    ids = data.item_ids - query * L
    there = shown > 0
    often = ids[there & (shown >= least)]
    return often if len(often) >= K else ids[np.argsort(-shown, kind="stable")[:K]]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per world: shares of decisions, and how often they are right."""
    found = []
    for name, part in rows.groupby("world", sort=False):
        best = part.sort_values("true").groupby("seed").tail(1)
        logs = part.groupby("seed").first()
        test = part[(part["decision"] == "TEST") & part["chosen"]]
        keep = best[best["decision"] == "KEEP"]
        inside = (part["low"] <= part["one run"]) & (part["one run"] <= part["high"])
        found.append(
            {
                "world": name, "logs": len(logs),
                **{d: (logs["decision"] == d).mean() for d in ("TEST", "KEEP", "WAIT")},
                "TEST gains": (test["true"] > 0).mean(), "TEST gain": test["true"].mean(),
                "KEEP loses": (keep["true"] <= 0).mean(), "KEEP best gain": keep["true"].mean(),
                "mean gain said": part["gain"].mean(), "mean gain true": part["true"].mean(),
                "covers": inside.mean(), "slope": part["slope"].mean(),
            }
        )  # fmt: skip
    return pd.DataFrame(found)


def calibration(rows: pd.DataFrame) -> pd.DataFrame:
    """By what was said of being worse than today: how often a policy was."""
    ends = [0.0, 0.01, 0.05, 0.1, 0.3, 0.7, 0.9, 1.01]
    said = pd.cut(rows["worse"], ends, right=False)
    shares = rows.assign(true=rows["one run"] < 0).groupby(said, observed=True)
    return shares.agg(policies=("true", "size"), said=("worse", "mean"), true=("true", "mean"))


if __name__ == "__main__":
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    names = list(WORLDS)
    seed = int(sys.argv[-1]) if len(sys.argv) > 2 and sys.argv[-1].isdigit() else 1
    rows: list[dict[str, Any]] = []
    for i in range(logs):
        for name in names:
            rows += row_of(name, 1_000 * seed + i)
        pd.DataFrame(rows).to_csv(OUT.format(seed), index=False)
        print(f"{i + 1} of {logs}", end="\r", file=sys.stderr, flush=True)
    table = pd.DataFrame(rows)
    with pd.option_context("display.width", 200, "display.max_columns", 30):
        print(summary(table).round(3).to_string(index=False))
        print(calibration(table).round(3).to_string())
