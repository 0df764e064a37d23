"""Katariya et al.: DCM Bandits (ICML 2016). The synthetic experiments, figures 2a, 2b, 3a, 3b.

The problems are B_LB(L, K, p=0.2, gap, gamma), 10^5 steps, 20 runs. The paper shows figures and
no numbers, so what is checked are the trends that its text states, and the values that an
independent implementation found for figure 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from logeval.evaluation import Runs, evaluate

HORIZON, RUNS = 100_000, 20


@dataclass(frozen=True)
class Figure:
    """The problems and policies of a figure, and what the paper says about it."""

    problems: tuple[str, ...]
    policies: tuple[str, ...]
    claim: str


def _b_lb(L: int, K: int, gap: float, gamma: float) -> str:
    return f"B_LB(L={L},K={K},p=0.2,gap={gap:g},gamma={gamma:g})"


_FIGURE_3 = (_b_lb(16, 4, 0.15, 0.5),)

FIGURES = {
    "2a": Figure(
        tuple(_b_lb(L, K, gap, 0.8) for gap in (0.15, 0.075) for L in (16, 32) for K in (2, 4, 8)),
        ("dcmKL-UCB",),
        "the regret grows with L, falls with K, and grows when the gap falls",
    ),
    "2b": Figure(
        tuple(_b_lb(16, K, 0.15, gamma / 10) for K in (2, 4, 8) for gamma in range(1, 11)),
        ("dcmKL-UCB",),
        "the regret grows linearly with gamma when p < 1 / K",
    ),
    "3a": Figure(
        _FIGURE_3, ("dcmKL-UCB", "First-Click", "Last-Click"), "dcmKL-UCB has the lowest regret"
    ),
    "3b": Figure(
        _FIGURE_3,
        ("dcmKL-UCB", "RankedKL-UCB"),
        "the regret of RankedKL-UCB is three times that of dcmKL-UCB",
    ),
}

# B_LB(L=16,K=4,p=0.2,gap=0.15,gamma=0.5) at n = 10^5, by an independent implementation
INDEPENDENT = {"dcmKL-UCB": 171.0, "First-Click": 188.0, "Last-Click": 213.0, "RankedKL-UCB": 535.0}


def reproduce(
    figure: str,
    horizon: int = HORIZON,
    runs: int = RUNS,
    workers: int = 1,
    seed: int = 0,
    out: Path | str | None = None,
    quiet: bool = False,
) -> Runs:
    """The runs of a figure."""
    return evaluate(
        problem=FIGURES[figure].problems,
        policies=FIGURES[figure].policies,
        horizon=horizon,
        runs=runs,
        workers=workers,
        seed=seed,
        out=out,
        quiet=quiet,
    )
