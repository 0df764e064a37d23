"""Can the simulators be believed? What the tool's own checks say of them, before anything else.

Four things are asked of every simulator that was fitted to a log: do its users click like those of
the log (``check-models``), do they click as often on today's lists, were its parameters taken as
exact, and does it rest on enough SERPs. A verdict on simulators that fail any of them is not sound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.summary import is_oracle
from logeval.running.names import parse_call
from logeval.running.words import UNITS, interval, joined, number

THIN = 300  # SERPs of a query; with fewer, its best list was 15% too good (docs/evidence.md)
FALSE_ALARMS = 0.05  # of all queries of a simulator together


def trust(runs: Runs) -> list[str]:
    """One sentence for each reason to believe, or not to believe, the simulators."""
    if not runs.simulators:  # synthetic users are what they are
        return []
    known = runs.simulators
    found = [*_checks(runs), *_todays_lists(runs), *_fits(runs), *_exact(known), *_thin(runs)]
    return [*found, *_unsure(known), *_clicks(runs)]


def doubts(runs: Runs, among: Collection[str] | None = None) -> list[str]:
    """The reasons not to believe them, or some ``among`` them."""
    known = {n: about for n, about in runs.simulators.items() if among is None or n in among}
    if not known:
        return []
    faulted = list(known.keys() - unfaulted(runs))
    return [*faulted, *_exact(known), *_thin(runs), *_unsure(known)]


def unfaulted(runs: Runs) -> set[str]:
    """The simulators that no check faults on SERPs kept apart, nor today's lists."""
    off = todays_lists(runs)
    wrong = set() if off.empty else set(off[off["faulted"]]["simulator"])
    return {
        name
        for name, about in runs.simulators.items()
        if faults(about) == 0 and about["checks"]["held_out"] and name not in wrong
    }


# -- the checks of the models -----------------------------------------------------------------


def faults(about: dict[str, Any]) -> int | None:
    """How many checks fault a simulator; None if nobody checked it, or nothing could be judged."""
    checks = about.get("checks")
    return len(checks["faulted"]) if checks and checks["judged"] else None


def _checks(runs: Runs) -> list[str]:
    asked = {name: about["checks"] for name, about in runs.simulators.items() if about["checks"]}
    known = {name: checks for name, checks in asked.items() if checks["judged"]}
    unknown = [name for name in runs.simulators if name not in asked]
    wrong = {name: checks for name, checks in known.items() if checks["faulted"]}
    found = []
    if wrong:
        texts = [
            f"{_fits_of(model, fits)} by {_range([len(wrong[fit]['faulted']) for fit in fits])} of "
            f"{wrong[fits[0]]['judged']} ({wrong[fits[0]]['faults'][0]})"
            for model, fits in by_model(wrong).items()
        ]
        right = [_fits_of(*each) for each in by_model(set(known) - set(wrong)).items()]
        fine = f", and {joined(right)} by none" if right else ""
        trusted = "and trust what holds on all simulators more than what holds on one"
        if right:
            trusted = f"and go by {joined(right)}"
        elif not any("classes=" in name or "drift" in wrong[name]["faulted"] for name in known):
            trusted += "; users who differ (fit-models --classes auto) may click more like them"
        found.append(
            f"{'Not all' if right else 'No'}: the checks against the log fault {'; '.join(texts)}"
            f"{fine}. Such users are not yours: expect other numbers in traffic, {trusted}"
        )
    elif known:
        serps = min(checks["serps"] for checks in known.values())
        judged = min(checks["judged"] for checks in known.values())
        found.append(
            f"The checks against the log fault none of them ({judged} checks on {serps:,} SERPs)"
        )
    if known and not all(checks["held_out"] for checks in known.values()):
        found.append(
            "The checks used SERPs that the models were fitted to, which is lenient; fit with "
            "--holdout 0.1"
        )
    if none := [name for name in asked if name not in known]:
        found.append(f"{joined(none)}: too few clicks to check anything")
    if unknown:
        found.append(f"{joined(unknown)}: not checked against a log; logeval check-models does it")
    return found


