"""What claims are about: regrets and their ratios, with standard errors over runs.

As in the papers, a run is an average over queries, and the standard error is that of the mean of
the runs. A ratio r = mean(a) / mean(b) has the standard error of the mean of (a - r b) / mean(b),
run by run (the delta method); policies of one run met the same users, which makes it small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec

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
P = ParamSpec("P")
Bound = Callable[[int], float]
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


def measure(function: Callable[Concatenate[Outcome, P], Measured]) -> Callable[P, Measure]:
    """Of a function of an outcome and more one of the rest, which gives the measure."""

    def of(*args: P.args, **kwargs: P.kwargs) -> Measure:
        return lambda outcome: function(outcome, *args, **kwargs)

    return of


@measure
def regret(outcome: Outcome, cell: Cell) -> Measured:
    """The regret of a cell at the horizon."""
    return mean(outcome.regret(cell))


@measure
def over(outcome: Outcome, a: Cell, b: Cell | Sequence[Cell], net: Cell | None = None) -> Measured:
    """Regret of a over that of b, or of the best of several; ``net`` is subtracted from both."""
    cells = [b] if isinstance(b, Cell) else b
    x = outcome.regret(a)
    y = min((outcome.regret(cell) for cell in cells), key=lambda regret: float(regret.mean()))
    less = outcome.regret(net) if net is not None else np.zeros(len(x))
    n = min(len(x), len(y), len(less))
    return ratio(x[:n] - less[:n], y[:n] - less[:n])


@measure
def last_half(outcome: Outcome, cell: Cell) -> Measured:
    """The share of the regret in the last half of the steps: 0.5 if nothing is learned."""
    whole = outcome.regret(cell)
    return ratio(whole - outcome.regret(cell, 0.5), whole)


@measure
def quotient(outcome: Outcome, a: Measure, b: Measure) -> Measured:
    """One measure over another, of problems whose users have nothing in common.

    Their relative errors add up in squares.
    """
    x, y = a(outcome), b(outcome)
    value = x.value / y.value
    error = abs(value) * math.hypot(x.stderr / x.value, y.stderr / y.value)
    return Measured(value, error, min(x.runs, y.runs))


@measure
def between(outcome: Outcome, *cells: tuple[Cell, Bound, Bound]) -> Measured:
    """The share of cells whose regret lies between two bounds, functions of the horizon."""
    n = outcome.horizon
    inside = [low(n) <= outcome.regret(cell).mean() <= high(n) for cell, low, high in cells]
    return Measured(float(np.mean(inside)))


def jackknife(statistic: Callable[[Floats], float], by_run: Floats) -> Measured:
    """A function of means over runs; its standard error by leaving out one run (row) at a time."""
    n = len(by_run)
    if n < 2:
        return Measured(statistic(by_run.mean(axis=0)), runs=n)
    left = np.array([statistic(np.delete(by_run, i, axis=0).mean(axis=0)) for i in range(n)])
    stderr = float(np.sqrt((n - 1) * left.var()))
    return Measured(statistic(by_run.mean(axis=0)), stderr, n)
