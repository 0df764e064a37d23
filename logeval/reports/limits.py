"""What limits the answer: curves that still rise, elimination that has not begun, few queries."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.summary import ORACLE, is_oracle
from logeval.policies.registry import POLICIES
from logeval.running.names import parse_call
from logeval.running.words import joined

FLAT = 0.5  # a curve is flat when the last half of the steps costs less than this of the average
NAMED = 4  # policies, the flattest first
MOSTLY = 0.5  # of the runs
BASELINES = (ORACLE, "Random", "Logged")  # they do not learn


def limits_of(runs: Runs) -> list[str]:
    """One sentence for each thing that limits the conclusions, whatever the simulators it is of."""
    names = {runs.title(panel) for panel in runs.panels()} | {p.simulator for p in runs.panels()}
    found = [
        *merged(runs.cautions(), names),
        *not_flat(runs),
        *nothing_eliminated(runs),
        *free_samples(runs),
    ]
    return [*found, *merged(runs.notes, names)]


def merged(sentences: Sequence[str], names: Collection[str]) -> list[str]:
    """Sentences about simulators, ``DCM: ...``, that say the same, as one: ``DCM and PBM: ...``."""
    about: dict[str, list[str]] = {}
    for sentence in sentences:
        name, colon, rest = sentence.partition(": ")
        known = colon and name in names
        about.setdefault(rest if known else sentence, []).extend([name] if known else [])
    return [
        f"{joined(list(dict.fromkeys(who)))}: {what}" if who else what
        for what, who in about.items()
    ]


def free_samples(runs: Runs) -> list[str]:
    """Policies that begin with an observation of every item that nobody paid for."""
    free = begin_free(dict.fromkeys(runs.table()["policy"]))
    if not free or runs.problems()["ranker"].isna().all():
        return []
    begin, they = ("begins", "it") if len(free) == 1 else ("begin", "they")
    return [
        f"{joined(free)} {begin} with one free observation of every item, as in the papers, so "
        f"{they} would break even later in traffic, by up to as many searches as there are items; "
        "without init=sample they are paid for"
    ]


def begin_free(policies: Iterable[str]) -> list[str]:
    """Those of the policies that do."""
    return [policy for policy in policies if parse_call(policy)[1].get("init") == "sample"]


def late_slope(curve: pd.DataFrame) -> float:
    """Regret per step in the last half of the steps, over that of all steps.

    1 for a straight line, 0.59 for a square root, and log 4 / log n for a logarithm (0.16 at
    n = 5,000). nan without regret, or without a checkpoint near the middle.
    """
    t, regret = curve["t"].to_numpy(dtype=float), curve["regret"].to_numpy()
    n = t[-1]
    half = int(np.abs(t - n / 2).argmin())
    if not 0.25 * n <= t[half] <= 0.75 * n or regret[-1] <= 1e-9:
        return math.nan
    return float((regret[-1] - regret[half]) / (n - t[half]) / (regret[-1] / n))


def flattens(curves: Mapping[str, pd.DataFrame]) -> bool:
    """Whether the curve of some policy flattens."""
    return any(late_slope(curve) < FLAT for name, curve in curves.items() if not is_oracle(name))


def not_flat(runs: Runs) -> list[str]:
    """The policies that have not learned to the end at the horizon, the flattest first."""
    slopes: dict[str, list[float]] = {}
    for panel in runs.panels():
        for policy, curve in runs.curves(panel.simulator, track=panel.track).items():
            if policy.partition("(")[0] not in BASELINES and (s := late_slope(curve)) >= FLAT:
                slopes.setdefault(policy, []).append(s)
    if not slopes:
        return []
    rising = sorted(slopes.items(), key=lambda x: min(x[1]))
    policies = [f"{p} {' to '.join(dict.fromkeys(_percents(s)))}" for p, s in rising]
    more = [f"{len(policies) - NAMED} more"] if len(policies) > NAMED else []
    return [
        f"curves still rise at {runs.horizon:,} searches; with more the order may change. Regret "
        "per search in the second half, compared with the average: "
        f"{joined([*policies[:NAMED], *more])}"
    ]


def _percents(slopes: Sequence[float]) -> list[str]:
    return [f"{min(slopes):.0%}", f"{max(slopes):.0%}"]


def nothing_eliminated(runs: Runs) -> list[str]:
    """Policies that work by elimination and mostly have eliminated nothing, and why."""
    rows = runs.table()
    rows = rows[(rows["t"] == runs.horizon) & rows["rows_left"].notna()]
    sizes = runs.hardness()
    found: dict[tuple[str, str], list[tuple[str, int, int]]] = {}  # by policy and reason
    for (simulator, policy), part in rows.groupby(["simulator", "policy"]):
        mine = sizes[sizes["simulator"] == simulator]
        part = part.merge(mine[["query", "draw", "items", "positions"]], on=["query", "draw"])
        all_left = (part["rows_left"] == part["items"]) & (
            part["columns_left"] == part["positions"]
        )
        if len(part) and all_left.mean() >= MOSTLY:
            why = _why(str(policy), part, runs)
            about = (str(simulator), int(all_left.sum()), len(part))
            found.setdefault((str(policy), why), []).append(about)
    several = len(runs.panels()) > 1
    return [
        f"{policy} eliminated nothing{_on(about) if several else ''}{_often(about)}{why}"
        for (policy, why), about in found.items()
    ]


def _on(about: list[tuple[str, int, int]]) -> str:
    return f" on {joined([simulator for simulator, _, _ in about])}"


def _often(about: list[tuple[str, int, int]]) -> str:
    """In 49 of 50 runs; nothing if in all."""
    if all(left == runs for _, left, runs in about):
        return ""
    return f" in {joined([f'{left} of {runs}' for _, left, runs in about])} runs"


def _why(policy: str, part: pd.DataFrame, runs: Runs) -> str:
    """How many steps its first stage takes, if the policy says that."""
    budget = getattr(POLICIES.get(parse_call(policy)[0]), "first_stage", None)
    if budget is None:
        return f" in {runs.horizon:,} searches"
    n = runs.horizon
    queries = part.drop_duplicates("query")
    needed = [budget(*sizes, n) for sizes in queries[["items", "positions"]].to_numpy().tolist()]
    ended = sum(steps <= n for steps in needed)
    low, high = min(needed), max(needed)
    steps = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    text = f": its first stage, during which it cannot eliminate anything, takes {steps} searches"
    if len(needed) > 1:
        text += f" and ends within {n:,} on {ended} of {len(needed)} queries"
    else:
        text += f", and there were {n:,}"
    if ended:
        text += "; where its bounds are still too wide, the next stage takes four times as many"
    return text + "; so far its regret is that of exploring, and says nothing about later"
