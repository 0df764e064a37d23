"""Katariya et al.: Bernoulli Rank-1 Bandits for Click Feedback (IJCAI 2017): Figures 2 and 3.

PBMs of the 20 most frequent queries of a log, 5 runs; Figure 2 shows two of the queries. As in
``rank1``, the algorithms have the verdicts as they are printed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from logeval.papers.rank1 import HORIZON, POLICIES, PRINTED, claim
from logeval.papers.shared.experiment import Cell, Experiment, OnLog, Part, factor
from logeval.papers.shared.figures import curves
from logeval.papers.shared.measures import Measure, Measured, measure, over
from logeval.papers.shared.outcome import Outcome
from logeval.reports.figures.canvas import legend_below, new_panels
from logeval.reports.figures.regret import draw_curves
from logeval.tracks.rank1 import Hardness, rank1_hardness, rank1_upper

RUNS = 5

# PyClick's way: its counts, 50 iterations, the scale between w and e left as EM ends
RAW = OnLog("PBM", 20, {"smoothing": "pyclick", "iterations": 50})
MODELS = (
    Part("rank1-3", OnLog("PBM", 20), POLICIES),
    Part("rank1-3-raw", RAW),
)


def hardnesses(outcome: Outcome, part: str) -> dict[str, Hardness]:
    """mu, p_max and gamma of every query."""
    return {query: rank1_hardness(m.w, m.e) for query, m in outcome.models[part].items()}


def two_queries(outcome: Outcome) -> tuple[str, str]:
    """Query 1 with the smallest, Query 2 with the largest mu gamma on the paper's scale.

    The bound of Theorem 1 falls with this product; the regrets play no part in the choice.
    """
    hard = hardnesses(outcome, "rank1-3-raw")
    order = sorted(hard, key=lambda query: hard[query].mu * hard[query].gamma)
    return order[0], order[-1]


@measure
def _over(outcome: Outcome, a: str, b: str, which: tuple[int, int]) -> Measured:
    """The regret of a over that of b, each on Query 1 or 2."""
    queries = [two_queries(outcome)[i - 1] for i in which]
    return over(*map(_cell, (a, b), queries))(outcome)


def _cell(policy: str, query: str | None = None) -> Cell:
    return Cell(policy, part="rank1-3", query=query)


def _below(a: tuple[str, ...], b: tuple[str, ...], queries: tuple[int, ...] = (1, 2)) -> Any:
    """Each of a over each of b on the queries, by name."""
    return {
        f"Query {i}, {x.partition('(')[0]} over {y.partition('(')[0]}": _over(x, y, (i, i))
        for i in queries
        for x in a
        for y in b
    }


def _facts_2(outcome: Outcome) -> list[str]:
    ours, raw = hardnesses(outcome, "rank1-3"), hardnesses(outcome, "rank1-3-raw")
    published = {1: "mu .13, p_max .85, gamma .15", 2: "mu .28, p_max .66, gamma .34"}
    models = outcome.models["rank1-3"]
    found = []
    for i, query in enumerate(two_queries(outcome), 1):
        a, b = raw[query], ours[query]
        found.append(
            f"Query {i} is {query}, L = {len(models[query].w)}: on the scale that EM ends with, as "
            f"in the paper, mu {a.mu:.2f}, p_max {a.p_max:.2f}, gamma {a.gamma:.2f} (the paper's: "
            f"{published[i]}); with max e = 1 it is mu {b.mu:.2f}, p_max {b.p_max:.2f}, gamma "
            f"{b.gamma:.2f}. The regret does not depend on the scale."
        )
    bounds = [rank1_upper(model.w, model.e, outcome.horizon) for model in models.values()]
    found.append(
        f"Theorem 1's bound is at least {min(bounds):,.3g} on these queries, and "
        f"{outcome.horizon:,} steps cannot lose more than that many clicks: "
        + ("it says nothing." if min(bounds) > outcome.horizon else "it says something for some.")
    )
    return found


def draw_2(outcome: Outcome) -> Any:
    """Sorted attraction and examination of both queries, and the regrets on them."""
    figure, axes = new_panels(4)
    models = outcome.models["rank1-3"]
    queries = two_queries(outcome)
    for i, query in enumerate(queries, 1):
        for ax, x in zip(axes[:2], (models[query].w, models[query].e), strict=True):
            ax.plot(np.arange(1, len(x) + 1), np.sort(x)[::-1], ".-", label=f"Query {i} ({query})")
        runs = outcome.part("rank1-3")
        (panel,) = runs.panels()
        draw_curves(axes[1 + i], runs.curves(panel.simulator, query, panel.track))
        axes[1 + i].set(ylabel="cumulative regret", title=f"Query {i}")
        legend_below(axes[1 + i])
    axes[0].set(xlabel="item, sorted", ylabel="attraction")
    axes[1].set(xlabel="position, sorted", ylabel="examination")
    for ax in axes[:2]:
        ax.spines[["top", "right"]].set_visible(False)
        legend_below(ax)
    return figure


_figure = partial(
    Experiment, paper="rank1elimkl", horizon=HORIZON, runs=RUNS, section="section 5.2"
)
FIGURE_2 = _figure(
    "rank1-2",
    "Figure 2",
    "PBMs of two queries that differ in mu and p_max, and the regret on them",
    MODELS,
    (
        claim(
            "KL-UCB and TS are below Rank1ElimKL on both queries",
            lambda kl, elim: _below(("KL-UCB", "TS"), (kl,)),
            high=1.0,
        ),
        claim(
            "Query 1: Rank1ElimKL is below Rank1Elim and UCB1Elim",
            lambda kl, elim: _below((kl,), (elim, "UCB1Elim"), (1,)),
            high=1.0,
            reason=PRINTED,
        ),
        claim(
            "Query 1: Rank1ElimKL is no worse than UCB1 (5% are allowed)",
            lambda kl, elim: _over(kl, "UCB1", (1, 1)),
            high=1.05,
            reason=PRINTED,
        ),
        claim(
            "Query 2: Rank1ElimKL is below Rank1Elim, UCB1Elim and UCB1",
            lambda kl, elim: _below((kl,), (elim, "UCB1Elim", "UCB1"), (2,)),
            high=1.0,
            reason=PRINTED,
        ),
        claim(
            "Rank1ElimKL has less regret on Query 2 than on Query 1, of larger 1 / (mu gamma)",
            lambda kl, elim: _over(kl, kl, (2, 1)),
            high=1.0,
            reason="another log: the bound also has gaps in it, and says nothing at this horizon",
        ),
    ),
    seconds=1000,
    figure=draw_2,
    facts=_facts_2,
)


def _on_log(a: str, b: str) -> Measure:
    return over(_cell(a), _cell(b))


@measure
def follows_the_bound(outcome: Outcome, policy: str) -> Measured:
    """Spearman's correlation of regret and 1 / (mu gamma) over the queries, as in Theorem 1.

    Its standard error is that of unrelated ranks, 1 / sqrt(queries - 1).
    """
    hard = hardnesses(outcome, "rank1-3-raw")
    regrets = [outcome.regret(_cell(policy, query)).mean() for query in hard]
    found = spearmanr(regrets, [1.0 / (h.mu * h.gamma) for h in hard.values()])
    return Measured(float(found.statistic), 1.0 / np.sqrt(len(hard) - 1))


def _facts_3(outcome: Outcome) -> list[str]:
    ours, raw = hardnesses(outcome, "rank1-3"), hardnesses(outcome, "rank1-3-raw")
    small = sum(len(model.w) < 200 for model in outcome.models["rank1-3"].values())
    a, b = ([h.p_max for h in found.values()] for found in (raw, ours))
    return [
        f"{small} of {len(ours)} queries have L < 200 (the paper: 14 of 20).",
        f"p_max is {min(a):.2f} to {max(a):.2f} on the scale that EM ends with, and {min(b):.2f} "
        f"to {max(b):.2f} with max e = 1.",
    ]


FIGURE_3 = _figure(
    "rank1-3",
    "Figure 3",
    "average regret on the PBMs of 20 queries",
    MODELS,
    (
        claim(
            "Rank1ElimKL has the least regret but for KL-UCB and TS",
            lambda kl, elim: {other: _on_log(kl, other) for other in (elim, "UCB1Elim", "UCB1")},
            high=1.0,
            reason=PRINTED,
        ),
        claim(
            "it is 10.9% below UCB1",
            lambda kl, elim: _on_log(kl, "UCB1"),
            **factor(0.891, 0.8, 1.0),
            reason=PRINTED,
        ),
        claim(
            "it is 79% below Rank1Elim",
            lambda kl, elim: _on_log(kl, elim),
            published=0.21,
            high=0.3,
            reason="another log; perhaps how often nothing is eliminated decides it",
        ),
        claim(
            "KL-UCB and TS are below Rank1ElimKL",
            lambda kl, elim: {policy: _on_log(policy, kl) for policy in ("KL-UCB", "TS")},
            high=1.0,
        ),
        claim(
            "the regret of Rank1ElimKL grows with 1 / (mu gamma) (rank correlation over queries)",
            lambda kl, elim: follows_the_bound(kl),
            low=0.0,
            reason="another log: the gaps, of which the bound also has the inverse, differ too",
        ),
    ),
    seconds=1000,
    figure=curves(("rank1-3",)),
    facts=_facts_3,
)

EXPERIMENTS = (FIGURE_3, FIGURE_2)
