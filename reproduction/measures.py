"""What claims are about: regrets and their ratios, with standard errors over runs.

As in the papers, a run is an average over queries, and the standard error is that of the mean of
the runs. A ratio r = mean(a) / mean(b) has the standard error of the mean of (a - r b) / mean(b),
run by run (the delta method); policies of one run met the same users, which makes it small.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import spearmanr

from logeval.running.arrays import Floats
from logeval.running.words import rounded
from logeval.tracks import lists
from logeval.tracks.rank1 import Hardness, rank1_hardness
from reproduction import theorems
from reproduction.data import Measure

if TYPE_CHECKING:
    from reproduction.run import Outcome


class Measured(NamedTuple):
    """A value and its standard error (nan where there is none)."""

    value: float
    stderr: float = float("nan")
    runs: int = 0  # behind the standard error; 0: it is not a mean of runs


def measured(outcome: Outcome, measure: Measure) -> Measured:
    """What a claim asks for."""
    name, *arguments = measure
    return MEASURES[name](outcome, *arguments)


def with_error(value: float, error: float) -> str:
    """Value and standard error."""
    return rounded(value) if error != error or not error else f"{rounded(value)} ± {rounded(error)}"


def mean(x: Floats) -> Measured:
    stderr = float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else float("nan")
    return Measured(float(x.mean()), stderr, len(x))


def ratio(a: Floats, b: Floats) -> Measured:
    if b.mean() == 0.0:
        return Measured(float("nan"))
    r = a.mean() / b.mean()
    return Measured(float(r), mean((a - r * b) / b.mean()).stderr, len(a))


def regret(outcome: Outcome, cell: str) -> Measured:
    return mean(outcome.regret(cell))


def over(outcome: Outcome, a: str, b: str | Sequence[str]) -> Measured:
    """Regret of a over that of b, or of the best of several."""
    x = outcome.regret(a)
    others = [outcome.regret(cell) for cell in ([b] if isinstance(b, str) else b)]
    y = min(others, key=lambda one: float(one.mean()))
    n = min(len(x), len(y))
    return ratio(x[:n], y[:n])


def last_half(outcome: Outcome, cell: str) -> Measured:
    """The share of the regret in the last half of the steps: 0.5 if nothing is learned."""
    whole = outcome.regret(cell)
    return ratio(whole - outcome.regret(cell, 0.5), whole)


def quotient(outcome: Outcome, a: Measure, b: Measure) -> Measured:
    """One measure over another, of problems whose users have nothing in common.

    Their relative errors add up in squares.
    """
    x, y = measured(outcome, a), measured(outcome, b)
    value = x.value / y.value
    error = abs(value) * math.hypot(x.stderr / x.value, y.stderr / y.value)
    return Measured(value, error, min(x.runs, y.runs))


def parameters(problem: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=([^,)]+)", problem))


def bounds(paper: str, problem: str) -> dict[str, Callable[[int], float]]:
    """The theorems of cascading-bandits or dcm-bandits on B_LB as functions of n."""
    of = {name: float(value) for name, value in parameters(problem).items()}
    L, K, slope = int(of["L"]), int(of["K"]), lists.b_lb_lower_slope(problem)
    assert slope is not None
    w, v = np.where(np.arange(L) < K, of["p"], of["p"] - of["gap"]), np.full(K, of["gamma"])
    lower = {f"Theorem {3 if paper == 'dcm' else 4} (lower)": lambda n: float(slope * np.log(n))}
    if paper == "dcm":
        return lower | {"Theorem 1 (upper, dcmKL-UCB)": lambda n: theorems.dcm_upper(w, v, n)}
    return lower | {
        "Theorem 3 (upper, CascadeKL-UCB)": lambda n: float(theorems.cascade_kl_upper(w, K, n)),
        "Theorem 2 (upper, CascadeUCB1)": lambda n: float(theorems.cascade_ucb1_upper(w, K, n)),
    }


def between(outcome: Outcome, paper: str, *policies: str) -> Measured:
    """The share of the first part's problems and policies whose regret is between the bounds."""
    n, inside = outcome.horizon, []
    for problem in outcome.experiment.parts[0].problems:
        (_, lower), *uppers = bounds(paper, problem).items()
        for policy in policies:
            (upper,) = (bound for name, bound in uppers if f" {policy})" in name)
            inside.append(lower(n) <= outcome.regret(f"{policy} @ {problem}").mean() <= upper(n))
    return Measured(float(np.mean(inside)))


