"""What claims are about: regrets and their ratios, with standard errors over runs.

As in the papers, a run is an average over queries, and the standard error is that of the mean of
the runs. A ratio r = mean(a) / mean(b) has the standard error of the mean of (a - r b) / mean(b),
run by run (the delta method); policies of one run met the same users, which makes it small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from logeval.papers.experiment import Cell
from logeval.running.arrays import Floats

if TYPE_CHECKING:
    from logeval.papers.outcome import Outcome


class Measured(NamedTuple):
    """A value and its standard error (nan where there is none)."""

    value: float
    stderr: float = float("nan")
    runs: int = 0  # behind the standard error; 0: it is not a mean of runs


Measure = Callable[["Outcome"], Measured]
Cases = Measure | Mapping[str, Measure]  # one, or several by name


def mean(x: Floats) -> Measured:
    """The mean over runs."""
    stderr = float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else float("nan")
    return Measured(float(x.mean()), stderr, len(x))


def ratio(a: Floats, b: Floats) -> Measured:
    """mean(a) / mean(b)."""
    if b.mean() == 0.0:
        return Measured(float("nan"))
    r = a.mean() / b.mean()
    return Measured(float(r), mean((a - r * b) / b.mean()).stderr, len(a))


@dataclass(frozen=True)
class Regret:
    """The regret of a cell."""

    cell: Cell

    def __call__(self, outcome: Outcome) -> Measured:
        """At the horizon."""
        return mean(outcome.regret(self.cell))


@dataclass(frozen=True)
class Ratio:
    """Regret of a over that of b, or of the best of several; ``net`` is subtracted from both."""

    a: Cell
    b: Cell | Sequence[Cell]
    net: Cell | None = None

    def __call__(self, outcome: Outcome) -> Measured:
        """At the horizon."""
        cells = [self.b] if isinstance(self.b, Cell) else self.b
        a = outcome.regret(self.a)
        b = min((outcome.regret(cell) for cell in cells), key=lambda x: float(x.mean()))
        net = outcome.regret(self.net) if self.net is not None else np.zeros(len(a))
        n = min(len(a), len(b), len(net))
        return ratio(a[:n] - net[:n], b[:n] - net[:n])


@dataclass(frozen=True)
class LastHalf:
    """The share of the regret in the last half of the steps: 0.5 if nothing is learned."""

    cell: Cell

    def __call__(self, outcome: Outcome) -> Measured:
        """(R(n) - R(n/2)) / R(n)."""
        whole = outcome.regret(self.cell)
        return ratio(whole - outcome.regret(self.cell, 0.5), whole)


@dataclass(frozen=True)
class Quotient:
    """One ratio over another, of problems whose users have nothing in common."""

    a: Ratio
    b: Ratio

    def __call__(self, outcome: Outcome) -> Measured:
        """Their relative errors add up in squares."""
        a, b = self.a(outcome), self.b(outcome)
        value = a.value / b.value
        return Measured(
            value,
            abs(value) * math.hypot(a.stderr / a.value, b.stderr / b.value),
            min(a.runs, b.runs),
        )


def jackknife(statistic: Callable[[Floats], float], by_run: Floats) -> Measured:
    """A function of means over runs; its standard error by leaving out one run (row) at a time."""
    n = len(by_run)
    if n < 2:
        return Measured(statistic(by_run.mean(axis=0)), runs=n)
    left = np.array([statistic(np.delete(by_run, i, axis=0).mean(axis=0)) for i in range(n)])
    stderr = float(np.sqrt((n - 1) * left.var()))
    return Measured(statistic(by_run.mean(axis=0)), stderr, n)


@dataclass(frozen=True)
class Between:
    """The share of cells whose regret lies between two bounds."""

    cells: tuple[tuple[Cell, Callable[[int], float], Callable[[int], float]], ...]

    def __call__(self, outcome: Outcome) -> Measured:
        """The bounds are functions of the horizon."""
        n = outcome.horizon
        inside = [
            low(n) <= outcome.regret(cell).mean() <= high(n) for cell, low, high in self.cells
        ]
        return Measured(float(np.mean(inside)))
