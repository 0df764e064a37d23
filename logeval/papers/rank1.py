"""Katariya et al.: Bernoulli Rank-1 Bandits for Click Feedback (IJCAI 2017).

Figure 1, the needle in a haystack (equation 8): K = L in 32, 64, 128, p = 0.25, gap 0.5, 2 * 10^6
steps, 20 runs. Figures 2 and 3, PBMs of the 20 most frequent queries of a log, 5 runs; Figure 2
shows two of the queries. The paper shows figures and few numbers, so what is checked is what its
text states.

Rank1ElimKL and Rank1Elim run as printed and as in the authors' program, which differs
(``policies.rank1.rank1elim``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from logeval.papers.experiment import Claim, Experiment, OnLog, Part, Synthetic
from logeval.papers.figures import curves
from logeval.papers.measures import Measured, Ratio, Regret
from logeval.papers.outcome import Cell, Outcome
from logeval.reports.figures import legend_below, new_panels
from logeval.reports.regret_figures import draw_curves
from logeval.tracks.rank1_theory import Hardness, rank1_hardness, rank1_upper

HORIZON, RUNS, LOG_RUNS = 2_000_000, 20, 5
SIZES = (32, 64, 128)
KL, ELIM = "Rank1ElimKL", "Rank1Elim"
KL_AUTHORS, ELIM_AUTHORS = (f"{name}(budget=authors,partner=fresh)" for name in (KL, ELIM))
ON_PAIRS = ("UCB1Elim", "UCB1", "KL-UCB", "TS")
POLICIES = (KL, KL_AUTHORS, ELIM, ELIM_AUTHORS, *ON_PAIRS)
PRINTED = (
    "the printed algorithm; the authors' program (the rows that say so) has smaller bounds and a "
    "fresh partner for every row and column"
)
# Rank1ElimKL at n = 2 * 10^6, by an independent implementation
INDEPENDENT = {32: 96_000.0, 64: 191_000.0, 128: 448_000.0}


def problem_name(size: int) -> str:
    """The needle with K = L = size."""
    return f"rank1(K={size},L={size},p=0.25,gap=0.5)"


def _growth(policy: str, size: int) -> Ratio:
    return Ratio(Cell(policy, problem_name(size)), Cell(policy, problem_name(size // 2)))


def _named(policy: str) -> str:
    return f"{policy.partition('(')[0]} as in the authors' program" if "(" in policy else policy


def _facts_1(outcome: Outcome) -> list[str]:
    found = []
    for size in SIZES:
        u = np.full(size, 0.25)
        u[0] = 0.75
        bound, worst = rank1_upper(u, u, outcome.horizon), 0.75**2 * outcome.horizon
        found.append(
            f"K = L = {size}: Theorem 1's bound is {bound:,.3g}"
            + (
                f", more than the {worst:,.3g} that could be lost at all: it says nothing and is "
                "not drawn."
                if bound > worst
                else f"; measured is {outcome.regret(Cell(KL, problem_name(size))).mean():,.3g}."
            )
        )
    return found


FIGURE_1 = Experiment(
    "rank1-1",
    "rank1elimkl",
    "Figure 1",
    "the needle in a haystack, K = L = 32, 64, 128",
    (Part("rank1-1", Synthetic(tuple(problem_name(size) for size in SIZES)), POLICIES),),
    HORIZON,
    RUNS,
    (
        *(
            Claim(
                f"{_named(policy)}: the regret doubles from {size // 2} to {size}",
                "section 5.1",
                _growth(policy, size),
                2.0,
                low=1.6,
                high=2.4,
                reason=PRINTED if policy == KL else "",
            )
            for policy in (KL, KL_AUTHORS)
            for size in SIZES[1:]
        ),
        *(
            Claim(
                f"{policy}: the regret quadruples from {size // 2} to {size}",
                "section 5.1",
                _growth(policy, size),
                4.0,
                low=3.3,
                high=4.7,
                reason="perhaps the horizon ends before it has learned, which would cap the regret",
            )
            for policy in ON_PAIRS
            for size in SIZES[1:]
        ),
        *(
            Claim(
                f"{_named(kl)} is below {_named(elim)}, K = L = {size}",
                "section 5.1",
                Ratio(Cell(kl, problem_name(size)), Cell(elim, problem_name(size))),
                high=1.0,
            )
            for kl, elim in ((KL, ELIM), (KL_AUTHORS, ELIM_AUTHORS))
            for size in SIZES
        ),
        *(
            Claim(
                f"{_named(elim)} has four times the regret of {_named(kl)}, K = L = 32",
                "section 5.1",
                Ratio(Cell(elim, problem_name(32)), Cell(kl, problem_name(32))),
                4.0,
                low=3.0,
                high=5.0,
                reason="Figure 1a is read off; nothing more is printed",
            )
            for kl, elim in ((KL, ELIM), (KL_AUTHORS, ELIM_AUTHORS))
        ),
        *(
            Claim(
                f"{policy} is below {_named(kl)} for K = L = 32",
                "section 5.1",
                Ratio(Cell(policy, problem_name(32)), Cell(kl, problem_name(32))),
                high=1.0,
            )
            for kl in (KL, KL_AUTHORS)
            for policy in ("KL-UCB", "TS")
        ),
        *(
            Claim(
                f"{_named(kl)} is below {policy} for K = L = 128",
                "section 5.1",
                Ratio(Cell(kl, problem_name(128)), Cell(policy, problem_name(128))),
                high=1.0,
                reason=PRINTED if kl == KL else "",
            )
            for kl in (KL, KL_AUTHORS)
            for policy in ("KL-UCB", "TS", "UCB1", "UCB1Elim")
        ),
        *(
            Claim(
                f"Rank1ElimKL, K = L = {size}",
                "n = 2,000,000",
                Regret(Cell(KL, problem_name(size))),
                value,
                0.02 * value,
                source="independent implementation, its error taken as 2%",
            )
            for size, value in INDEPENDENT.items()
        ),
    ),
    seconds=1800,
    figure=curves(titles={problem_name(size): f"K = L = {size}" for size in SIZES}),
    facts=_facts_1,
)

# PyClick's way: its counts, 50 iterations, the scale between w and e left as EM ends
RAW = OnLog("PBM", 20, {"smoothing": "pyclick", "iterations": 50})
MODELS = (
    Part("rank1-3", OnLog("PBM", 20), POLICIES),
    Part("rank1-3-raw", RAW),
)


def hardnesses(outcome: Outcome, part: str) -> dict[str, Hardness]:
    """mu, p_max and gamma of every query."""
    return {f.query: rank1_hardness(f.model.w, f.model.e) for f in outcome.models[part]}


def two_queries(outcome: Outcome) -> tuple[str, str]:
    """Query 1 with the smallest, Query 2 with the largest mu gamma on the paper's scale.

    The bound of Theorem 1 falls with this product; the regrets play no part in the choice.
    """
    hard = hardnesses(outcome, "rank1-3-raw")
    order = sorted(hard, key=lambda query: hard[query].mu * hard[query].gamma)
    return order[0], order[-1]


@dataclass(frozen=True)
class OnQuery:
    """A ratio of two policies on Query 1 or 2."""

    which: int
    a: str
    b: str

    def __call__(self, outcome: Outcome) -> Measured:
        """At the horizon."""
        query = two_queries(outcome)[self.which - 1]
        return Ratio(
            Cell(self.a, part="rank1-3", query=query), Cell(self.b, part="rank1-3", query=query)
        )(outcome)


def _facts_2(outcome: Outcome) -> list[str]:
    ours, raw = hardnesses(outcome, "rank1-3"), hardnesses(outcome, "rank1-3-raw")
    published = {1: "mu .13, p_max .85, gamma .15", 2: "mu .28, p_max .66, gamma .34"}
    sizes = {f.query: len(f.model.w) for f in outcome.models["rank1-3"]}
    found = []
    for i, query in enumerate(two_queries(outcome), 1):
        a, b = raw[query], ours[query]
        found.append(
            f"Query {i} is {query}, L = {sizes[query]}: on the scale that EM ends with, as in the "
            f"paper, mu {a.mu:.2f}, p_max {a.p_max:.2f}, gamma {a.gamma:.2f} (the paper's: "
            f"{published[i]}); with max e = 1 it is mu {b.mu:.2f}, p_max {b.p_max:.2f}, gamma "
            f"{b.gamma:.2f}. The regret does not depend on the scale."
        )
    bounds = [rank1_upper(f.model.w, f.model.e, outcome.horizon) for f in outcome.models["rank1-3"]]
    found.append(
        f"Theorem 1's bound is at least {min(bounds):,.3g} on these queries, and "
        f"{outcome.horizon:,} steps cannot lose more than that many clicks: "
        + ("it says nothing." if min(bounds) > outcome.horizon else "it says something for some.")
    )
    return found


def draw_2(outcome: Outcome) -> Any:
    """Sorted attraction and examination of both queries, and the regrets on them."""
    figure, axes = new_panels(4)
    models = {f.query: f.model for f in outcome.models["rank1-3"]}
    queries = two_queries(outcome)
    for i, query in enumerate(queries, 1):
        for ax, x in zip(axes[:2], (models[query].w, models[query].e), strict=True):
            ax.plot(np.arange(1, len(x) + 1), np.sort(x)[::-1], ".-", label=f"Query {i} ({query})")
        runs = outcome.part("rank1-3")
        (panel,) = runs.panels()
        draw_curves(axes[1 + i], runs.curves(panel.simulator, query, panel.track))
        axes[1 + i].set(xlabel="step t", ylabel="cumulative regret", title=f"Query {i}")
        legend_below(axes[1 + i])
    axes[0].set(xlabel="item, sorted", ylabel="attraction")
    axes[1].set(xlabel="position, sorted", ylabel="examination")
    for ax in axes[:2]:
        ax.spines[["top", "right"]].set_visible(False)
        legend_below(ax)
    return figure


FIGURE_2 = Experiment(
    "rank1-2",
    "rank1elimkl",
    "Figure 2",
    "PBMs of two queries that differ in mu and p_max, and the regret on them",
    MODELS,
    HORIZON,
    LOG_RUNS,
    (
        *(
            Claim(
                f"Query {i}: {other} is below {_named(kl)}",
                "section 5.2",
                OnQuery(i, other, kl),
                high=1.0,
            )
            for kl in (KL, KL_AUTHORS)
            for i in (1, 2)
            for other in ("KL-UCB", "TS")
        ),
        *(
            Claim(
                f"Query {i}: {_named(kl)} is below {_named(other)}",
                "section 5.2",
                OnQuery(i, kl, other),
                high=1.0,
                reason=PRINTED if kl == KL else "",
            )
            for kl, elim in ((KL, ELIM), (KL_AUTHORS, ELIM_AUTHORS))
            for i in (1, 2)
            for other in (elim, "UCB1Elim")
        ),
        *(
            Claim(
                f"Query {i}: {_named(kl)} is {said} UCB1",
                "section 5.2",
                OnQuery(i, kl, "UCB1"),
                high=limit,
                reason=PRINTED if kl == KL else "another log",
            )
            for kl in (KL, KL_AUTHORS)
            for i, said, limit in ((1, "no worse than", 1.05), (2, "better than", 1.0))
        ),
    ),
    seconds=1000,
    figure=draw_2,
    facts=_facts_2,
)


def _on_log(a: str, b: str) -> Ratio:
    return Ratio(Cell(a, part="rank1-3"), Cell(b, part="rank1-3"))


def _facts_3(outcome: Outcome) -> list[str]:
    ours, raw = hardnesses(outcome, "rank1-3"), hardnesses(outcome, "rank1-3-raw")
    small = sum(len(f.model.w) < 200 for f in outcome.models["rank1-3"])
    a, b = ([h.p_max for h in found.values()] for found in (raw, ours))
    return [
        f"{small} of {len(ours)} queries have L < 200 (the paper: 14 of 20).",
        f"p_max is {min(a):.2f} to {max(a):.2f} on the scale that EM ends with, and {min(b):.2f} "
        f"to {max(b):.2f} with max e = 1.",
    ]


FIGURE_3 = Experiment(
    "rank1-3",
    "rank1elimkl",
    "Figure 3",
    "average regret on the PBMs of 20 queries",
    MODELS,
    HORIZON,
    LOG_RUNS,
    (
        *(
            Claim(
                f"{_named(kl)} over UCB1 (10.9% below)",
                "section 5.2",
                _on_log(kl, "UCB1"),
                0.891,
                low=0.8,
                high=1.0,
                reason=PRINTED if kl == KL else "another log",
            )
            for kl in (KL, KL_AUTHORS)
        ),
        *(
            Claim(
                f"{_named(kl)} over {_named(elim)} (79% below)",
                "section 5.2",
                _on_log(kl, elim),
                0.21,
                low=0.0,
                high=0.3,
                reason="another log; perhaps how often nothing is eliminated decides it",
            )
            for kl, elim in ((KL, ELIM), (KL_AUTHORS, ELIM_AUTHORS))
        ),
        *(
            Claim(
                f"{policy} is below {_named(kl)}",
                "section 5.2",
                _on_log(policy, kl),
                high=1.0,
            )
            for kl in (KL, KL_AUTHORS)
            for policy in ("KL-UCB", "TS")
        ),
        *(
            Claim(
                f"{_named(kl)} is below UCB1Elim", "section 5.2", _on_log(kl, "UCB1Elim"), high=1.0
            )
            for kl in (KL, KL_AUTHORS)
        ),
    ),
    seconds=1000,
    figure=curves(("rank1-3",)),
    facts=_facts_3,
)

EXPERIMENTS = (FIGURE_1, FIGURE_3, FIGURE_2)
