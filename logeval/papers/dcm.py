"""Katariya, Kveton, Szepesvari, Wen: DCM Bandits (ICML 2016). Figures 2a, 2b, 3a and 3b.

The synthetic problems are B_LB(L, K, p=0.2, gap, gamma), 10^5 steps, 20 runs. The paper shows
figures and no numbers, so what is checked is what its text states, and the values that an
independent implementation found for Figures 3a and 3b. Figures 2c and 3c are in ``dcm_log``.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from logeval.papers.cascading import P, attractions, b_lb
from logeval.papers.shared.experiment import Cell, Claim, Experiment, Part, above, below, factor
from logeval.papers.shared.figures import curves, lines
from logeval.papers.shared.measures import (
    Bound,
    Measure,
    Measured,
    between,
    jackknife,
    measure,
    over,
    quotient,
    regret,
)
from logeval.papers.shared.outcome import Outcome
from logeval.running.arrays import Floats
from logeval.tracks.ranking.theory import dcm_lower_slope, dcm_upper

HORIZON, RUNS = 100_000, 20
DCM_KL, RANKED = "dcmKL-UCB", "RankedKL-UCB"
HEURISTICS = ("First-Click", "Last-Click")


def _ratios(pairs: list[tuple[str, str]]) -> dict[str, Measure]:
    """Of dcmKL-UCB on two problems."""
    return {f"{a} over {b}": over(Cell(DCM_KL, a), Cell(DCM_KL, b)) for a, b in pairs}


def bounds(L: int, K: int, gap: float, gamma: float) -> tuple[Bound, Bound]:
    """Theorems 3 (lower) and 1 (upper) as functions of n."""
    w, v = attractions(L, K, gap), np.full(K, gamma)
    slope = dcm_lower_slope(L, K, P, gap, gamma)
    return lambda n: float(slope * np.log(n)), lambda n: dcm_upper(w, v, n)


SIZES, GAPS, LENGTHS = (16, 32), (0.15, 0.075), (2, 4, 8)
_2a = partial(b_lb, gamma=0.8)
_figure = partial(Experiment, paper="dcm-bandits", horizon=HORIZON, runs=RUNS)
FIGURE_2A = _figure(
    "dcm-2a",
    "Figure 2a",
    "regret of dcmKL-UCB by L, K and gap, gamma = 0.8",
    (Part("dcm-2a", tuple(_2a(L, K, g) for g in GAPS for L in SIZES for K in LENGTHS), (DCM_KL,)),),
    (
        above(
            "the regret grows with L (32 over 16 items)",
            _ratios([(_2a(32, K, gap), _2a(16, K, gap)) for K in LENGTHS for gap in GAPS]),
        ),
        below(
            "the regret falls with K (K over K / 2)",
            _ratios(
                [(_2a(L, K, g), _2a(L, K // 2, g)) for L in SIZES for K in (4, 8) for g in GAPS]
            ),
        ),
        above(
            "the regret grows when the gap falls (0.075 over 0.15)",
            _ratios([(_2a(L, K, 0.075), _2a(L, K, 0.15)) for L in SIZES for K in LENGTHS]),
        ),
        Claim(
            "measured regret lies between the lower and the upper bound (share of 12 settings)",
            between(
                *(
                    (Cell(DCM_KL, _2a(L, K, gap)), *bounds(L, K, gap, 0.8))
                    for L in SIZES
                    for K in LENGTHS
                    for gap in GAPS
                )
            ),
            place="Theorems 1 and 3",
            low=1.0,
            high=1.0,
        ),
    ),
    section="section 5.1",
    seconds=60,
    figure=lines(
        {
            f"L={L}, gap {gap:g}": [(K, Cell(DCM_KL, _2a(L, K, gap))) for K in LENGTHS]
            for L in SIZES
            for gap in GAPS
        },
        "positions K",
    ),
)

GAMMAS = tuple(g / 10 for g in range(1, 11))


@measure
def linearity(outcome: Outcome, K: int) -> Measured:
    """R^2 of a straight line through the regrets by gamma."""

    def r_squared(y: Floats) -> float:
        fit = np.polyval(np.polyfit(GAMMAS, y, 1), GAMMAS)
        return float(1.0 - ((y - fit) ** 2).sum() / ((y - y.mean()) ** 2).sum())

    by_gamma = [outcome.regret(Cell(DCM_KL, b_lb(16, K, 0.15, g))) for g in GAMMAS]
    return jackknife(r_squared, np.column_stack(by_gamma))


def growth(K: int) -> Measure:
    """The regret at gamma = 1 over that at gamma = 0.5: 2 where it is proportional to gamma."""
    return over(*(Cell(DCM_KL, b_lb(16, K, 0.15, gamma)) for gamma in (1.0, 0.5)))


FIGURE_2B = _figure(
    "dcm-2b",
    "Figure 2b",
    "regret of dcmKL-UCB by gamma and K, L = 16, gap 0.15",
    (Part("dcm-2b", tuple(b_lb(16, K, 0.15, g) for K in LENGTHS for g in GAMMAS), (DCM_KL,)),),
    (
        Claim(
            "the regret grows linearly with gamma where p < 1/K (R^2 of a straight line)",
            {f"K={K}": linearity(K) for K in (2, 4)},
            low=0.97,
            variants={f"regret at gamma = 1 over gamma = 0.5, K={K}": growth(K) for K in (2, 4)},
        ),
        below(
            "the trend is less prominent for p > 1/K (growth from gamma = 0.5 to 1, K=8 over less)",
            {f"K=8 over K={K}": quotient(growth(8), growth(K)) for K in (2, 4)},
            variants={"regret at gamma = 1 over gamma = 0.5, K=8": growth(8)},
        ),
    ),
    section="section 5.1",
    seconds=60,
    figure=lines(
        {f"K={K}": [(g, Cell(DCM_KL, b_lb(16, K, 0.15, g))) for g in GAMMAS] for K in LENGTHS},
        "termination probability gamma",
    ),
)

PROBLEM_3 = b_lb(16, 4, 0.15, 0.5)
LOWER_3, UPPER_3 = bounds(16, 4, 0.15, 0.5)
BOUNDS_3 = {"Theorem 3 (lower)": LOWER_3, "Theorem 1 (upper, dcmKL-UCB)": UPPER_3}
# the independent implementation printed no standard errors
ASSUMED = 0.02
ERROR_ASSUMED = f"independent implementation; its error is not known, {ASSUMED:.0%} is assumed"
# PROBLEM_3 at n = 10^5, by an independent implementation
INDEPENDENT = {DCM_KL: 171.0, "First-Click": 188.0, "Last-Click": 213.0, RANKED: 535.0}


def independent(text: str, cell: Cell, value: float) -> Claim:
    """The regret that an independent implementation found."""
    return Claim(text, regret(cell), value, ASSUMED * value, source=ERROR_ASSUMED)


FIGURE_3A = _figure(
    "dcm-3a",
    "Figure 3a",
    "dcmKL-UCB against the first-click and last-click heuristics",
    (Part("dcm-3", (PROBLEM_3,), (DCM_KL, *HEURISTICS)),),
    (
        below(
            "dcmKL-UCB has less regret than both heuristics",
            {other: over(Cell(DCM_KL), Cell(other)) for other in HEURISTICS},
        ),
        *(independent(p, Cell(p), INDEPENDENT[p]) for p in (DCM_KL, *HEURISTICS)),
        Claim(
            "dcmKL-UCB lies between the lower and the upper bound",
            between((Cell(DCM_KL), LOWER_3, UPPER_3)),
            place="Theorems 1 and 3",
            low=1.0,
            high=1.0,
        ),
    ),
    section="section 5.2",
    seconds=15,
    figure=curves(bounds={PROBLEM_3: BOUNDS_3}),
)

FIGURE_3B = _figure(
    "dcm-3b",
    "Figure 3b",
    "dcmKL-UCB against RankedKL-UCB",
    (Part("dcm-3", (PROBLEM_3,), (DCM_KL, RANKED)),),
    (
        Claim(
            "the regret of RankedKL-UCB is three times that of dcmKL-UCB",
            over(Cell(RANKED), Cell(DCM_KL)),
            **factor(3.0, 2.5, 3.5),
        ),
        independent(RANKED, Cell(RANKED), INDEPENDENT[RANKED]),
    ),
    section="section 5.2",
    seconds=15,
    figure=curves(),
)

EXPERIMENTS = (FIGURE_2A, FIGURE_2B, FIGURE_3A, FIGURE_3B)
