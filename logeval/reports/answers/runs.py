"""What ``evaluate`` found: who loses least, on which simulators, and what limits that.

``In the best set`` and the letters of the table mean the simultaneous test at 5% over all pairs of
policies of one simulator and track.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from logeval.evaluation.results import FEWEST_SERPS, Runs
from logeval.evaluation.statistics.summary import FEW, MEASURED_SPREAD, is_oracle
from logeval.facts import Answer, Fact
from logeval.running.names import parse_call
from logeval.running.words import interval, number, with_interval
from logeval.tracks.keys import Panel

SIGNIFICANCE = 0.05
THIN = 300  # SERPs of a query; with fewer, its best list was 15% too good (docs/evidence.md)
FLAT = 0.5  # a curve is flat when the last half of the steps costs less than this of the average
MOSTLY = 0.5  # of the runs
BASELINES = ("Oracle", "Random", "Logged")  # they do not learn


def answer_of(runs: Runs) -> Answer:
    """The conclusion of the runs of one folder, at their last step."""
    if no_clicks(runs):
        return Answer([Fact("no-clicks", level="stop")])
    summary = runs.summary()
    parts = {panel: competing(of_panel(summary, panel)) for panel in runs.panels()}
    parts = {panel: table for panel, table in parts.items() if len(table)}
    if not parts:
        return Answer([Fact("only-the-oracle", level="stop")])
    tracks = dict.fromkeys(panel.track for panel in parts)
    first = [
        fact
        for track in tracks
        for fact in who({p: table for p, table in parts.items() if p.track == track}, runs.horizon)
    ]
    facts = [*simulators(runs), *replicas(runs, parts), *curves(runs), *eliminated(runs)]
    return Answer(first, [*facts, *free_looks(runs), *in_clicks(runs), *runs.facts])


def no_clicks(runs: Runs) -> bool:
    """Whether the log that the simulators were fitted to has none: they are all prior."""
    clicks = runs.problems()["log_clicks"].dropna()
    return len(clicks) > 0 and not clicks.any()


def of_panel(table: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """The rows of one simulator and track."""
    return table[(table["simulator"] == panel.simulator) & (table["track"] == panel.track)]


def competing(summary: pd.DataFrame) -> pd.DataFrame:
    """The policies that do not know the answer."""
    return summary[~summary["policy"].map(is_oracle)]


# -- who loses least ------------------------------------------------------------------------------


def who(parts: dict[Panel, pd.DataFrame], horizon: int) -> list[Fact]:
    """Of one track: the policy that loses least, and those that cannot be told apart from it."""
    where = [panel.simulator for panel in parts]
    if not set.intersection(*(set(table["policy"]) for table in parts.values())):
        return [Fact("nothing-in-common", level="caution", more={"simulators": where})]
    firsts = [str(table["policy"].iloc[0]) for table in parts.values()]
    sets = [set(table[table["in_best_set"]]["policy"]) for table in parts.values()]
    order = list(next(iter(parts.values()))["policy"])
    tested = not any(table["p"].isna().all() for table in parts.values())
    if len(set(firsts)) > 1:
        by = [f"{name} on {on}" for name, on in zip(firsts, where, strict=True)]
        found = [Fact("depends", level="caution", more={"best": by})]
        shared = [policy for policy in order if all(policy in one for one in sets)]
        return [*found, Fact("may-be-best", more={"policies": shared})] if tested and shared \
            else found  # fmt: skip
    best = firsts[0]
    shares = [float(table["relative_regret"].iloc[0]) for table in parts.values()]
    more = {"simulators": where, "searches": horizon}
    lost = Fact("loses-least", best, value=max(shares), more=more)
    if all(len(table) == 1 for table in parts.values()):
        return [Fact("alone", best, value=max(shares), more=more)]
    if not tested:
        return [lost, Fact("not-tested", level="caution")]
    tied = [policy for policy in order if policy != best and any(policy in one for one in sets)]
    return [lost, Fact("tied", best, more={"others": tied}) if tied else Fact("clear", best)]


# -- what it rests on -----------------------------------------------------------------------------


def simulators(runs: Runs) -> Iterator[Fact]:
    """What is known of those that were fitted to a log."""
    empty = [about.get("expected_empty") for about in runs.simulators.values()]
    if any(empty):
        yield Fact("clicked-only", level="stop", value=max(filter(None, empty)))
    known = {name: about["checks"] for name, about in runs.simulators.items()}
    judged = {name: one for name, one in known.items() if one and one["judged"]}
    wrong = [
        f"{name} ({len(one['faulted'])} of {one['judged']}: {', '.join(one['faulted'])})"
        for name, one in judged.items()
        if one["faulted"]
    ]
    right = [name for name, one in judged.items() if not one["faulted"]]
    if right:
        most = float(max(judged[name]["judged"] for name in right))
        yield Fact("checks-pass", value=most, more={"names": right})
    if wrong:
        yield Fact("checks-fail", level="caution", more={"names": wrong})
    if unknown := [name for name in known if name not in judged]:
        yield Fact("unchecked", level="caution", more={"names": unknown})
    if lenient := [name for name, one in judged.items() if not one["held_out"]]:
        yield Fact("checks-lenient", level="caution", more={"names": lenient})
    if exact := [name for name, about in runs.simulators.items() if not about["draws"]]:
        yield Fact("taken-as-exact", level="caution", more={"names": exact})
    for name, about in runs.simulators.items():
        lost = about.get("identified")
        if lost and lost["not_carried"]:
            yield Fact("rests-on-prior", name, "caution", float(len(lost["not_carried"])),
                       threshold=float(lost["queries"]))  # fmt: skip
    table = runs.problems().dropna(subset=["serps"]).drop_duplicates("query")
    thin = int((table["serps"] < THIN).sum())
    if thin:
        many, more = float(len(table)), {"least": THIN}
        yield Fact("thin-queries", "", "caution", float(thin), threshold=many, more=more)


def replicas(runs: Runs, parts: dict[Panel, pd.DataFrame]) -> Iterator[Fact]:
    """Few queries, few runs, or runs that are missing."""
    rows: Any = [table.iloc[0] for table in parts.values()]
    queries, runs_ = min(int(row["queries"]) for row in rows), min(row["replicas"] for row in rows)
    if queries == 1 and runs_ == 1:
        yield Fact("one-run", level="caution")
    elif queries == 1:
        yield Fact("one-query", level="caution", value=float(runs_))
    elif queries < FEW:
        yield Fact("few-queries", level="caution", value=float(queries))
    spread = {
        name
        for table in parts.values()
        for name in table["policy"][table["log_sd"] > MEASURED_SPREAD]
    }
    if spread:
        yield Fact(
            "spread", level="caution", threshold=MEASURED_SPREAD, more={"policies": sorted(spread)}
        )
    missing = max(int(table["missing"].max()) for table in parts.values())
    if missing:
        yield Fact("runs-missing", level="caution", value=float(missing))
    known = runs.problems().dropna(subset=["serps"])
    most = known.groupby("simulator")["serps"].max()
    for name in most[most < FEWEST_SERPS].index:
        yield Fact("all-prior", str(name), "caution", float(most[name]))


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


def curves(runs: Runs) -> Iterator[Fact]:
    """The policies that have not learned to the end at the horizon."""
    rising = {
        policy: None
        for panel in runs.panels()
        for policy, curve in runs.curves(panel.simulator, track=panel.track).items()
        if parse_call(policy)[0] not in BASELINES and late_slope(curve) >= FLAT
    }
    if rising:
        yield Fact("not-flat", level="caution", value=float(runs.horizon),
                   more={"policies": list(rising)})  # fmt: skip


def eliminated(runs: Runs) -> Iterator[Fact]:
    """Policies that work by elimination and mostly have eliminated nothing."""
    rows = runs.to_pandas()
    rows = rows[(rows["t"] == runs.horizon) & rows["rows_left"].notna()]
    sizes = runs.hardness()[["simulator", "query", "draw", "items", "positions"]]
    rows = rows.merge(sizes, on=["simulator", "query", "draw"])
    whole = (rows["rows_left"] == rows["items"]) & (rows["columns_left"] == rows["positions"])
    for policy, share in whole.groupby(rows["policy"]).mean().items():
        if share >= MOSTLY:
            yield Fact("nothing-eliminated", str(policy), "caution", float(share))


def free_looks(runs: Runs) -> Iterator[Fact]:
    """Policies that begin with an observation of every item that nobody paid for."""
    policies = dict.fromkeys(runs.to_pandas()["policy"])
    if free := [name for name in policies if parse_call(name)[1].get("init") == "sample"]:
        yield Fact("free-looks", level="caution", more={"policies": free})


def in_clicks(runs: Runs) -> Iterator[Fact]:
    """Where another policy earns most in clicks, which a log has, than in satisfaction."""
    for panel, unit in runs.units().items():
        if unit != "satisfaction" or panel.simulator not in runs.simulators:
            continue
        clicks = runs.in_clicks(panel)
        if len(clicks) > 1:
            table = of_panel(runs.summary(), panel)
            if clicks.idxmax() != table["policy"][table["policy"].isin(clicks.index)].iloc[0]:
                yield Fact("other-in-clicks", str(clicks.idxmax()), "caution",
                           more={"simulator": panel.simulator})  # fmt: skip


# -- the table ------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A policy on a simulator, in words."""

    simulator: str
    policy: str
    regret: str
    ratio: str
    groups: str
    alone: bool  # best, and told apart from all others