def jackknife(statistic: Callable[[Floats], float], by_run: Floats) -> Measured:
    """A function of means over runs; its standard error by leaving out one run (row) at a time."""
    n = len(by_run)
    if n < 2:
        return Measured(statistic(by_run.mean(axis=0)), runs=n)
    left = np.array([statistic(np.delete(by_run, i, axis=0).mean(axis=0)) for i in range(n)])
    stderr = float(np.sqrt((n - 1) * left.var()))
    return Measured(statistic(by_run.mean(axis=0)), stderr, n)


# -- dcm-bandits


def linearity(outcome: Outcome, K: int) -> Measured:
    """R^2 of a straight line through the regrets by gamma."""
    cells = {
        float(given["gamma"]): f"dcmKL-UCB @ {problem}"
        for problem in outcome.experiment.parts[0].problems
        if (given := parameters(problem))["K"] == str(K)
    }

    def r_squared(y: Floats) -> float:
        fit = np.polyval(np.polyfit(list(cells), y, 1), list(cells))
        return float(1.0 - ((y - fit) ** 2).sum() / ((y - y.mean()) ** 2).sum())

    return jackknife(r_squared, np.column_stack([outcome.regret(c) for c in cells.values()]))


def growth_with_gamma(outcome: Outcome, K: int) -> Measured:
    """The regret at gamma = 1 over that at gamma = 0.5: 2 where it is proportional to gamma."""
    a, b = (f"dcmKL-UCB @ B_LB(L=16,K={K},p=0.2,gap=0.15,gamma={gamma})" for gamma in (1, 0.5))
    return over(outcome, a, b)


def first_is_largest(outcome: Outcome, part: str) -> Measured:
    """The share of queries whose first position terminates most."""
    models = outcome.models[part].values()
    return Measured(float(np.mean([int(np.argmax(model.v)) == 0 for model in models])))


SIGNIFICANCE = 0.01  # of the test whether terminations rise


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
    v, last = fit.estimates["v"], fit.positions - 1
    found = [rises(v.value[q, :K], v.observations[q, :K]) for q, K in enumerate(last)]
    return Measured(float(sum(found)))


# -- rank1elimkl


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


def follows_the_bound(outcome: Outcome, policy: str) -> Measured:
    """Spearman's correlation of regret and 1 / (mu gamma) over the queries, as in Theorem 1.

    Its standard error is that of unrelated ranks, 1 / sqrt(queries - 1).
    """
    hard = hardnesses(outcome, "rank1-3-raw")
    regrets = [outcome.regret(policy, query=query).mean() for query in hard]
    found = spearmanr(regrets, [1.0 / (h.mu * h.gamma) for h in hard.values()])
    return Measured(float(found.statistic), 1.0 / np.sqrt(len(hard) - 1))


# -- gl-cdcm


def contextual_upper(n: float, d: int = 20, K: int = 5) -> float:
    """Theorem 1 (equation 7) as a function of n, without its constants; lambda = K."""
    rows = math.log((1.0 + n / (K * d)) * math.sqrt(n))
    return math.sqrt(n * K * rows * math.log(1.0 + n / d))


def growth_over_bound(outcome: Outcome, policy: str) -> Measured:
    """How much faster than Theorem 1's bound the regret grows from n / 2 to n."""
    whole, half, n = outcome.regret(policy), outcome.regret(policy, 0.5), outcome.horizon
    return ratio(whole / contextual_upper(n), half / contextual_upper(n / 2))


def distance_over(outcome: Outcome, *policies: str) -> Measured:
    """The distance of theta, mean over the steps that were recorded, over that of another."""
    rows = [outcome.rows(policy).groupby("run") for policy in policies]
    return ratio(*(one["cosine_distance"].mean().to_numpy(dtype=float) for one in rows))


HALF_BLOCK = 250  # the ground set changes every 500 rounds


def stairs(outcome: Outcome, policy: str) -> Measured:
    """The regret of the half block after a change over that of the half block before it.

    A curve that only flattens has less than 1; above 1 it rises anew with every ground set.
    """
    ends = np.arange(HALF_BLOCK, outcome.horizon + 1, HALF_BLOCK)
    rows = outcome.rows(policy)
    at = rows[rows["t"].isin(ends)].pivot(index="run", columns="t", values="regret")
    if len(ends) < 3 or list(at.columns) != list(ends):
        return Measured(math.nan)  # another horizon has other checkpoints
    halves = np.diff(at.to_numpy(dtype=float), axis=1, prepend=0.0)
    after, before = halves[:, 2::2], halves[:, 1:-1:2]
    return ratio(after.sum(axis=1), before.sum(axis=1))


MEASURES: Mapping[str, Callable[..., Measured]] = {
    function.__name__: function
    for function in (
        regret, over, last_half, quotient, between, linearity, growth_with_gamma, first_is_largest,
        rising, follows_the_bound, growth_over_bound, distance_over, stairs,
    )
}  # fmt: skip