def by_model(names: Iterable[str]) -> dict[str, list[str]]:
    """The fits of each model, DCM and DCM(scope=pooled), by the model."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(parse_call(name)[0], []).append(name)
    return found


def _fits_of(model: str, fits: list[str]) -> str:
    return fits[0] if len(fits) == 1 else f"{len(fits)} fits of {model}"


def _range(numbers: list[int]) -> str:
    return " to ".join(dict.fromkeys(map(str, (min(numbers), max(numbers)))))


# -- what the log knows: clicks on its own lists ----------------------------------------------


def todays_lists(runs: Runs) -> pd.DataFrame:
    """Clicks per search on today's lists, in the simulators and in the log, query by query.

    ``faulted`` is where they differ by more than chance, at 5% for all queries of a simulator
    together; chance is that of the logged clicks and of the draws of the parameters.
    """
    table = runs.problems()
    table = table[(table["track"] == "ranking") & table["log_clicks"].notna()]
    rows = []
    for (simulator, query), part in table.groupby(["simulator", "query"], sort=False):
        spread = part["ranker_clicks"].std(ddof=1) if len(part) > 1 else 0.0
        rows.append(
            {
                "simulator": simulator,
                "query": query,
                "serps": part["serps"].iloc[0],
                "log": part["log_clicks"].iloc[0],
                "log_error": part["log_clicks_error"].iloc[0],
                "simulated": part["ranker_clicks"].mean(),
                "simulated_error": spread,
            }
        )
    found = pd.DataFrame(rows)
    if found.empty:
        return found
    error = np.hypot(found["log_error"].to_numpy(), found["simulated_error"].to_numpy())
    with np.errstate(divide="ignore", invalid="ignore"):
        found["z"] = (found["simulated"] - found["log"]) / np.where(error > 0, error, np.nan)
    many = found.groupby("simulator")["query"].transform("count")
    critical = -ndtri(FALSE_ALARMS / 2 / many)
    return found.assign(faulted=(found["z"].abs() > critical).fillna(False))


def _todays_lists(runs: Runs) -> list[str]:
    table = todays_lists(runs)
    if table.empty:
        return []
    wrong, names = [], runs.names.titles(table["query"].unique())
    for simulator, part in table.groupby("simulator", sort=False):
        bad = part[part["faulted"]]
        if len(bad):
            worst = bad.iloc[int(bad["z"].abs().to_numpy().argmax())]
            wrong.append(
                f"{simulator} in {len(bad)} of {len(part)} queries (query {names[worst['query']]}: "
                f"{number(worst['simulated'])} clicks per search in simulation, "
                f"{number(worst['log'])} in the log)"
            )
    if wrong:
        return [
            "On today's lists, which the log knows best, the users of some simulators click more "
            f"or less often than chance allows: {'; '.join(wrong)}"
        ]
    simulators = table["simulator"].unique().tolist()
    users = joined([_fits_of(*each) for each in by_model(simulators).items()])
    return [f"On today's lists the users of {users} click as often as the log, within chance"]


# -- what the simulators rest on --------------------------------------------------------------


def _exact(simulators: Mapping[str, Any]) -> list[str]:
    exact = [name for name, about in simulators.items() if not about["draws"]]
    if not exact:
        return []
    by_period = any(simulators[name].get("periods", 1) > 1 for name in exact)
    remedy = (
        "models by period have no draws, so by how much is not known; without --drift, --draws 8 "
        "includes what the log leaves open"
        if by_period
        else "--draws 8 includes what the log leaves open"
    )
    return [
        f"The parameters of {joined(exact)} were taken as exact, which they are not: intervals are "
        "too narrow (those of a query's break-even held in 34 to 46% of cases, not in 95%), and "
        f"regret may be too small; {remedy}"
    ]


def longer_log(runs: Runs) -> bool:
    """Whether most queries rest on too few SERPs: then a longer log is what could say more."""
    table = runs.problems().dropna(subset=["serps"]).drop_duplicates("query")
    return bool((table["serps"] < THIN).mean() > 0.5)


def _thin(runs: Runs) -> list[str]:
    table = runs.problems().dropna(subset=["serps"]).drop_duplicates(["simulator", "query"])
    thin = table[table["serps"] < THIN].drop_duplicates("query")
    if thin.empty:
        return []
    many = table["query"].nunique()
    per_item = float((table["serps"] * table["positions"] / table["items"]).median())
    return [
        f"{len(thin)} of {many} queries have fewer than {THIN} SERPs (the fewest "
        f"{thin['serps'].min():,.0f}; in the median query an item was shown {per_item:,.0f} times):"
        " their best lists come out too good, by 15% at 300 SERPs in simulations; --queries leaves "
        "them out"
    ]


def _unsure(simulators: Mapping[str, Any]) -> list[str]:
    """Queries whose parameters rest on the prior, by simulator."""
    known = {name: about.get("identified") for name, about in simulators.items()}
    lost = {name: one for name, one in known.items() if one and one["not_carried"]}
    few = [
        f"{_fits_of(model, fits)} in {_range([len(lost[fit]['not_carried']) for fit in fits])} of "
        f"{lost[fits[0]]['queries']} queries"
        for model, fits in by_model(lost).items()
    ]
    if not few:
        return []
    return [
        f"The clicks cannot tell attraction from examination, or are too few, for {joined(few)}: "
        "what these queries say rests on what was assumed before any click (the prior); "
        f"--identified leaves them out, and docs/support.md says which models need less"
    ]


# -- what the clicks do not decide ------------------------------------------------------------


def _fits(runs: Runs) -> list[str]:
    """What fits of one model that predict equally well disagree about."""
    table = runs.problems()
    table = table[table["track"] == "ranking"]
    alike: dict[tuple[str, str], list[str]] = {}  # with other classes a fit predicts better
    for name in runs.simulators:
        model, options = parse_call(name)
        alike.setdefault((model, str(options.get("classes"))), []).append(name)
    values, names = [], []
    for (model, _), fits in alike.items():
        if len(fits) == 1:
            continue
        mine = table[table["simulator"].isin(fits)]
        if mine.empty:
            continue
        best = mine.groupby(["simulator", "query"])["best"].mean().groupby("simulator").mean()
        unit = UNITS[mine["reward"].iloc[0]]
        values.append(f"{interval(best.min(), best.max())} {unit} ({len(fits)} fits of {model})")
        names += fits
    if not values:
        return []
    lost = runs.summary()
    lost = lost[(lost["track"] == "ranking") & ~lost["policy"].map(is_oracle)]
    least = lost[lost["simulator"].isin(names)].drop_duplicates("simulator")["policy"]
    leaders = list(dict.fromkeys(least))
    agree = f"{leaders[0]} loses least on all of them"
    if len(leaders) > 1:
        agree = f"which policy loses least depends on the fit ({joined(leaders, 'or')})"
    return [
        f"Fits that predict held-out SERPs equally well put the best list at {joined(values)} per "
        f"search: the clicks do not decide this; {agree}"
    ]


# -- clicks beside satisfaction ---------------------------------------------------------------


def _clicks(runs: Runs) -> list[str]:
    """Whether clicks, which the log sees, put the policies in the same order as satisfaction."""
    same: dict[str, tuple[float, float]] = {}
    other = []
    for panel, unit in runs.units().items():
        if unit != "satisfaction" or panel.simulator not in runs.simulators:
            continue
        table = runs.in_clicks(panel)
        if len(table) < 2:
            continue
        clicks = table.set_index("policy")["clicks"]
        by_reward, by_clicks = str(clicks.index[0]), str(clicks.idxmax())
        ranker = float(table["ranker"].iloc[0])
        if by_clicks == by_reward:
            same[panel.simulator] = float(clicks[by_clicks]), ranker
        else:
            beside = f", today's ranker {number(ranker)}" if ranker == ranker else ""
            other.append(
                f"{by_clicks} ({panel.simulator}: {number(clicks[by_clicks])} per search{beside}, "
                f"{by_reward} {number(clicks[by_reward])})"
            )
    if not same and not other:
        return []
    numbers = []
    for model, fits in by_model(same).items():
        here, today = (_ends([same[fit][i] for fit in fits]) for i in (0, 1))
        beside = f", today's ranker {today}" if today else ""
        numbers.append(f"{_fits_of(model, fits)}: {here} per search{beside}")
    texts = [f"the same policy earns most ({'; '.join(numbers)})"] if same else []
    texts += [f"another does: {joined(other)}"] if other else []
    return [f"A log does not show satisfaction. In clicks, which it does, {'; '.join(texts)}"]


def _ends(values: list[float]) -> str:
    """The smallest and the largest; nothing where they are not known."""
    if any(value != value for value in values):
        return ""
    return " to ".join(dict.fromkeys(map(number, (min(values), max(values)))))