HEADS = ["policy", "regret [95%]", "to the best", "groups"]


def rows_of(runs: Runs) -> list[Row]:
    """The table of all simulators, each with its best policy first."""
    summary, pairs, found = runs.summary(), runs.compare(), []
    for panel in runs.panels():
        table, mine = of_panel(summary, panel), of_panel(pairs, panel)
        letters_ = groups(competing(table), mine)
        best = next(iter(letters_), None)  # it has the first letter
        for row in table.to_dict("records"):
            name = str(row["policy"])
            regret = with_interval(row["regret"], row["low"], row["high"])
            alone = name == best and sum("a" in one for one in letters_.values()) == 1
            ratio, own = _ratio(best, row, mine, table), letters_.get(name, "")
            found.append(Row(runs.title(panel), name, regret, ratio, own, alone))
    return found


def _ratio(best: str | None, row: Any, pairs: pd.DataFrame, table: pd.DataFrame) -> str:
    """How many times what the best lost: typical of a query, with its interval, or of the means."""
    mine: Any = pairs[(pairs["better"] == best) & (pairs["worse"] == row["policy"])]
    if len(mine) and mine["ratio"].iloc[0] == mine["ratio"].iloc[0]:
        ratio, low, high = mine[["ratio", "ratio_low", "ratio_high"]].iloc[0]
        return f"{number(ratio)} ({interval(low, high)})" if low == low else number(ratio)
    least = table.loc[table["policy"] == best, "regret"]
    if not len(least) or least.iloc[0] <= 0.0 or row["policy"] == best or is_oracle(row["policy"]):
        return ""
    return number(row["regret"] / least.iloc[0])


