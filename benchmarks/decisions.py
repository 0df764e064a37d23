"""How often the decision that a verdict begins with is right, on logs whose users are known.

Logs are those of ``break_even``: 10 queries, 12,000 SERPs, users of a DCM or a PBM. Both models are
fitted to each and checked on as many other SERPs; two policies run on 8 draws of them; and the
policy that is named runs on the true users. *Right* is "test it" where its reward per search at the
end is above today's ranker's, and "keep today's ranker" where it is below.

    python -m benchmarks.decisions 30 3000     30 logs of each; 3,000 searches of a query
"""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd

import logeval
from benchmarks.break_even import QUERIES, SERPS, log_of, true_model, worlds
from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.fitting import fit_one
from logeval.clicks.lists import Lists
from logeval.clicks.quality.predictive import quick_records
from logeval.log.names import Names
from logeval.reports.verdict import verdict

MODELS = ("DCM", "PBM")
POLICIES = ["dcmKL-UCB", "RankedKL-UCB"]
HORIZON, DRAWS, RUNS = 3000, 8, 8
SEED = 1
DECISIONS = ("Test", "A small test", "Do not decide", "Keep")


def decided(users: str, logs: int, horizon: int, seed: int) -> list[dict[str, Any]]:
    """A row per log: what the verdict says, and how far ahead the policy truly ends."""
    rows = []
    for i, (world, data) in enumerate(worlds(users, logs, seed)):
        held_out = log_of(world, SERPS // 4, seed * 10_000 + 5_000 + i)
        fitted = {name: fit_one(name, data, Options("em")) for name in MODELS}
        for name, record in quick_records(fitted, data, held_out, Names(), i, quiet=True).items():
            fitted[name].report["checks"] = record
        setting: dict[str, Any] = {"horizon": horizon, "quiet": True, "seed": i}
        models = FittedModels(fitted, lists=Lists.of(data))
        runs = logeval.evaluate(models, policies=POLICIES, draws=DRAWS, runs=1, **setting)
        said = verdict(runs).decision
        row: dict[str, Any] = {"users": users, "said": said}
        row["decision"] = next((word for word in DECISIONS if said.startswith(word)), "none")
        named = next((p for p in POLICIES if p in said.partition(".")[0]), POLICIES[0])
        truth = FittedModels({users: true_model(world, fitted[users])}, lists=Lists.of(data))
        true = logeval.evaluate(truth, policies=[named], runs=RUNS, **setting).against_ranker()
        row["ahead"] = float(true["ahead"].iloc[0])
        row["paid"] = bool(true["break_even"].iloc[0] <= horizon)
        rows.append(row)
        print(f"{users} {i + 1} of {logs}", end="\r", file=sys.stderr, flush=True)
    return rows


def rows(logs: int = 4, horizon: int = HORIZON, seed: int = SEED) -> list[dict[str, Any]]:
    """By users and decision: how many logs, and of these how many end ahead and earn it back."""
    found = pd.DataFrame([row for users in MODELS for row in decided(users, logs, horizon, seed)])
    return [
        {
            "users": users,
            "decision": decision,
            "logs": len(part),
            "truly ahead": int((part["ahead"] > 0).sum()),
            "truly paid": int(part["paid"].sum()),
            "mean ahead": part["ahead"].mean(),
        }
        for (users, decision), part in found.groupby(["users", "decision"])
    ]


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    print(f"{QUERIES} queries, {SERPS:,} SERPs")
    print(pd.DataFrame(rows(*given)).round(4).to_csv(index=False))
