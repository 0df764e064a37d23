"""Users that change: python -m benchmarks.drift [price] [winners] [speed] [alarms] [truth] ...

``price`` and ``winners``: regret of policies on users who do not change, and who change more and
more often. ``speed``: kernels against their references. ``alarms``: how often fits by period say
that the users of a query change, on generated logs in which they do, more or less, or not.
``lists``: the same where lists recur, and where they do not, in logs of two sizes.
``size``: what the best constant list loses to users whose logits vary from period to period.
``truth``: the change that was estimated against the true one. ``forged``: regret where clicks are
forged or late. ``days``: intervals of ``replay policy --order time``. Each at most 3 CPU minutes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit

sys.path.insert(0, str(Path(__file__).parent.parent))

from logeval import evaluate, generate, ingest
from logeval.clicks.drift import SIZE, Drift, Strata, changes_of, fit_by_period, fold_by_period
from logeval.clicks.fit import Fit
from logeval.evaluation.loop import run
from logeval.log.log import load
from logeval.log.queries import Query
from logeval.policies.registry import parse_policies
from logeval.policies.setting import Policy, Setting
from logeval.running import seeds
from logeval.synthetic.world import make_world
from logeval.tracks.meters import Meters
from logeval.tracks.ranking import RANKING, RankingEnvironment
from logeval.tracks.registry import synthetic_problem
from tests.references import as_policy

N, RUNS = 40_000, 20
POLICIES = [
    "dcmKL-UCB", "SW-dcmKL-UCB", "D-dcmKL-UCB", "CascadeKL-UCB", "GLRT-CascadeKL-UCB",
    "CascadeUCB1", "GLRT-CascadeUCB", "CascadeSWUCB", "CascadeDUCB", "CascadeUCB-V",
]  # fmt: skip
CHANGES = (0, 1, 3, 7, 15, 31, 63)
SESSIONS, QUERIES, LOGS, CONSTANT_LOGS = 25_000, 30, 20, 120


def problem(changes: int, L: int = 16, K: int = 4) -> str:
    more = f",changes={changes}" if changes else ""
    return f"B_LB(L={L},K={K},p=0.2,gap=0.15,gamma=0.8{more})"


def regrets(problems: list[str]) -> pd.DataFrame:
    """Mean regret and its standard error, by problem and policy."""
    rows = evaluate(
        problem=problems, policies=POLICIES, horizon=N, runs=RUNS, checkpoints=[N], quiet=True,
        seed=11,
    ).table()  # fmt: skip
    by = rows.groupby(["simulator", "policy"]).regret
    return pd.DataFrame({"regret": by.mean(), "error": by.sem()})


def price() -> None:
    """On users who do not change, regret over that of the policy without forgetting."""
    pairs = {
        "SW-dcmKL-UCB": "dcmKL-UCB", "D-dcmKL-UCB": "dcmKL-UCB",
        "GLRT-CascadeKL-UCB": "CascadeKL-UCB", "GLRT-CascadeUCB": "CascadeUCB1",
        "CascadeSWUCB": "CascadeUCB1", "CascadeDUCB": "CascadeUCB1", "CascadeUCB-V": "CascadeUCB1",
    }  # fmt: skip
    for name in (problem(0), problem(0, 64, 5)):
        found = regrets([name]).loc[name]
        print(name)
        for policy, plain in pairs.items():
            (a, da), (b, db) = found.loc[policy], found.loc[plain]
            ratio = a / b
            error = ratio * np.hypot(da / a, db / b)
            print(f"  {policy:20} {a:8.0f}  {plain:14} {b:6.0f}  {ratio:6.2f} (se {error:.2f})")


def winners() -> None:
    """Regret by the number of changes in N steps."""
    found = regrets([problem(c) for c in CHANGES])
    table = found.regret.unstack("policy")[POLICIES].loc[[problem(c) for c in CHANGES]]
    table.index = pd.Index([f"{c} changes" for c in CHANGES])
    print(table.round(0).astype(int).T.to_string())
    print("largest standard error:", found.error.max().round(1))


def kernels(name: str, setting: Setting) -> Policy:
    return parse_policies([name])[0].make(setting)


def speed() -> None:
    """CPU time of a list-step, reference over kernel."""
    for policy in (
        "SW-dcmKL-UCB(tau=1000)", "CascadeSWUCB(tau=1000)", "D-dcmKL-UCB", "CascadeDUCB",
        "GLRT-CascadeKL-UCB", "GLRT-CascadeUCB",
    ):  # fmt: skip
        took = []
        for steps, runs, make in ((20_000, 16, kernels), (2_000, 1, as_policy)):
            for n in (20, steps):  # the first compiles
                users = RankingEnvironment(
                    [synthetic_problem(problem(3))], [(0, r) for r in range(runs)], seed=0
                )
                generators = [seeds.generator(0, "benchmark", r) for r in range(runs)]
                ours: Any = make(policy, Setting.of(users, n, generators))
                users.until(n)
                start = time.process_time()
                run(users, ours, Meters(RANKING.meters, users, ours), [n])
            took.append((time.process_time() - start) / (steps * runs))
        print(f"{policy:24} {1e6 * took[0]:6.2f} us a list-step, {took[1] / took[0]:6.0f} times")


def drifts(folder: Path, drift: float, seed: int, periods: str = "week") -> Drift:
    """A generated log, fitted by period."""
    log = folder / f"{drift}-{seed}"
    generate(f"{log}.tsv", sessions=SESSIONS, queries=QUERIES, drift=drift, seed=seed, quiet=True)
    ingest(f"{log}.tsv", out=log, quiet=True)
    data = fold_by_period(load(log), periods, None, None, 0.2, seed)
    asked = Fit(log, ["dcm"], method="mle")
    fit = partial(asked.fit, "DCM", intervals=False)
    return fit_by_period(fit(data.train), fit, data, lambda n: None)


def alarms() -> None:
    """Share of the queries of which the fits say that their users change; with its error."""
    with tempfile.TemporaryDirectory() as folder:
        for drift in (0.0, 0.5, 1.0, 2.0):
            logs = LOGS if drift else CONSTANT_LOGS
            found = [drifts(Path(folder), drift, 5000 + seed) for seed in range(logs)]
            serps = np.concatenate([f.models[0].serps for f in found])
            said = np.concatenate([f.queries.found for f in found])
            tested = np.concatenate([f.queries.tested for f in found])
            of_logs = np.mean([f.log.found[0] for f in found])
            line = [f"drift {drift:3}: {of_logs:.1%} of {logs} logs"]
            for low, high in ((0, np.inf), (0, 1000), (1000, 3000), (3000, np.inf)):
                mine = said[tested & (serps >= low) & (serps < high)]
                error = np.sqrt(mine.mean() * (1 - mine.mean()) / len(mine))
                line.append(
                    f"SERPs {low}-{high}: {mine.mean():5.1%} of {len(mine)} (se {error:.1%})"
                )
            print("; ".join(line))


def searches(
    users: str,
    lists: str,
    move: float,
    seed: int,
    Q: int = 6,
    n: int = 1500,
    L: int = 15,
    K: int = 5,
) -> Strata:
    """Four weeks in which every attraction moves by ``move``, up or down, on the logit scale.

    Users are those of a PBM or DCM, or ``classes``: a third clicks more, a third less. Lists are
    ordered by quality and noise: each by itself (``new``), or drawn from eight (``recurring``),
    or from one or four of each week (``1 a week``, ``4 a week``).
    """
    rng, rows, e = np.random.default_rng(seed), [], np.array([1.0, 0.8, 0.6, 0.45, 0.35])
    week = np.arange(n) * 4 // n
    for q in range(Q):
        start, slope = rng.normal(-1.0, 1.0, L), move * rng.choice([-1.0, 1.0], L)
        noisy = start + rng.normal(0, 1, L) + rng.gumbel(size=(n, L))
        drawn = np.argsort(-noisy, axis=1)[:, :K]
        size = {"new": n, "recurring": 8, "1 a week": 1, "4 a week": 4}[lists]
        A = drawn[rng.integers(size, size=n) + size * week * ("week" in lists) if size < n
                  else np.arange(n)]  # fmt: skip
        class_ = 1.5 * (rng.integers(3, size=(n, 1)) - 1) * (users == "classes")
        when = (np.arange(n) / n - 0.5)[:, None]
        w = expit((start + slope * when)[np.arange(n)[:, None], A] + class_)
        clicks = rng.random((n, K)) < w * (1.0 if users == "dcm" else e)
        leaves = (rng.random((n, K)) < 0.5) & clicks & (users == "dcm")
        clicks &= np.cumsum(leaves, axis=1) - leaves == 0
        t, k = np.nonzero(np.cumsum(clicks, axis=1) - clicks == 0)  # up to the first click
        rows.append(np.stack([np.full(len(t), q), A[t, k], k, week[t], clicks[t, k]]))
    query, item, position, period, click = np.concatenate(rows, axis=1)
    ones, queries = np.ones(len(query)), [Query(q) for q in range(Q)]
    return Strata(4, queries, query, item, position, period, ones, click.astype(float))


def lists() -> None:
    """Share of logs of 6 queries and 4 weeks in which users are said to change, by sd of logits."""
    per_move = np.std((np.arange(4) - 1.5) / 4, ddof=1)
    for n in (1500, 12_000):
        for users in ("pbm", "dcm", "classes"):
            for kind in ("recurring", "new", "4 a week", "1 a week"):
                line = [f"{n:6} SERPs of a query, {users:8} {kind:10}"]
                for size in (0.0, SIZE / 2, SIZE, 2 * SIZE):
                    move = size / per_move
                    each = [searches(users, kind, move, 100 + i, n=n) for i in range(LOGS)]
                    logs = [changes_of(data)[1] for data in each]
                    found, power = (np.mean([getattr(x, a)[0] for x in logs]) for a in
                                    ("found", "power"))  # fmt: skip
                    tau = np.mean([x.size[0] for x in logs])
                    line.append(f"{size}: {found:.0%} (size {tau:.2f})")
                print("; ".join(line), f"; power {power:.0%}", flush=True)


def size() -> None:
    """Share of clicks that the best constant list loses to the best of each period."""
    rng, P = np.random.default_rng(0), 4
    for name in ("PBM", "DCM"):
        for tau in (SIZE / 2, SIZE, 2 * SIZE):
            got = best = 0.0
            for seed in range(10):
                world = make_world(name, 20, seed)
                for q in range(20):
                    mine = slice(world.first_item[q], world.first_item[q + 1])
                    own = {
                        p.field: world.parameters[p.field][mine if p.kind == "item" else q]
                        for p in world.kind.PARAMETERS
                    }
                    L = len(own["w"])
                    w = expit(logit(own["w"]) + tau * rng.normal(size=(P, L)))
                    models = [
                        world.kind(items=np.arange(L), K=10, **{**own, "w": x})
                        for x in (w.mean(axis=0), *w)
                    ]
                    A = models[0].optimum(10, "clicks").A[None]
                    got += sum(float(m.expected_reward(A, "clicks")[0]) for m in models[1:])
                    best += sum(m.optimum(10, "clicks").value for m in models[1:])
            print(f"{name}, sd {tau} on the logit scale: loses {1 - got / best:.2%}", flush=True)


def truth() -> None:
    """Slope, correlation and error of the estimated change of attraction, first to last week."""
    with tempfile.TemporaryDirectory() as folder:
        for drift in (0.0, 1.0, 2.0):
            estimated, true = [], []
            for seed in range(400, 406):
                found = drifts(Path(folder), drift, seed)
                first, last = (found.models[j].estimates["w"] for j in (0, -1))
                world = make_world("dcm", QUERIES, seed, drift=drift)
                item = found.models[0].item_ids - 1
                often = first.observations + last.observations > 300
                at = [world.attraction(day / 26) for day in (3, 23.5)]
                estimated.append((last.value - first.value)[often])
                true.append((at[1] - at[0])[item][often])
            x, y = np.concatenate(true), np.concatenate(estimated)
            line = f"drift {drift}: {len(x)} items, rms error {np.sqrt(np.mean((y - x) ** 2)):.3f}"
            line += f", of no change {np.sqrt(np.mean(x**2)):.3f}"
            if drift:
                line += f", correlation {np.corrcoef(x, y)[0, 1]:.2f}, slope {x @ y / (x @ x):.2f}"
            print(line)


def forged() -> None:
    """Regret where clicks are forged or late."""
    policies = ["CascadeUCB1", "CascadeUCB1(corruption=500)", "CascadeUCB-V", "CascadeKL-UCB"]
    policies += ["dcmKL-UCB", "GLRT-CascadeKL-UCB"]
    rows = {}
    for corrupt, delay in (
        (None, None), ("0.05@worst", None), ("0.2@worst", None), ("500@worst", None),
        ("500@best", None), (None, "500"), (None, "100@0.5"),
    ):  # fmt: skip
        table = evaluate(
            problem=[problem(0)], policies=policies, horizon=20_000, runs=RUNS, quiet=True,
            checkpoints=[20_000], corrupt=corrupt, delay=delay, seed=11,
        ).table()  # fmt: skip
        by = table.groupby("policy").regret
        rows[corrupt or delay or "none"] = by.mean().round().astype(int)
        print(corrupt, delay, "largest standard error", by.sem().max().round(1))
    print(pd.DataFrame(rows).loc[policies].to_string())


PARTS = {f.__name__: f for f in (price, winners, speed, alarms, lists, size, truth, forged)}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        began = time.process_time()
        print(f"== {part}")
        PARTS[part]()
        print(f"({time.process_time() - began:.0f} CPU seconds)", flush=True)