def groups(summary: pd.DataFrame, pairs: pd.DataFrame) -> dict[str, str]:
    """The letters of the policies of a panel; none where nothing was tested."""
    policies = list(summary["policy"])
    if pairs["p"].isna().all():
        return dict.fromkeys(policies, "")
    clear = pairs[pairs["p"] <= SIGNIFICANCE]
    return letters(policies, zip(clear["better"], clear["worse"], strict=True))


def letters(names: Sequence[str], apart: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Letters that two names share if, and only if, they cannot be told apart.

    Insert and absorb: Piepho, An algorithm for a letter-based representation of all-pairwise
    comparisons (2004).
    """
    sets = [frozenset(names)]
    for a, b in apart:
        both = [one for one in sets if a in one and b in one]
        split = [one - {name} for one in both for name in (a, b)]
        sets = list(dict.fromkeys([one for one in sets if one not in both] + split))
        sets = [one for one in sets if not any(one < other for other in sets)]
    place = {name: i for i, name in enumerate(names)}
    sets.sort(key=lambda one: sorted(place[name] for name in one))
    return {
        name: "".join(_letter(i) for i, one in enumerate(sets) if name in one) for name in names
    }


def _letter(i: int) -> str:
    return chr(ord("a") + i) if i < 26 else f"{_letter(i // 26 - 1)}{_letter(i % 26)}"
