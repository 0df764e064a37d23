"""Katariya, Kveton, Szepesvari, Wen: DCM Bandits (ICML 2016). Figures 2 and 3.

The synthetic problems are B_LB(L, K, p=0.2, gap, gamma), 10^5 steps, 20 runs. The paper shows
figures and no numbers, so what is checked is what its text states, and the values that an
independent implementation found for Figures 3a and 3b.

Figure 3c compares on the DCMs of the 20 most frequent queries of a log. All policies assume that
higher positions terminate more; where the fitted terminations do not fall, every such policy pays
the same constant, that of ``Oracle(order=assumed)``. The variants tell how much of the claim it
hides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from logeval.clicks.models.dcm import DCM
from logeval.papers.cascading import P, attractions
from logeval.papers.experiment import Claim, Experiment, OnLog, Part, Synthetic
from logeval.papers.figures import curves, lines
from logeval.papers.measures import Between, Largest, Measured, Ratio, Regret
from logeval.papers.outcome import Cell, Outcome
from logeval.reports.figures import legend_below, new_axes
from logeval.tracks.ranking_theory import dcm_lower_slope, dcm_upper

HORIZON, RUNS = 100_000, 20
DCM_KL, RANKED, EXP3 = "dcmKL-UCB", "RankedKL-UCB", "RankedExp3"
KNOWN, CONSTANT = "dcmKL-UCB(order=known)", "Oracle(order=assumed)"


def b_lb(L: int, K: int, gap: float, gamma: float) -> str:
    """The synthetic problem."""
    return f"B_LB(L={L},K={K},p={P:g},gap={gap:g},gamma={gamma:g})"


def _all_ratios(pairs: list[tuple[str, str]], smallest: bool = False) -> Largest:
    """Of dcmKL-UCB on two problems, the largest or smallest."""
    return Largest(tuple(Ratio(Cell(DCM_KL, a), Cell(DCM_KL, b)) for a, b in pairs), smallest)


def _theorem_1(L: int, K: int, gap: float, gamma: float) -> Callable[[int], float]:
    """The upper bound as a function of n."""
    w, v = attractions(L, K, gap), np.full(K, gamma)
    return lambda n: dcm_upper(w, v, n)


def _theorem_3(L: int, K: int, gap: float, gamma: float) -> Callable[[int], float]:
    """The lower bound as a function of n."""
    slope = dcm_lower_slope(L, K, P, gap, gamma)
    return lambda n: float(slope * np.log(n))


SIZES, GAPS, LENGTHS = (16, 32), (0.15, 0.075), (2, 4, 8)
FIGURE_2A = Experiment(
    "dcm-2a",
    "dcm-bandits",
    "Figure 2a",
    "regret of dcmKL-UCB by L, K and gap, gamma = 0.8",
    (
        Part(
            "dcm-2a",
            Synthetic(tuple(b_lb(L, K, gap, 0.8) for gap in GAPS for L in SIZES for K in LENGTHS)),
            (DCM_KL,),
        ),
    ),
    HORIZON,
    RUNS,
    (
        Claim(
            "the regret grows with L (smallest ratio of 32 to 16 items)",
            "section 5.1",
            _all_ratios(
                [(b_lb(32, K, gap, 0.8), b_lb(16, K, gap, 0.8)) for K in LENGTHS for gap in GAPS],
                smallest=True,
            ),
            low=1.0,
        ),
        Claim(
            "the regret falls with K (largest ratio of K to the K before)",
            "section 5.1",
            _all_ratios(
                [
                    (b_lb(L, K, gap, 0.8), b_lb(L, K // 2, gap, 0.8))
                    for L in SIZES
                    for K in (4, 8)
                    for gap in GAPS
                ]
            ),
            high=1.0,
        ),
        Claim(
            "the regret grows when the gap falls (smallest ratio of 0.075 to 0.15)",
            "section 5.1",
            _all_ratios(
                [(b_lb(L, K, 0.075, 0.8), b_lb(L, K, 0.15, 0.8)) for L in SIZES for K in LENGTHS],
                smallest=True,
            ),
            low=1.0,
        ),
        Claim(
            "measured regret lies between the lower and the upper bound (share of 12 settings)",
            "Theorems 1 and 3",
            Between(
                tuple(
                    (
                        Cell(DCM_KL, b_lb(L, K, gap, 0.8)),
                        _theorem_3(L, K, gap, 0.8),
                        _theorem_1(L, K, gap, 0.8),
                    )
                    for L in SIZES
                    for K in LENGTHS
                    for gap in GAPS
                )
            ),
            low=1.0,
            high=1.0,
            source="theory",
        ),
    ),
    seconds=60,
    figure=lines(
        {
            f"L={L}, gap {gap:g}": [(K, Cell(DCM_KL, b_lb(L, K, gap, 0.8))) for K in LENGTHS]
            for L in SIZES
            for gap in GAPS
        },
        "positions K",
    ),
)

GAMMAS = tuple(g / 10 for g in range(1, 11))


def linearity(K: int) -> Any:
    """R^2 of a straight line through the regrets by gamma."""

    def measure(outcome: Outcome) -> Measured:
        y = np.array([outcome.regret(Cell(DCM_KL, b_lb(16, K, 0.15, g))).mean() for g in GAMMAS])
        fit = np.polyval(np.polyfit(GAMMAS, y, 1), GAMMAS)
        return Measured(float(1.0 - ((y - fit) ** 2).sum() / ((y - y.mean()) ** 2).sum()))

    return measure


FIGURE_2B = Experiment(
    "dcm-2b",
    "dcm-bandits",
    "Figure 2b",
    "regret of dcmKL-UCB by gamma and K, L = 16, gap 0.15",
    (
        Part(
            "dcm-2b",
            Synthetic(tuple(b_lb(16, K, 0.15, gamma) for K in LENGTHS for gamma in GAMMAS)),
            (DCM_KL,),
        ),
    ),
    HORIZON,
    RUNS,
    (
        *(
            Claim(
                f"the regret grows linearly with gamma, K={K} (R^2 of a straight line)",
                "section 5.1",
                linearity(K),
                low=0.97,
                high=1.0,
            )
            for K in (2, 4)
        ),
        Claim(
            "it grows with gamma, K=2 (regret at gamma = 1 over gamma = 0.5)",
            "section 5.1",
            Ratio(Cell(DCM_KL, b_lb(16, 2, 0.15, 1.0)), Cell(DCM_KL, b_lb(16, 2, 0.15, 0.5))),
            2.0,
            low=1.6,
            high=2.4,
        ),
        Claim(
            "the trend is less prominent for p > 1/K (K=8, gamma = 1 over gamma = 0.5)",
            "section 5.1",
            Ratio(Cell(DCM_KL, b_lb(16, 8, 0.15, 1.0)), Cell(DCM_KL, b_lb(16, 8, 0.15, 0.5))),
            high=1.6,
        ),
    ),
    seconds=60,
    figure=lines(
        {f"K={K}": [(g, Cell(DCM_KL, b_lb(16, K, 0.15, g))) for g in GAMMAS] for K in LENGTHS},
        "termination probability gamma",
    ),
)

PROBLEM_3 = b_lb(16, 4, 0.15, 0.5)
LOWER_3, UPPER_3 = _theorem_3(16, 4, 0.15, 0.5), _theorem_1(16, 4, 0.15, 0.5)
BOUNDS_3 = {"Theorem 3 (lower)": LOWER_3, "Theorem 1 (upper, dcmKL-UCB)": UPPER_3}
# PROBLEM_3 at n = 10^5, by an independent implementation
INDEPENDENT = {DCM_KL: 171.0, "First-Click": 188.0, "Last-Click": 213.0, RANKED: 535.0}


def _independent(*policies: str) -> list[Claim]:
    return [
        Claim(
            policy,
            "n = 100,000",
            Regret(Cell(policy)),
            INDEPENDENT[policy],
            0.02 * INDEPENDENT[policy],
            source="independent implementation, its error taken as 2%",
        )
        for policy in policies
    ]


FIGURE_3A = Experiment(
    "dcm-3a",
    "dcm-bandits",
    "Figure 3a",
    "dcmKL-UCB against the first-click and last-click heuristics",
    (Part("dcm-3", Synthetic((PROBLEM_3,)), (DCM_KL, "First-Click", "Last-Click")),),
    HORIZON,
    RUNS,
    (
        *(
            Claim(
                f"dcmKL-UCB has less regret than {other}",
                "section 5.2",
                Ratio(Cell(DCM_KL), Cell(other)),
                high=1.0,
            )
            for other in ("First-Click", "Last-Click")
        ),
        *_independent(DCM_KL, "First-Click", "Last-Click"),
        Claim(
            "dcmKL-UCB lies between the lower and the upper bound",
            "Theorems 1 and 3",
            Between(((Cell(DCM_KL), LOWER_3, UPPER_3),)),
            low=1.0,
            high=1.0,
            source="theory",
        ),
    ),
    seconds=15,
    figure=curves(bounds={PROBLEM_3: BOUNDS_3}),
)

FIGURE_3B = Experiment(
    "dcm-3b",
    "dcm-bandits",
    "Figure 3b",
    "dcmKL-UCB against RankedKL-UCB",
    (Part("dcm-3", Synthetic((PROBLEM_3,)), (DCM_KL, RANKED)),),
    HORIZON,
    RUNS,
    (
        Claim(
            "the regret of RankedKL-UCB is three times that of dcmKL-UCB",
            "section 5.2",
            Ratio(Cell(RANKED), Cell(DCM_KL)),
            3.0,
            low=2.5,
            high=3.5,
        ),
        *_independent(RANKED),
    ),
    seconds=15,
    figure=curves(),
)


def sorted_terminations(model: DCM) -> DCM:
    """The same model with falling terminations, as the policies assume them."""
    return replace(model, v=np.sort(model.v)[::-1].copy())


FITTED = OnLog("DCM", 20)
GUO = {"method": "guo", "scope": "per-query"}
FITS: dict[str, tuple[str, dict[str, str]]] = {  # by part: how it is called, how it is made
    "dcm-3c": ("as fitted", {}),
    "dcm-3c-alone": ("each query by itself", {"scope": "per-query"}),
    "dcm-3c-guo": ("Guo's estimate", GUO),
    "dcm-3c-pyclick": ("PyClick-like fit", {**GUO, "smoothing": "pyclick"}),
}


def first_is_largest(outcome: Outcome) -> Measured:
    """The share of queries whose first position terminates most."""
    fitted = outcome.models[next(iter(outcome.models))]
    return Measured(float(np.mean([int(np.argmax(f.model.v)) == 0 for f in fitted])))


def not_falling(outcome: Outcome) -> Measured:
    """The share of queries whose terminations do not fall from position to position."""
    fitted = outcome.models[next(iter(outcome.models))]
    return Measured(float(np.mean([(np.diff(f.model.v) > 0).any() for f in fitted])))


def draw_terminations(outcome: Outcome) -> Any:
    """v(k) of each query."""
    ax = new_axes(5, 3.6)
    for marker, (query, model) in zip("os^Dv", next(iter(outcome.models.values())), strict=False):
        k = np.arange(1, len(model.v) + 1)
        ax.plot(k, model.v, marker=marker, ms=4, label=f"query {query}")
    ax.set(xlabel="position k", ylabel="termination probability")
    ax.set_ylim(0, 1)
    ax.spines[["top", "right"]].set_visible(False)
    legend_below(ax)
    return ax.figure


FIGURE_2C = Experiment(
    "dcm-2c",
    "dcm-bandits",
    "Figure 2c",
    "termination probabilities of the 5 most frequent queries",
    (Part("dcm-2c", OnLog("DCM", 5)),),
    1,
    1,
    (
        Claim(
            "higher positions are not necessarily more terminating (share of queries)",
            "section 5.3",
            not_falling,
            low=0.01,
        ),
    ),
    seconds=5,
    figure=draw_terminations,
)


def _half(text: str, measure: Any, reason: str = "") -> Claim:
    return Claim(text, "section 5.3", measure, 0.5, high=0.5, reason=reason)


def _variants(part: str) -> list[Claim]:
    """dcmKL-UCB over the best ranked bandit, as fitted and without the constant."""
    ranked = (Cell(RANKED, None, part), Cell(EXP3, None, part))
    like = f"{FITS[part][0]}: " if FITS[part][1] else ""
    constant = (
        "where the first position does not terminate most, every policy that assumes it pays the "
        "constant of the assumed order; the variants below leave it out"
    )
    return [
        _half(
            f"{like}dcmKL-UCB over the best ranked bandit",
            Ratio(Cell(DCM_KL, None, part), ranked),
            constant,
        ),
        _half(
            f"{like}the same, dcmKL-UCB told the fitted order",
            Ratio(Cell(KNOWN, None, part), ranked),
        ),
        _half(
            f"{like}the same, net of the constant",
            Ratio(Cell(DCM_KL, None, part), ranked, net=Cell(CONSTANT, None, part)),
        ),
        _half(
            f"{like}the same, terminations sorted",
            Ratio(
                Cell(DCM_KL, None, f"{part}-sorted"),
                (Cell(RANKED, None, f"{part}-sorted"), Cell(EXP3, None, f"{part}-sorted")),
            ),
        ),
    ]


def _facts_3c(outcome: Outcome) -> list[str]:
    found = []
    for part, (name, _) in FITS.items():
        fitted = outcome.models[part]
        first = sum(int(np.argmax(f.model.v)) == 0 for f in fitted)
        constant = Ratio(Cell(CONSTANT, None, part), Cell(DCM_KL, None, part))(outcome)
        found.append(
            f"{name[0].upper()}{name[1:]}: the first position "
            f"terminates most in {first} of {len(fitted)} queries, and the best list in the "
            f"assumed order ({CONSTANT}) has {constant.value:.0%} of the regret of dcmKL-UCB: no "
            "policy that assumes this order avoids it."
        )
    with np.errstate(divide="ignore"):
        bounds = [_theorem_2(f.model, outcome.horizon) for f in outcome.models["dcm-3c"]]
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


_ALL = (DCM_KL, RANKED, EXP3, KNOWN, CONSTANT)
FIGURE_3C = Experiment(
    "dcm-3c",
    "dcm-bandits",
    "Figure 3c",
    "dcmKL-UCB against ranked bandits on the DCMs of 20 queries",
    tuple(
        part
        for name, (title, fit) in FITS.items()
        for part in (
            Part(name, replace(FITTED, fit=fit), _ALL, title=title),
            Part(
                f"{name}-sorted",
                replace(FITTED, fit=fit, change=sorted_terminations),
                (DCM_KL, RANKED, EXP3),
                title=f"{title}, terminations sorted",
            ),
        )
    ),
    10_000,
    5,
    (
        *(claim for name in FITS for claim in _variants(name)),
        Claim(
            "the first position is the most terminating in most DCMs (share of queries)",
            "section 5.3",
            first_is_largest,
            low=0.5,
            high=1.0,
            reason="another log",
        ),
    ),
    seconds=160,
    figure=curves(),
    facts=_facts_3c,
)

EXPERIMENTS = (FIGURE_2A, FIGURE_2B, FIGURE_2C, FIGURE_3A, FIGURE_3B, FIGURE_3C)
