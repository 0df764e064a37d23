"""Katariya et al.: Bernoulli Rank-1 Bandits for Click Feedback (IJCAI 2017): Figures 2 and 3.

PBMs of the 20 most frequent queries of a log, 5 runs; Figure 2 shows two of the queries. As in
``rank1``, the algorithms have the verdicts as they are printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from logeval.papers.experiment import Cell, Claim, Experiment, OnLog, Part
from logeval.papers.figures import curves
from logeval.papers.measures import Measured, Ratio
from logeval.papers.outcome import Outcome
from logeval.papers.rank1 import (
    ELIM,
    ELIM_AUTHORS,
    HORIZON,
    KL,
    KL_AUTHORS,
    POLICIES,
    PRINTED,
    authors,
)
from logeval.reports.figures.canvas import legend_below, new_panels
from logeval.reports.figures.regret import draw_curves
from logeval.tracks.rank1_theory import Hardness, rank1_hardness, rank1_upper

RUNS = 5

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


def second_over_first(policy: str) -> Any:
    """The regret of a policy on Query 2 over that on Query 1, whose users are others."""

    def measure(outcome: Outcome) -> Measured:
        first, second = (Cell(policy, part="rank1-3", query=q) for q in two_queries(outcome))
        return Ratio(second, first)(outcome)

    return measure


def _below(a: tuple[str, ...], b: tuple[str, ...], queries: tuple[int, ...] = (1, 2)) -> Any:
    """Each of a over each of b on the queries, by name."""
    return {
        f"Query {i}, {x.partition('(')[0]} over {y.partition('(')[0]}": OnQuery(i, x, y)
        for i in queries
        for x in a
        for y in b
    }


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
    RUNS,
    (
        Claim(
            "KL-UCB and TS are below Rank1ElimKL on both queries",
            "section 5.2",
            _below(("KL-UCB", "TS"), (KL,)),
            high=1.0,
            variants=authors(_below(("KL-UCB", "TS"), (KL_AUTHORS,))),
        ),
        Claim(
            "Query 1: Rank1ElimKL is below Rank1Elim and UCB1Elim",
            "section 5.2",
            _below((KL,), (ELIM, "UCB1Elim"), (1,)),
            high=1.0,
            reason=PRINTED,
            variants=authors(_below((KL_AUTHORS,), (ELIM_AUTHORS, "UCB1Elim"), (1,))),
        ),
        Claim(
            "Query 1: Rank1ElimKL is no worse than UCB1 (5% are allowed)",
            "section 5.2",
            OnQuery(1, KL, "UCB1"),
            high=1.05,
            reason=PRINTED,
            variants=authors(OnQuery(1, KL_AUTHORS, "UCB1")),
        ),
        Claim(
            "Query 2: Rank1ElimKL is below Rank1Elim, UCB1Elim and UCB1",
            "section 5.2",
            _below((KL,), (ELIM, "UCB1Elim", "UCB1"), (2,)),
            high=1.0,
            reason=PRINTED,
            variants=authors(_below((KL_AUTHORS,), (ELIM_AUTHORS, "UCB1Elim", "UCB1"), (2,))),
        ),
        Claim(
            "Rank1ElimKL has less regret on Query 2 than on Query 1, of larger 1 / (mu gamma)",
            "section 5.2",
            second_over_first(KL),
            high=1.0,
            reason="another log: the bound also has gaps in it, and says nothing at this horizon",
            variants=authors(second_over_first(KL_AUTHORS)),
        ),
    ),
    seconds=1000,
    figure=draw_2,
    facts=_facts_2,
)


def _on_log(a: str, b: str) -> Ratio:
    return Ratio(Cell(a, part="rank1-3"), Cell(b, part="rank1-3"))


def follows_the_bound(policy: str) -> Any:
    """Spearman's correlation of regret and 1 / (mu gamma) over the queries, as in Theorem 1.

    Its standard error is that of unrelated ranks, 1 / sqrt(queries - 1).
    """

    def measure(outcome: Outcome) -> Measured:
        hard = hardnesses(outcome, "rank1-3-raw")
        regrets = [
            outcome.regret(Cell(policy, part="rank1-3", query=query)).mean() for query in hard
        ]
        found = spearmanr(regrets, [1.0 / (h.mu * h.gamma) for h in hard.values()])
        return Measured(float(found.statistic), 1.0 / np.sqrt(len(hard) - 1))

    return measure


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
    RUNS,
    (
        Claim(
            "Rank1ElimKL has the least regret but for KL-UCB and TS",
            "section 5.2",
            {other: _on_log(KL, other) for other in (ELIM, "UCB1Elim", "UCB1")},
            high=1.0,
            reason=PRINTED,
            variants=authors(
                {o: _on_log(KL_AUTHORS, o) for o in (ELIM_AUTHORS, "UCB1Elim", "UCB1")}
            ),
        ),
        Claim(
            "it is 10.9% below UCB1",
            "section 5.2",
            _on_log(KL, "UCB1"),
            0.891,
            low=0.8,
            high=1.0,
            reason=PRINTED,
            variants=authors(_on_log(KL_AUTHORS, "UCB1")),
        ),
        Claim(
            "it is 79% below Rank1Elim",
            "section 5.2",
            _on_log(KL, ELIM),
            0.21,
            high=0.3,
            reason="another log; perhaps how often nothing is eliminated decides it",
            variants=authors(_on_log(KL_AUTHORS, ELIM_AUTHORS)),
        ),
        Claim(
            "KL-UCB and TS are below Rank1ElimKL",
            "section 5.2",
            {policy: _on_log(policy, KL) for policy in ("KL-UCB", "TS")},
            high=1.0,
            variants=authors({policy: _on_log(policy, KL_AUTHORS) for policy in ("KL-UCB", "TS")}),
        ),
        Claim(
            "the regret of Rank1ElimKL grows with 1 / (mu gamma) (rank correlation over queries)",
            "section 5.2",
            follows_the_bound(KL),
            low=0.0,
            reason="another log: the gaps, of which the bound also has the inverse, differ too",
            variants=authors(follows_the_bound(KL_AUTHORS)),
        ),
    ),
    seconds=1000,
    figure=curves(("rank1-3",)),
    facts=_facts_3,
)

EXPERIMENTS = (FIGURE_3, FIGURE_2)
