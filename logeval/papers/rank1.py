"""Katariya et al.: Bernoulli Rank-1 Bandits for Click Feedback (IJCAI 2017). Figure 1.

The needle in a haystack (equation 8): K = L in 32, 64, 128, p = 0.25, gap 0.5, 2 * 10^6 steps, 20
runs. The paper shows figures and no numbers, so what is checked is what its text states: how the
regret grows when K and L double. An independent implementation gives numbers for Rank1ElimKL.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from logeval.evaluation import Runs, evaluate

HORIZON, RUNS = 2_000_000, 20
SIZES = (32, 64, 128)
POLICIES = ("Rank1ElimKL", "Rank1Elim", "UCB1Elim", "UCB1", "KL-UCB", "TS")
CLAIM = (
    "when K and L double, the regret of Rank1ElimKL doubles and that of UCB1, UCB1Elim, KL-UCB and "
    "TS quadruples; Rank1Elim is worse than Rank1ElimKL throughout"
)

# Rank1ElimKL at n = 2 * 10^6, by an independent implementation
INDEPENDENT = {32: 96_000.0, 64: 191_000.0, 128: 448_000.0}


def problem_name(size: int) -> str:
    """The needle with K = L = size."""
    return f"rank1(K={size},L={size},p=0.25,gap=0.5)"


def reproduce(
    horizon: int = HORIZON,
    runs: int = RUNS,
    workers: int = 1,
    seed: int = 0,
    out: Path | str | None = None,
    quiet: bool = False,
    sizes: Sequence[int] = SIZES,
) -> Runs:
    """The runs of figure 1."""
    return evaluate(
        problem=[problem_name(size) for size in sizes],
        policies=POLICIES,
        horizon=horizon,
        runs=runs,
        workers=workers,
        seed=seed,
        out=out,
        quiet=quiet,
    )


def growth(runs: Runs, sizes: Sequence[int] = SIZES) -> pd.DataFrame:
    """One row per policy and size: regret, stderr, and ``growth``, the regret over that of the
    size before; ``independent`` where there is such a number."""
    summary = runs.summary()
    keys = zip(summary["policy"], summary["simulator"], strict=True)
    cells = dict(zip(keys, zip(summary["regret"], summary["stderr"], strict=True), strict=True))
    rows = []
    for policy in POLICIES:
        before = float("nan")
        for size in sizes:
            regret, stderr = cells[policy, problem_name(size)]
            rows.append(
                {
                    "policy": policy,
                    "K = L": size,
                    "regret": regret,
                    "stderr": stderr,
                    "growth": regret / before,
                    "independent": INDEPENDENT.get(size) if policy == "Rank1ElimKL" else None,
                }
            )
            before = regret
    return pd.DataFrame(rows)
