"""Katariya, Kveton, Szepesvari, Wen: DCM Bandits (ICML 2016), section 5.3: Figures 2c and 3c.

On the DCMs of the most frequent queries of a log. The paper estimates one DCM per query as in Guo
et al. (2009), by counting; that fit has the verdict, others are variants. All policies assume that
higher positions terminate more; where the fitted terminations do not fall, every such policy pays
the same constant, that of ``Oracle(order=assumed)``. The variants tell how much of the claim it
hides.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from logeval.clicks.models.dcm import DCM
from logeval.papers.dcm import DCM_KL, RANKED
from logeval.papers.shared.experiment import Cell, Claim, Experiment, OnLog, Part, above, below
from logeval.papers.shared.figures import curves
from logeval.papers.shared.measures import Measure, Measured, measure, over
from logeval.papers.shared.outcome import Outcome
from logeval.reports.figures.canvas import legend_below, new_axes
from logeval.running.arrays import Floats
from logeval.tracks.ranking.theory import dcm_upper

EXP3 = "RankedExp3"
KNOWN, CONSTANT = "dcmKL-UCB(order=known)", "Oracle(order=assumed)"
SIGNIFICANCE = 0.01  # of the test whether terminations rise


def sorted_terminations(model: DCM) -> DCM:
    """The same model with falling terminations, as the policies assume them."""
    return replace(model, v=np.sort(model.v)[::-1].copy())


FITTED = OnLog("DCM", 20)
GUO = {"method": "guo", "scope": "per-query"}
PAPERS, SORTED = "dcm-3c-guo", "dcm-3c-guo-sorted"  # the parts with the paper's fit
OTHER_FITS: dict[str, tuple[str, dict[str, str]]] = {  # how each is called, how it is made
    "dcm-3c-pyclick": ("by counting, PyClick's smoothing", {**GUO, "smoothing": "pyclick"}),
    "dcm-3c-alone": ("maximum likelihood per query", {"scope": "per-query"}),
    "dcm-3c": ("the default fit", {}),
}


@measure
def first_is_largest(outcome: Outcome, part: str) -> Measured:
    """The share of queries whose first position terminates most."""
    models = outcome.models[part].values()
    return Measured(float(np.mean([int(np.argmax(model.v)) == 0 for model in models])))


def rises(v: Floats, clicks: Floats) -> bool:
    """Whether some position terminates more than one above it, by more than chance.

    v are shares of the clicks. All pairs are tested, at ``SIGNIFICANCE`` by the number of pairs.
    """
    above, below = np.triu_indices(len(v), 1)
    a, b = clicks[above], clicks[below]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (a * v[above] + b * v[below]) / (a + b)
        z = (v[below] - v[above]) / np.sqrt(share * (1.0 - share) * (1.0 / a + 1.0 / b))
    return bool((z > -ndtri(SIGNIFICANCE / max(1, len(above)))).any())


def rising(outcome: Outcome) -> Measured:
    """The number of queries whose terminations rise somewhere; v_K is not identified."""
    (fit,) = outcome.fits.values()
    v = fit.estimates["v"]
    last = fit.positions - 1
    return Measured(
        float(sum(rises(v.value[q, :K], v.observations[q, :K]) for q, K in enumerate(last)))
    )


def draw_terminations(outcome: Outcome) -> Any:
    """v(k) of each query."""
    ax = new_axes(5, 3.6)
    (models,) = outcome.models.values()
    for marker, (query, model) in zip("os^Dv", models.items(), strict=False):
        k = np.arange(1, len(model.v) + 1)
        ax.plot(k, model.v, marker=marker, ms=4, label=f"query {query}")
    ax.set(xlabel="position k", ylabel="termination probability")
    ax.set_ylim(0, 1)
    ax.spines[["top", "right"]].set_visible(False)
    legend_below(ax)
    return ax.figure


_figure = partial(Experiment, paper="dcm-bandits", section="section 5.3")
FIGURE_2C = _figure(
    "dcm-2c",
    "Figure 2c",
    "termination probabilities of the 5 most frequent queries",
    (Part("dcm-2c", OnLog("DCM", 5, GUO)),),
    (
        above(
            "higher positions are not always more terminating (queries of 5 where a lower one "
            "terminates more, by more than chance)",
            rising,
        ),
    ),
    horizon=1,
    runs=1,
    seconds=5,
    figure=draw_terminations,
)


def _best_ranked(part: str) -> tuple[Cell, Cell]:
    return Cell(RANKED, None, part), Cell(EXP3, None, part)


def _variants() -> dict[str, Measure]:
    """dcmKL-UCB over the best ranked bandit: without the constant, and in other fits."""
    ours, ranked = Cell(DCM_KL, None, PAPERS), _best_ranked(PAPERS)
    found: dict[str, Measure] = {
        "dcmKL-UCB told the fitted order": over(Cell(KNOWN, None, PAPERS), ranked),
        "terminations sorted": over(Cell(DCM_KL, None, SORTED), _best_ranked(SORTED)),
        "net of the constant": over(ours, ranked, net=Cell(CONSTANT, None, PAPERS)),
    }
    for part, (fit, _) in OTHER_FITS.items():
        ours, ranked, net = Cell(DCM_KL, None, part), _best_ranked(part), Cell(CONSTANT, None, part)
        found[fit] = over(ours, ranked)
        found[f"{fit}, net of the constant"] = over(ours, ranked, net=net)
    return found


def _facts_3c(outcome: Outcome) -> list[str]:
    found = []
    for part, (name, _) in {PAPERS: ("by counting", GUO), **OTHER_FITS}.items():
        constant = over(Cell(CONSTANT, None, part), Cell(DCM_KL, None, part))(outcome)
        found.append(
            f"{name[0].upper()}{name[1:]}: the best list in the assumed order ({CONSTANT}) has "
            f"{constant.value:.0%} of the regret of dcmKL-UCB: no policy that assumes this order "
            "avoids it."
        )
    with np.errstate(divide="ignore"):
        bounds = [_theorem_2(m, outcome.horizon) for m in outcome.models[PAPERS].values()]
    return [
        *found,
        f"Theorem 2's bound is at least {min(bounds):,.3g} on these queries, and a run of "
        f"{outcome.horizon:,} steps cannot lose more than {outcome.horizon:,}: it says nothing "
        "here and is not drawn."
        if min(bounds) > outcome.horizon
        else f"Theorem 2's bound is {min(bounds):,.3g} on the query where it is smallest.",
    ]


def _theorem_2(model: DCM, n: int) -> float:
    w = np.sort(model.w)[::-1]
    if (np.diff(w[: len(model.v) + 1]) >= 0).any():
        return float("inf")  # it needs different attractions
    return dcm_upper(model.w, model.v, n)


COMPARED = (DCM_KL, RANKED, EXP3)
FIGURE_3C = _figure(
    "dcm-3c",
    "Figure 3c",
    "dcmKL-UCB against ranked bandits on the DCMs of 20 queries",
    (
        Part(PAPERS, replace(FITTED, fit=GUO), (*COMPARED, KNOWN, CONSTANT), title="by counting"),
        Part(
            SORTED,
            replace(FITTED, fit=GUO, change=sorted_terminations),
            COMPARED,
            title="by counting, terminations sorted",
        ),
        *(
            Part(name, replace(FITTED, fit=fit), (*COMPARED, CONSTANT), title=title)
            for name, (title, fit) in OTHER_FITS.items()
        ),
    ),
    (
        below(
            "dcmKL-UCB has less regret than both ranked bandits",
            {c.policy: over(Cell(DCM_KL, None, PAPERS), c) for c in _best_ranked(PAPERS)},
        ),
        Claim(
            "at most half of that of the best ranked bandit",
            over(Cell(DCM_KL, None, PAPERS), _best_ranked(PAPERS)),
            0.5,
            high=0.5,
            reason="where the first position does not terminate most, every policy that assumes it "
            "pays the constant of the assumed order",
            variants=_variants(),
        ),
        Claim(
            "the first position is the most terminating in most DCMs (share of queries)",
            first_is_largest(PAPERS),
            low=0.5,
            reason="another log",
            variants={fit: first_is_largest(part) for part, (fit, _) in OTHER_FITS.items()},
        ),
    ),
    horizon=10_000,
    runs=5,
    seconds=100,
    figure=curves(),
    facts=_facts_3c,
)

EXPERIMENTS = (FIGURE_2C, FIGURE_3C)
