"""Expectation-maximisation, one driver for all models.

``step`` maps parameters to better ones and gives the penalised ln-likelihood of those it was
given, by group (a query, or all of them when pooled). A group stops when a step changes its
likelihood by less than ``tolerance`` relative to its size; its parameters stay as they are, so a
query's fit does not depend on which other queries are fitted along with it.

Two steps of EM, x0 -> x1 -> x2, show where a group is heading, and a third evaluation jumps there:
SQUAREM (Varadhan and Roland, Scandinavian Journal of Statistics 2008, scheme S3) on the logits,

    x0 - 2 alpha r + alpha^2 v,   r = x1 - x0,   v = x2 - x1 - r,   alpha = -|r| / |v|,

followed by a step of EM from there. A jump that does not raise the likelihood of a group is not
made, so that the likelihood never falls. With ``tolerance`` 0 there are exactly ``iterations``
plain steps, as in other libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from logeval.running.arrays import Bools, Floats, Ints, sum_by

Params = dict[str, Floats]
Step = Callable[[Params, Bools], tuple[Params, Floats]]
CAP = 1e-6  # values stay at most 1 - CAP, so that no observation becomes impossible
TINY = 1e-12  # below this a value is taken as zero, and not extrapolated
LONGEST = 256.0  # the longest jump, in steps of EM


@dataclass(frozen=True)
class EMResult:
    """The final parameters, steps done, which groups converged, likelihood by step."""

    params: Params
    iterations: int
    converged: Bools
    trace: list[float]


def run(
    step: Step, params: Params, group: dict[str, Ints], G: int, iterations: int, tolerance: float
) -> EMResult:
    """Iterate ``step``; ``group[name]`` is the group of each row of ``params[name]``."""
    active = np.ones(G, dtype=np.bool_)
    likelihood = np.full(G, -np.inf)
    trace: list[float] = []
    done, x = 0, params
    before: list[Params] = []  # the parameters of the last two steps, since the last jump

    while done < iterations:
        new, now = step(x, active)
        done += 1
        now = np.where(active, now, likelihood)
        trace.append(float(now.sum()))
        with np.errstate(invalid="ignore"):
            active &= ~(np.abs(now - likelihood) <= tolerance * np.abs(now))
        likelihood = now
        if not active.any():
            break
        before, x = [*before, x], _chosen(active, new, x, group)
        if len(before) < 2 or tolerance <= 0.0 or done >= iterations:
            continue
        jumped = _jump(before[0], before[1], x, group, len(active))
        new, now = step(jumped, active)
        done += 1
        better = active & (now >= likelihood)
        likelihood = np.where(better, now, likelihood)
        trace.append(float(likelihood.sum()))
        x, before = _chosen(better, new, x, group), []
    return EMResult(x, done, ~active, trace)


def _jump(x0: Params, x1: Params, x2: Params, group: dict[str, Ints], G: int) -> Params:
    """Where two steps of EM are heading, by group."""
    z = [{n: logit(np.clip(v, TINY, 1 - CAP)) for n, v in x.items()} for x in (x0, x1, x2)]
    r = {n: z[1][n] - z[0][n] for n in x0}
    v = {n: z[2][n] - z[1][n] - r[n] for n in x0}

    def length(y: Params) -> Floats:
        total = np.zeros(G)
        for name, value in y.items():
            total += sum_by(group[name], (value**2).reshape(len(value), -1).sum(axis=1), G)
        return np.sqrt(total)

    alpha = np.clip(length(r) / np.maximum(length(v), 1e-300), 1.0, LONGEST)
    jumped = {}
    for name in x0:
        a = _match(alpha[group[name]], r[name])
        there = expit(z[0][name] + 2 * a * r[name] + a**2 * v[name])
        inside = (x2[name] > TINY) & (x2[name] < 1 - CAP)
        jumped[name] = np.where(inside, np.clip(there, TINY, 1 - CAP), x2[name])
    return jumped


def _chosen(on: Bools, new: Params, old: Params, group: dict[str, Ints]) -> Params:
    """The new parameters of the groups that are on, the old ones of the others."""
    return {n: np.where(_match(on[group[n]], new[n]), new[n], old[n]) for n in old}


def _match(on: np.ndarray, value: Floats) -> np.ndarray:
    return on.reshape(on.shape + (1,) * (value.ndim - 1))


def penalty(x: Floats, a: Floats | float, b: Floats | float) -> Floats:
    """a ln(x) + b ln(1 - x), nothing where the pseudo-count is zero."""
    a, b = np.broadcast_to(a, x.shape), np.broadcast_to(b, x.shape)
    up = np.log(np.maximum(x, 1e-300), where=a > 0, out=np.zeros(x.shape))
    return a * up + b * np.log1p(-np.minimum(x, 1 - 1e-16))


def ratio(num: Floats, den: Floats, most: float = 1.0 - CAP) -> Floats:
    """num / den, 0.5 where nothing was observed, at most ``most``."""
    value = np.divide(num, den, out=np.full(num.shape, 0.5), where=den > 0)
    return np.minimum(value, most)


def warning(model: str, result: EMResult, iterations: int) -> list[str]:
    """A note where EM reached its cap."""
    late = int((~result.converged).sum())
    if not late:
        return []
    return [
        f"{model}: EM had not converged after {iterations} iterations in {late} of "
        f"{len(result.converged)} fits; raise iterations, or tolerance"
    ]
