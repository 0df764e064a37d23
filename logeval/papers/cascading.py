"""Kveton, Szepesvari, Wen, Ashkan: Cascading Bandits (ICML 2015).

Tables 1 and 2: regret after 10^5 steps on B_LB(L, K, p=0.2, gap), 20 runs; Table 1 puts the largest
bound first, Table 2 the smallest. Figure 1: the DBN of section 5.3, where CascadeKL-UCB reads the
last click (which is the policy Last-Click here), against RankedKL-UCB.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from logeval.papers.shared.experiment import Cell, Claim, Experiment, Part, above, below, factor
from logeval.papers.shared.figures import curves
from logeval.papers.shared.measures import Measure, between, last_half, over, quotient, regret
from logeval.tracks.ranking.theory import cascade_kl_upper, cascade_lower_slope, cascade_ucb1_upper

HORIZON, RUNS = 100_000, 20
P = 0.2


# (L, K, gap): CascadeUCB1, CascadeKL-UCB, each with the standard error of its mean regret
TABLE_1 = {
    (16, 2, 0.15): ((1290.1, 11.3), (357.9, 5.5)),
    (16, 4, 0.15): ((986.8, 10.8), (275.1, 5.8)),
    (16, 8, 0.15): ((574.8, 7.9), (149.1, 3.2)),
    (32, 2, 0.15): ((2695.9, 19.8), (761.2, 10.4)),
    (32, 4, 0.15): ((2256.8, 12.8), (633.2, 7.0)),
    (32, 8, 0.15): ((1581.0, 20.3), (435.4, 5.7)),
    (16, 2, 0.075): ((2077.0, 32.9), (766.0, 18.0)),
    (16, 4, 0.075): ((1520.4, 23.4), (538.5, 12.5)),
    (16, 8, 0.075): ((725.4, 12.0), (321.0, 16.3)),
}
TABLE_2 = {
    (16, 2, 0.15): ((1160.2, 11.7), (333.3, 6.1)),
    (16, 4, 0.15): ((660.0, 8.3), (209.4, 4.4)),
    (16, 8, 0.15): ((181.4, 3.9), (60.4, 2.0)),
    (32, 2, 0.15): ((2471.6, 14.1), (716.0, 7.5)),
    (32, 4, 0.15): ((1615.3, 14.5), (482.3, 6.7)),
    (32, 8, 0.15): ((595.0, 7.8), (201.9, 5.8)),
    (16, 2, 0.075): ((1989.8, 31.4), (785.8, 12.2)),
    (16, 4, 0.075): ((1239.5, 16.2), (484.2, 12.5)),
    (16, 8, 0.075): ((336.4, 10.3), (139.7, 6.6)),
}
TABLES = {"Table 1": TABLE_1, "Table 2": TABLE_2}
UCB1, KL = "CascadeUCB1", "CascadeKL-UCB"
POLICIES = {
    "Table 1": (UCB1, KL),
    "Table 2": (f"{UCB1}(order=ascending)", f"{KL}(order=ascending)"),
}
Setting = tuple[int, int, float]
REASONS: dict[tuple[str, Setting], str] = {  # both of CascadeKL-UCB
    ("Table 1", (16, 8, 0.075)): "the printed number seems to be off: an independent "
    "implementation found 263 (ours are 200 runs)",
    ("Table 2", (16, 2, 0.075)): "the paper's Table 2 lies below its Table 1 everywhere, as it "
    "says, but for this cell (785.8 above 766.0; ours are 200 runs)",
}


def b_lb(L: int, K: int, gap: float, gamma: float = 1.0) -> str:
    """The synthetic problem of both papers; where gamma is 1 its users are those of a cascade."""
    return f"B_LB(L={L},K={K},p={P:g},gap={gap:g},gamma={gamma:g})"


def attractions(L: int, K: int, gap: float) -> np.ndarray:
    """w_bar of B_LB."""
    return np.where(np.arange(L) < K, P, P - gap)


def bounds(setting: Setting) -> dict[str, Callable[[int], float]]:
    """Theorems 4 (lower), and 2 and 3 (upper), as functions of n."""
    L, K, gap = setting
    w, slope = attractions(*setting), cascade_lower_slope(L, K, P, gap)
    return {
        "Theorem 4 (lower)": lambda n: float(slope * np.log(n)),
        f"Theorem 3 (upper, {KL})": lambda n: float(cascade_kl_upper(w, K, n)),
        f"Theorem 2 (upper, {UCB1})": lambda n: float(cascade_ucb1_upper(w, K, n)),
    }


PART = "cascading-tables"
# CascadeKL-UCB, both orders, where a published number is doubtful: ten times the runs
MORE_RUNS = {(16, 8, 0.075): "cascading-doubtful-1", (16, 2, 0.075): "cascading-doubtful-2"}


def _cell(policy: str, setting: Setting) -> Cell:
    """The cell of a table, with all the runs that there are."""
    more = policy.startswith(KL) and setting in MORE_RUNS
    return Cell(policy, b_lb(*setting), MORE_RUNS[setting] if more else PART)


def _named(setting: Setting) -> str:
    L, K, gap = setting
    return f"L={L}, K={K}, gap {gap:g}"


def _numbers() -> list[Claim]:
    return [
        Claim(
            f"{policy.partition('(')[0]}, {_named(setting)}",
            regret(_cell(policy, setting)),
            *value,
            place=place,
            reason=REASONS.get((place, setting), "") if policy.startswith(KL) else "",
        )
        for place, settings in TABLES.items()
        for setting, values in settings.items()
        for policy, value in zip(POLICIES[place], values, strict=True)
    ]


def _bounded() -> Measure:
    """Every cell of Table 1 between Theorem 4 and Theorem 2 (CascadeKL-UCB: 3)."""
    cells = []
    for setting in TABLE_1:
        lower, kl, ucb1 = bounds(setting).values()
        cells += [(_cell(UCB1, setting), lower, ucb1), (_cell(KL, setting), lower, kl)]
    return between(*cells)


def _pairs(pairs: list[tuple[Setting, Setting]]) -> dict[str, Measure]:
    """The regret on one setting over that on another, both policies of Table 1."""
    return {
        f"{policy}, {_named(a)} over {_named(b)}": over(_cell(policy, a), _cell(policy, b))
        for policy in (UCB1, KL)
        for a, b in pairs
    }


def _ascending(policy: str, setting: Setting) -> Measure:
    """The smallest bound first over the largest first."""
    return over(_cell(f"{policy}(order=ascending)", setting), _cell(policy, setting))


# 18 cells of CascadeUCB1, 20 runs each; for CascadeKL-UCB ten cells with L = 16, 6 runs
TRIED = [
    "An independent implementation sides with ours in the four cells that it was compared in, and "
    "a second one, written for this question, is as far below the tables: 18 cells of CascadeUCB1 "
    "have a mean distance of -1.40 ± 0.24 standard errors.",
    "What was looked for as the cause, with the mean distance of these cells: no free first sample "
    "(-1.15), one round for each item first (-0.98), log n for log t (-1.21), log(t + L) (-1.33), "
    "bounds capped at 1 (-1.20), ties to the first item or to the last, the good ones first "
    "(-1.29, -1.34). "
    "None explains it, neither does 10% more steps: -0.09, but chi squared is 42 on 18. 2 log t "
    "for 1.5 log t is far off (+18), as is CascadeKL-UCB without 3 log log t (-10). The cause is "
    "not known.",
]
SHORTER_LISTS = [(s, (s[0], s[1] // 2, s[2])) for s in TABLE_1 if s[1] > 2]
CLAIMS = (
    Claim(
        "the regret doubles when L doubles",
        _pairs([((32, K, 0.15), (16, K, 0.15)) for K in (2, 4, 8)]),
        **factor(2.0, 1.75, 2.35),
        reason="the paper's own Table 1 has 2.75 and 2.92 for K = 8; its bound grows with L - K, "
        "from 8 to 24",
    ),
    below("the regret falls when K grows", _pairs(SHORTER_LISTS)),
    above(
        "the regret grows when the gap falls",
        _pairs([((16, K, 0.075), (16, K, 0.15)) for K in (2, 4, 8)]),
    ),
    below(
        "CascadeKL-UCB is below CascadeUCB1",
        {_named(s): over(_cell(KL, s), _cell(UCB1, s)) for s in TABLE_1},
    ),
    below(
        "the smallest bound first lowers the regret in all settings",
        {f"{p}, {_named(s)}": _ascending(p, s) for p in (UCB1, KL) for s in TABLE_1},
        place="section 5.2",
        reason="the paper's own tables have 785.8 above 766.0 there",
    ),
    below(
        "most at large K (what is left of the regret, K over K / 2)",
        {
            f"{p}, {_named(a)}": quotient(_ascending(p, a), _ascending(p, b))
            for p in (UCB1, KL)
            for a, b in SHORTER_LISTS
        },
        place="section 5.2",
    ),
    Claim(
        "measured regret lies between the lower and the upper bound (share of 18 settings)",
        _bounded(),
        place="Theorems 2, 3 and 4",
        low=1.0,
        high=1.0,
    ),
)

DRAWN = (16, 4, 0.15)  # with its bounds
_figure = partial(Experiment, paper="cascading-bandits", horizon=HORIZON, runs=RUNS)
TABLES_AGAIN = _figure(
    "cascading-tables",
    "Tables 1 and 2",
    "regret of CascadeUCB1 and CascadeKL-UCB on B_LB, largest and smallest bound first",
    (
        Part(
            PART,
            tuple(b_lb(*setting) for setting in TABLE_1),
            tuple(policy for both in POLICIES.values() for policy in both),
        ),
        *(
            Part(part, (b_lb(*setting),), (KL, f"{KL}(order=ascending)"), runs=10 * RUNS)
            for setting, part in MORE_RUNS.items()
        ),
    ),
    (*_numbers(), *CLAIMS),
    section="section 5.1",
    seconds=100,
    figure=curves((PART,), only=(b_lb(*DRAWN),), bounds={b_lb(*DRAWN): bounds(DRAWN)}),
    facts=lambda outcome: TRIED,
)

LAST, RANKED = "Last-Click", "RankedKL-UCB"


def dbn(satisfaction: float, persistence: float) -> str:
    """The problem of section 5.3."""
    w = "/".join(f"{p:.3g}" for p in attractions(16, 4, 0.15))
    return f"DBN(w={w},s={satisfaction:g},gamma={persistence:g},K=4)"


SETTINGS = tuple((s, g) for s in (1.0, 0.7) for g in (1.0, 0.7))
_NAMES = {dbn(s, g): f"satisfaction {s:g}, persistence {g:g}" for s, g in SETTINGS}

FIGURE_1 = _figure(
    "cascading-1",
    "Figure 1",
    "CascadeKL-UCB on the last click (Last-Click) against RankedKL-UCB in the DBN",
    (Part("cascading-1", tuple(_NAMES), (LAST, RANKED)),),
    (
        Claim(
            "RankedKL-UCB has about three times the regret",
            {where: over(Cell(RANKED, name), Cell(LAST, name)) for name, where in _NAMES.items()},
            **factor(3.0, 2.5, 3.5),
        ),
        Claim(
            "the regret of CascadeKL-UCB flattens (share of the last half)",
            {where: last_half(Cell(LAST, name)) for name, where in _NAMES.items()},
            place="section 5.3",
            high=0.25,
        ),
    ),
    section="section 5.4",
    seconds=40,
    figure=curves(titles=_NAMES),
)

EXPERIMENTS = (TABLES_AGAIN, FIGURE_1)
