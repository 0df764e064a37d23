"""Katariya et al.: Bernoulli Rank-1 Bandits for Click Feedback (IJCAI 2017): needles in haystacks.

Figure 1 (equation 8): K = L in 32, 64, 128, p = 0.25, gap 0.5, 2 * 10^6 steps, 20 runs. And the
needle of section 1, where everything else is 0. The paper shows figures and few numbers, so what is
checked is what its text states. Figures 2 and 3 are in ``rank1_log``.

Rank1ElimKL and Rank1Elim have the verdicts as they are printed; the authors' program, which
differs (``policies.rank1elim``), is a variant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from logeval.papers.dcm import independent
from logeval.papers.shared.experiment import Cell, Claim, Experiment, Part, above, factor
from logeval.papers.shared.figures import curves
from logeval.papers.shared.measures import Cases, Measure, last_half, over
from logeval.papers.shared.outcome import Outcome
from logeval.tracks.rank1 import rank1_upper

HORIZON, RUNS = 2_000_000, 20
SIZES = (32, 64, 128)
KL, ELIM = "Rank1ElimKL", "Rank1Elim"
KL_AUTHORS, ELIM_AUTHORS = (f"{name}(budget=authors,partner=fresh)" for name in (KL, ELIM))
ON_PAIRS = ("UCB1Elim", "UCB1", "KL-UCB", "TS")
POLICIES = (KL, KL_AUTHORS, ELIM, ELIM_AUTHORS, *ON_PAIRS)
PRINTED = (
    "the printed algorithm; the authors' program (the variant) has smaller bounds and a fresh "
    "partner for every row and column"
)
# Rank1ElimKL at n = 2 * 10^6, by an independent implementation
INDEPENDENT = {32: 96_000.0, 64: 191_000.0, 128: 448_000.0}


def problem_name(size: int) -> str:
    """The needle with K = L = size."""
    return f"rank1(K={size},L={size},p=0.25,gap=0.5)"


def _named(policy: str) -> str:
    return policy.partition("(")[0]


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


def _on(policy: str, size: int) -> Cell:
    return Cell(policy, problem_name(size))


def _over(a: str, b: str, *sizes: int) -> dict[str, Measure]:
    """The regret of one policy over that of another, by size."""
    name = f"{_named(a)} over {_named(b)}, K = L = "
    return {f"{name}{size}": over(_on(a, size), _on(b, size)) for size in sizes}


def _growths(policy: str) -> dict[str, Measure]:
    pairs = [(size // 2, size) for size in SIZES[1:]]
    return {f"{_named(policy)}, {a} to {b}": over(_on(policy, b), _on(policy, a)) for a, b in pairs}


def _flattens(policy: str) -> dict[str, Measure]:
    return {f"K = L = {size}": last_half(_on(policy, size)) for size in SIZES}


def claim(text: str, cases: Callable[[str, str], Cases], **more: Any) -> Claim:
    """A claim about Rank1ElimKL and Rank1Elim as they are printed; the variant is the program's."""
    program = cases(KL_AUTHORS, ELIM_AUTHORS)
    return Claim(text, cases(KL, ELIM), variants={"as in the authors' program": program}, **more)


FIGURE_1 = Experiment(
    "rank1-1",
    "Figure 1",
    "the needle in a haystack, K = L = 32, 64, 128",
    (Part("rank1-1", tuple(problem_name(size) for size in SIZES), POLICIES),),
    (
        claim(
            "the regret of Rank1ElimKL flattens in all three (share of the last half)",
            lambda kl, elim: _flattens(kl),
            high=0.25,
            reason=PRINTED,
        ),
        claim(
            "the regret of Rank1ElimKL doubles as K and L double",
            lambda kl, elim: _growths(kl),
            **factor(2.0, 1.6, 2.4),
            reason=PRINTED,
        ),
        Claim(
            "the regrets of UCB1, UCB1Elim, KL-UCB and TS quadruple as K and L double",
            {name: ratio for policy in ON_PAIRS for name, ratio in _growths(policy).items()},
            **factor(4.0, 3.3, 4.7),
            reason="perhaps the horizon ends before UCB1Elim has learned, and caps its regret",
        ),
        claim(
            "KL-UCB and TS are below Rank1ElimKL when K and L are small",
            lambda kl, elim: _over("KL-UCB", kl, 32) | _over("TS", kl, 32),
            high=1.0,
        ),
        claim(
            "Rank1ElimKL is below KL-UCB and TS when they are large",
            lambda kl, elim: _over(kl, "KL-UCB", 128) | _over(kl, "TS", 128),
            high=1.0,
            reason=PRINTED,
        ),
        claim(
            "Rank1ElimKL is below Rank1Elim in all three",
            lambda kl, elim: _over(kl, elim, *SIZES),
            high=1.0,
        ),
        claim(
            "Rank1ElimKL is four times better than Rank1Elim in Figure 1a",
            lambda kl, elim: _over(elim, kl, 32),
            **factor(4.0, 3.0, 5.0),
            reason=PRINTED,
        ),
        *(
            independent(f"Rank1ElimKL, K = L = {size}", _on(KL, size), value)
            for size, value in INDEPENDENT.items()
        ),
    ),
    paper="rank1elimkl",
    horizon=HORIZON,
    runs=RUNS,
    section="section 5.1",
    seconds=1800,
    figure=curves(titles={problem_name(size): f"K = L = {size}" for size in SIZES}),
    facts=_facts_1,
)


def empty(size: int) -> str:
    """The needle of section 1 with Delta = 1: every other row and column is 0."""
    return f"rank1(K={size},L={size},p=0,gap=1)"


# Rank1Elim needs K^3 steps to learn at all, so its problems are smaller. The stages of Rank1ElimKL
# are four times as long from one to the next, so K has to grow by as much.
EMPTY = {KL: (8, 32), ELIM: (4, 8), "UCB1": (4, 8)}


def _power(policy: str, power: int, text: str) -> Claim:
    """The regret grows with that power of K, and with none that is half a power off."""
    small, large = EMPTY[policy]
    return Claim(
        f"{text} with K^{power} ({policy}, {small} to {large})",
        over(*(Cell(policy, empty(size), f"rank1-0-{policy}") for size in (large, small))),
        **factor(*((large / small) ** (power + half) for half in (0.0, -0.5, 0.5))),
    )


SECTION_1 = Experiment(
    "rank1-0",
    "section 1",
    "the needle in an empty haystack, where mu = 1 / K",
    tuple(
        Part(f"rank1-0-{policy}", tuple(map(empty, sizes)), (policy,))
        for policy, sizes in EMPTY.items()
    ),
    (
        _power(KL, 2, "the regret of Rank1ElimKL grows"),
        _power(ELIM, 3, "that of Rank1Elim"),
        _power("UCB1", 2, "that of a bandit on pairs"),
        above(
            "Rank1Elim cannot keep up with a bandit on pairs (over UCB1, K = L = 8)",
            over(*(Cell(policy, empty(8), f"rank1-0-{policy}") for policy in (ELIM, "UCB1"))),
        ),
    ),
    paper="rank1elimkl",
    horizon=500_000,
    runs=40,
    section="section 1",
    seconds=60,
    figure=curves(titles={empty(size): f"K = L = {size}" for size in (4, 8, 32)}),
    facts=lambda outcome: [
        "The authors' program gives what was never clicked an upper bound of 1: in an empty "
        "haystack it eliminates nothing and learns nothing, so it is no variant here."
    ],
)

EXPERIMENTS = (SECTION_1, FIGURE_1)
