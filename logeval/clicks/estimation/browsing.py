"""Impressions and clicks by (item, cell): all that the likelihood of browsing users needs.

A cell is a position (PBM) or a position and previous click (UBM).

What clicks say of examination (PBM, UBM), the items being unknown.

The observed information in the logits of w and e: items meet only through cells, so their block is
diagonal, and what is left for the cells of a group is a Schur complement.

Estimation for browsing users (PBM, UBM): P(click) = w_i e_j for item i in cell j.

A cell is a position (PBM) or a position and previous click (UBM). The impressions n and
clicks c of each (i, j) are all that the likelihood sum c ln(w e) + (n - c) ln(1 - w e) needs.
EM: of an unclicked impression the item was attractive with probability
(1 - e) w / (1 - w e), and the cell examined with probability (1 - w) e / (1 - w e).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from logeval.clicks.estimation import em
from logeval.clicks.estimation.beta import binomial
from logeval.clicks.estimation.em import CAP, EMResult, penalty, ratio, run
from logeval.clicks.estimation.estimates import ModelEstimate, Options, ParameterEstimate
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns, over_expected_clicks
from logeval.clicks.estimation.priors import (
    Pair,
    evidence,
    flat_prior,
    item_prior,
    prior_over_queries,
)
from logeval.clicks.estimation.uncertain import with_uncertainty
from logeval.running.arrays import Bools, Floats, Ints, distinct, sum_by
from logeval.running.kernels import njit


class Cells(NamedTuple):
    """Impressions and clicks by (item, cell); cells of group g are g * J to (g + 1) * J."""

    item: Ints
    cell: Ints
    impressions: Floats
    clicks: Floats
    I: int  # noqa: E741
    J: int  # cells of a group
    G: int
    item_group: Ints  # (I,)

    def by_group(self, size: int) -> Iterator[tuple[int, list[slice]]]:
        """Each group and its rows, in chunks of whole items of about ``size`` rows."""
        group = self.cell // self.J
        new = np.flatnonzero(group[1:] != group[:-1]) + 1
        ends = np.append(np.flatnonzero(self.item[1:] != self.item[:-1]) + 1, len(group))
        bounds = [0, *new.tolist(), len(group)]
        for first, end in itertools.pairwise(bounds):
            if first == end:
                continue
            inside = np.unique(ends[np.searchsorted(ends, np.arange(first + size, end, size))])
            cuts = [first, *inside[inside < end].tolist(), end]
            yield int(group[first]), list(itertools.starmap(slice, itertools.pairwise(cuts)))

    def sums(self, weight: Floats) -> tuple[Floats, Floats]:
        """Sums of a weight per row, by item and by cell."""
        by_item = sum_by(self.item, weight, self.I)
        return by_item, sum_by(self.cell, weight, self.G * self.J)


def fold(
    data: FoldedClicks, cell: Callable[[Patterns], Ints], J: int, G: int, group: Ints
) -> Cells:
    """Cells of the shown (pattern, position)s, whose cell within its group ``cell`` gives.

    Rows of an item, and of a group, follow each other.
    """
    item_group = group[data.item_query]
    columns: list[list[np.ndarray]] = [[], [], [], []]
    for block in data.blocks():
        shown = block.shown
        keys, row = distinct(shown.item * J + cell(block), data.I * J)
        item = keys // J
        columns[0].append(item)
        columns[1].append(item_group[item] * J + keys % J)
        columns[2].append(sum_by(row, shown.count, len(keys)))
        columns[3].append(sum_by(row, shown.clicks, len(keys)))
    joined = [np.concatenate(columns.pop(0)) for _ in range(4)]  # each is freed before the next
    if (joined[0][1:] < joined[0][:-1]).any():  # blocks from disk: in the order of memory
        order = np.lexsort((joined[1], joined[0]))
        joined = [column[order] for column in joined]
    return Cells(joined[0], joined[1], joined[2], joined[3], data.I, J, G, item_group)


CHUNK = 100_000  # rows whose information is in memory at a time


def examination_variances(
    cells: Cells, w: Floats, e: Floats, prior_w: Floats, prior_e: Floats, fixed: Bools
) -> Floats:
    """The variance of the logit of each e, (G * J,).

    The priors are given by their a + b. ``fixed`` cells are taken as known (the PBM's scale), with
    variance 0.
    """
    information_w, information_e = prior_w * w * (1 - w), prior_e * e * (1 - e)
    out = 1.0 / np.maximum(information_e, 1e-12)  # what no row speaks of has its prior alone
    out[fixed] = 0.0
    for g, chunks in cells.by_group(CHUNK):
        mine = slice(g * cells.J, (g + 1) * cells.J)
        schur = np.diag(information_e[mine])
        for rows in chunks:
            schur += _without_items(cells, rows, g, w, e, information_w)
        free = np.flatnonzero(~fixed[mine])
        schur = schur[np.ix_(free, free)]
        ridge = 1e-9 * max(float(np.abs(np.diag(schur)).max(initial=0.0)), 1.0)
        values, vectors = np.linalg.eigh(schur)
        inverse = (vectors / np.maximum(values, ridge)) @ vectors.T
        out[g * cells.J + free] = np.diag(inverse)
    return out


def _without_items(
    cells: Cells, rows: slice, g: int, w: Floats, e: Floats, prior: Floats
) -> Floats:
    """What some items of group g, complete in these rows, say of its cells, (J, J)."""
    item, at = cells.item[rows], cells.cell[rows]
    n, c, J = cells.impressions[rows], cells.clicks[rows], cells.J
    x = np.minimum(w[item] * e[at], 1 - 1e-9)
    slope = (c - n * x) / (1 - x)
    curve = (n - c) * x / (1 - x) ** 2  # minus the second derivative in ln w, ln e
    dw, de = 1 - w[item], 1 - e[at]
    new = np.append(True, item[1:] != item[:-1])
    mine, local, j = item[new], np.cumsum(new) - 1, at - g * J
    items = sum_by(local, curve * dw**2 + slope * w[item] * dw, len(mine))
    items = np.maximum(items + prior[mine], 1e-12)
    cross = np.zeros((len(mine), J))
    cross[local, j] = curve * dw * de
    diagonal = sum_by(j, curve * de**2 + slope * e[at] * de, J)
    return np.diag(diagonal) - (cross / items[:, None]).T @ cross


ROUNDS = 4  # of fitting the prior over queries (scope partial), and then the values
STEPS = 8  # of a sweep of the posterior

Maximise = Callable[[Cells, Pair, Pair, Bools, Options, em.Params], EMResult]


@njit(cache=True, nogil=True)
def expect_rows(
    cells: Cells, active: Bools, w: Floats, e: Floats,
    attractive: Floats, examined: Floats, log_likelihood: Floats,
) -> None:  # fmt: skip
    """Expected attractive impressions by item, examined ones by cell, and ln-likelihood."""
    n, c = cells.impressions, cells.clicks
    for row in range(n.shape[0]):
        i, j = cells.item[row], cells.cell[row]
        g = j // cells.J
        if not active[g]:
            continue
        x = w[i] * e[j]
        unclicked = (n[row] - c[row]) / (1.0 - x)
        attractive[i] += c[row] + unclicked * (1.0 - e[j]) * w[i]
        examined[j] += c[row] + unclicked * (1.0 - w[i]) * e[j]
        if c[row] > 0.0:
            log_likelihood[g] += c[row] * np.log(max(x, 1e-300))
        log_likelihood[g] += (n[row] - c[row]) * np.log1p(-x)


@njit(cache=True, nogil=True)
def complete_rows(
    cells: Cells, w: Floats, e: Floats, u: Floats, attractive: Floats, examined: Floats
) -> None:
    """Draw how many impressions were attractive, and how many examined; u is (2, rows)."""
    n, c = cells.impressions, cells.clicks
    for row in range(n.shape[0]):
        i, j = cells.item[row], cells.cell[row]
        skipped = n[row] - c[row]
        unseen = binomial(skipped, (1.0 - e[j]) * w[i] / (1.0 - w[i] * e[j]), u[0, row])
        attractive[i] += c[row] + unseen
        examined[j] += c[row] + binomial(skipped - unseen, e[j], u[1, row])


def fit_browsing(
    name: str,
    data: FoldedClicks,
    cells: Cells,
    options: Options,
    anchor: Callable[[Floats], Bools],
    possible: Bools,
    maximise: Maximise | None = None,
    largest: Callable[[Floats], float | None] = lambda e: None,
) -> ModelEstimate:
    """Fit w, and e (G, J) in the cells that are ``possible``, (G, J); elsewhere e is 0.

    Only the products w e are observed. The cells that ``anchor`` picks, one of each group, settle
    the scale: they are fitted at first, with their prior, then set to ``largest`` of what that
    found, if to anything, and known from there on. The prior of items is fitted to clicks over
    expected clicks, that over queries (scope ``partial``) to what clicks say of the other cells.
    """
    shape = (cells.G, cells.J)
    maximise = maximise or fit_em
    seen_i, seen_j = cells.sums(cells.impressions)
    items = item_prior(options.smoothing, options.scope, data, *over_expected_clicks(data))
    shared = flat_prior(options.smoothing, shape[1:])
    fixed = ~possible.ravel()

    def fit(x: em.Params) -> EMResult:
        return maximise(cells, (items.a, items.b), _tiled(shared, cells.G), fixed, options, x)

    first = np.where(fixed, 0.0, 0.5)
    result = fit({"w": np.full(cells.I, 0.5), "e": first})
    w, e = result.params["w"], result.params["e"]
    known = anchor(e.reshape(shape)) & possible
    fixed = fixed | known.ravel()
    if (top := largest(e.reshape(shape))) is not None:
        scale = np.maximum(np.where(known, e.reshape(shape), 0.0).max(axis=1), 1e-12) / top
        w = np.minimum(w * scale[cells.item_group], 1 - CAP)
        e = np.minimum((e.reshape(shape) / scale[:, None]).ravel(), 1 - CAP)
    for _ in range(ROUNDS if options.shrinks else 0):
        strength = items.a + items.b, np.tile(shared[0] + shared[1], cells.G)
        variance = examination_variances(cells, w, e, *strength, fixed).reshape(shape)
        shared = prior_over_queries(*evidence(e.reshape(shape), variance, shared))
        result = fit({"w": w, "e": e})
        w, e = result.params["w"], result.params["e"]
    if top is not None and not options.shrinks:
        result = fit({"w": w, "e": e})
        w, e = result.params["w"], result.params["e"]

    def complete(x: em.Params, rng: np.random.Generator) -> dict[str, Pair]:
        attractive, examined = np.zeros(cells.I), np.zeros(cells.G * cells.J)
        u = rng.random((2, len(cells.item)))
        complete_rows(cells, x["w"], x["e"].ravel(), u, attractive, examined)
        return {"w": (attractive, seen_i), "e": (examined.reshape(shape), seen_j.reshape(shape))}

    trials = {"w": seen_i, "e": seen_j.reshape(shape)}
    return with_uncertainty(
        name, data, options, {"w": w, "e": e.reshape(shape)}, complete, {"w": items},
        {"e": shared}, trials, result, {"e": fixed.reshape(shape)}, len(cells.item), STEPS,
    )  # fmt: skip


def with_exact_one(e: ParameterEstimate) -> ParameterEstimate:
    """1 where EM stays below it for the sake of its logarithms."""
    exact = e.map(lambda x: np.where(x >= 1.0 - 1.5 * CAP, 1.0, x))
    return replace(exact, observations=e.observations)


def _tiled(prior: Pair, G: int) -> Pair:
    """The prior of the cells of every group."""
    return np.tile(prior[0], G), np.tile(prior[1], G)


def fit_em(
    cells: Cells, items: Pair, shared: Pair, fixed: Bools, options: Options, start: em.Params
) -> EMResult:
    """EM with priors per item and per cell; ``fixed`` cells stay."""
    (a, b), (c, d) = items, shared
    trials_i, trials_j = cells.sums(cells.impressions)
    cell_group = np.repeat(np.arange(cells.G), cells.J)

    def step(params: dict[str, Floats], active: Bools) -> tuple[dict[str, Floats], Floats]:
        w, e = params["w"], params["e"]
        attractive, examined = np.zeros(cells.I), np.zeros(cells.G * cells.J)
        likelihood = np.zeros(cells.G)
        expect_rows(cells, active, w, e, attractive, examined, likelihood)
        likelihood += sum_by(cells.item_group, penalty(w, a, b), cells.G)
        likelihood += np.where(fixed, 0.0, penalty(e, c, d)).reshape(cells.G, -1).sum(axis=1)
        new_e = np.where(fixed, e, ratio(examined + c, trials_j + c + d))
        return {"w": ratio(attractive + a, trials_i + a + b), "e": new_e}, likelihood

    groups = {"w": cells.item_group, "e": cell_group}
    return run(step, start, groups, cells.G, options.iterations, options.tolerance)


def fit_mle(
    cells: Cells, items: Pair, shared: Pair, fixed: Bools, options: Options, start: em.Params
) -> EMResult:
    """The same penalised likelihood maximised directly: L-BFGS on the logits of w and e."""
    from scipy.optimize import minimize  # at the top it slows down the start of every command

    (a, b), (c_e, d_e) = items, shared
    item, cell, n, c = cells.item, cells.cell, cells.impressions, cells.clicks
    scale = max(float(n.sum()), 1.0)
    trace: list[float] = []

    def objective(z: Floats) -> tuple[float, Floats]:
        w, e = np.minimum(expit(z[: cells.I]), 1 - CAP), np.minimum(expit(z[cells.I :]), 1 - CAP)
        x = w[item] * e[cell]
        value = c @ np.log(np.maximum(x, 1e-300)) + (n - c) @ np.log1p(-x)
        value += penalty(w, a, b).sum() + penalty(e, c_e, d_e)[~fixed].sum()
        slope = (c - n * x) / (1.0 - x)  # d / d ln w = d / d ln e
        by_item, by_cell = cells.sums(slope)
        gradient = np.concatenate(
            [
                by_item * (1 - w) + a - (a + b) * w,
                np.where(fixed, 0.0, by_cell * (1 - e) + c_e - (c_e + d_e) * e),
            ]
        )
        return -value / scale, -gradient / scale

    def note(z: Floats) -> None:
        trace.append(-objective(z)[0] * scale)

    first = logit(np.clip(np.concatenate([start["w"], start["e"]]), 1e-9, 1 - CAP))
    found = minimize(  # type: ignore[call-overload]
        objective,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(logit(1e-9), logit(1 - CAP))] * len(first),
        callback=note,
        options={"maxiter": options.iterations, "ftol": 0.0, "gtol": 1e-9, "maxcor": 30},
    )
    params = {"w": expit(found.x[: cells.I])}
    params["e"] = np.where(fixed, start["e"], expit(found.x[cells.I :]))
    # the line search ends in rounding noise close to the optimum: that is convergence too
    settled = bool(found.success or np.abs(found.jac).max() < 1e-7)
    return EMResult(params, int(found.nit), np.full(cells.G, settled), trace)
