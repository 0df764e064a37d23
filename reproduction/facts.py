"""What else an experiment found, in sentences with numbers of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from logeval.tracks.rank1 import rank1_upper
from reproduction.measures import hardnesses, over, parameters, two_queries, with_error
from reproduction.run import Outcome
from reproduction.theorems import dcm_upper
from reproduction.verdicts import together


def facts_of(outcome: Outcome) -> list[str]:
    """The joint test of many numbers, and what else is known or was found."""
    experiment, all_numbers = outcome.experiment, together(outcome.judged)
    found = [] if all_numbers is None else [str(all_numbers)]
    if outcome.refused:
        return found
    more = FOUND[experiment.found](outcome) if experiment.found else []
    return [*found, *experiment.facts, *more]


def changing(outcome: Outcome) -> list[str]:
    """What is only recalled, and what a new start costs."""
    still, passive = ("CascadeUCB1", "CascadeKL-UCB"), ("CascadeSWUCB", "CascadeDUCB")
    changing, constant = outcome.experiment.parts
    period = 1.0 / (int(parameters(changing.problems[0])["changes"]) + 1)
    ratios = [
        f"{a} over {b} {with_error(*over(outcome, a, b)[:2])}" for a in passive for b in still
    ]
    starts = [
        f"{policy} loses {outcome.regret(policy).mean() * period:,.0f} clicks a period, and "
        f"{outcome.regret(f'{policy} @ {constant.name}', period).mean():,.0f} in its first, "
        "when it knows nothing"
        for policy in still
    ]
    return [
        "Recalled of the figures of Li, de Rijke, and so not judged: window and discount are below "
        f"who forgets nothing. Here: {', '.join(ratios)}.",
        f"What a new start is worth: {'; '.join(starts)}. Starting again pays where the second "
        "is less.",
    ]


def dcm_3c(outcome: Outcome) -> list[str]:
    """The share of the constant in each fit, and Theorem 2's bound."""
    found = []
    for part in outcome.experiment.parts:
        if (constant := "Oracle(order=assumed)") in part.policies:
            share = over(outcome, f"{constant} @ {part.name}", f"dcmKL-UCB @ {part.name}").value
            found.append(
                f"{part.title[0].upper()}{part.title[1:]}: the best list in the assumed order "
                f"({constant}) has {share:.0%} of the regret of dcmKL-UCB: no policy that assumes "
                "this order avoids it."
            )
    with np.errstate(divide="ignore"):
        bounds = [_theorem_2(m, outcome.horizon) for m in outcome.models["dcm-3c-guo"].values()]
    return [
        *found,
        f"Theorem 2's bound is at least {min(bounds):,.3g} on these queries, and a run of "
        f"{outcome.horizon:,} steps cannot lose more than {outcome.horizon:,}: it says nothing "
        "here and is not drawn."
        if min(bounds) > outcome.horizon
        else f"Theorem 2's bound is {min(bounds):,.3g} on the query where it is smallest.",
    ]


def _theorem_2(model: Any, n: int) -> float:
    w = np.sort(model.w)[::-1]
    if (np.diff(w[: len(model.v) + 1]) >= 0).any():
        return float("inf")  # it needs different attractions
    return dcm_upper(model.w, model.v, n)


def rank1_1(outcome: Outcome) -> list[str]:
    found = []
    for problem in outcome.experiment.parts[0].problems:
        size = int(parameters(problem)["K"])
        u = np.full(size, 0.25)
        u[0] = 0.75
        bound, worst = rank1_upper(u, u, outcome.horizon), 0.75**2 * outcome.horizon
        found.append(
            f"K = L = {size}: Theorem 1's bound is {bound:,.3g}"
            + (
                f", more than the {worst:,.3g} that could be lost at all: it says nothing and is "
                "not drawn."
                if bound > worst
                else f"; measured is {outcome.regret(f'Rank1ElimKL @ {problem}').mean():,.3g}."
            )
        )
    return found


def rank1_2(outcome: Outcome) -> list[str]:
    """Which queries were taken, and Theorem 1's bound."""
    ours, raw = hardnesses(outcome, "rank1-3"), hardnesses(outcome, "rank1-3-raw")
    published = "mu .13, p_max .85, gamma .15", "mu .28, p_max .66, gamma .34"
    models = outcome.models["rank1-3"]
    found = []
    for i, query in enumerate(two_queries(outcome), 1):
        a, b = raw[query], ours[query]
        found.append(
            f"Query {i} is {query}, L = {len(models[query].w)}: on the scale that EM ends with, as "
            f"in the paper, mu {a.mu:.2f}, p_max {a.p_max:.2f}, gamma {a.gamma:.2f} (the paper's: "
            f"{published[i - 1]}); with max e = 1 it is mu {b.mu:.2f}, p_max {b.p_max:.2f}, gamma "
            f"{b.gamma:.2f}. The regret does not depend on the scale."
        )
    bounds = [rank1_upper(model.w, model.e, outcome.horizon) for model in models.values()]
    found.append(
        f"Theorem 1's bound is at least {min(bounds):,.3g} on these queries, and "
        f"{outcome.horizon:,} steps cannot lose more than that many clicks: "
        + ("it says nothing." if min(bounds) > outcome.horizon else "it says something for some.")
    )
    return found


def rank1_3(outcome: Outcome) -> list[str]:
    ours, raw = hardnesses(outcome, "rank1-3"), hardnesses(outcome, "rank1-3-raw")
    small = sum(len(model.w) < 200 for model in outcome.models["rank1-3"].values())
    a, b = ([h.p_max for h in found.values()] for found in (raw, ours))
    return [
        f"{small} of {len(ours)} queries have L < 200 (the paper: 14 of 20).",
        f"p_max is {min(a):.2f} to {max(a):.2f} on the scale that EM ends with, and {min(b):.2f} "
        f"to {max(b):.2f} with max e = 1.",
    ]


FOUND: Mapping[str, Callable[[Outcome], list[str]]] = {
    function.__name__: function for function in (changing, dcm_3c, rank1_1, rank1_2, rank1_3)
}
