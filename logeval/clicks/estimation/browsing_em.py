"""Estimation for browsing users (PBM, UBM): P(click) = w_i e_j for item i in cell j.

A cell is a position (PBM) or a position and previous click (UBM). The impressions n and
clicks c of each (i, j) are all that the likelihood sum c ln(w e) + (n - c) ln(1 - w e) needs.
EM: of an unclicked impression the item was attractive with probability
(1 - e) w / (1 - w e), and the cell examined with probability (1 - w) e / (1 - w e).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.optimize import minimize
from scipy.special import expit, logit

from logeval.arrays import Bools, Floats, Ints, distinct, sum_by
from logeval.clicks.estimation import em
from logeval.clicks.estimation.em import CAP, EMResult, penalty, ratio, run
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.estimation.priors import (
    Pair,
    cautious,
    evidence,
    flat_prior,
    prior_over_queries,
)

SHARED_ROUNDS = 4  # of fitting the prior over queries (scope partial), and then the values


@dataclass(frozen=True)
class Cells:
    """Impressions and clicks by (item, cell); cells of group g are g * J to (g + 1) * J."""

    item: Ints
    cell: Ints
    impressions: Floats
    clicks: Floats
    I: int  # noqa: E741
    J: int  # cells of a group
    G: int
    item_group: Ints  # (I,)

    @property
    def group(self) -> Ints:
        """The group of each row."""
        return self.cell // self.J

    def sums(self, weight: Floats) -> tuple[Floats, Floats]:
        """Sums of a weight per row, by item and by cell."""
        by_item = sum_by(self.item, weight, self.I)
        return by_item, sum_by(self.cell, weight, self.G * self.J)


def fold(data: Patterns, cell: Ints, J: int, G: int, group: Ints) -> Cells:
    """Cells of the shown (pattern, position)s, whose cell within its group is given."""
    shown = data.shown
    keys, row = distinct(shown.item * J + cell, data.I * J)
    item, item_group = keys // J, group[data.item_query]
    impressions = sum_by(row, shown.count, len(keys))
    clicks = sum_by(row, shown.clicks, len(keys))
    at = item_group[item] * J + keys % J
    return Cells(item, at, impressions, clicks, data.I, J, G, item_group)


@njit(cache=True, nogil=True)
def expect_rows(
    item: Ints,
    cell: Ints,
    n: Floats,
    c: Floats,
    J: int,
    active: Bools,
    w: Floats,
    e: Floats,
    attractive: Floats,
    examined: Floats,
    log_likelihood: Floats,
) -> None:
    """Expected attractive impressions by item, examined ones by cell, and ln-likelihood."""
    for row in range(item.shape[0]):
        i, j = item[row], cell[row]
        g = j // J
        if not active[g]:
            continue
        x = w[i] * e[j]
        unclicked = (n[row] - c[row]) / (1.0 - x)
        attractive[i] += c[row] + unclicked * (1.0 - e[j]) * w[i]
        examined[j] += c[row] + unclicked * (1.0 - w[i]) * e[j]
        if c[row] > 0.0:
            log_likelihood[g] += c[row] * np.log(max(x, 1e-300))
        log_likelihood[g] += (n[row] - c[row]) * np.log1p(-x)


@dataclass(frozen=True)
class BrowsingFit:
    """The values of items (I,) and cells (G, J), how EM went, and the priors."""

    w: Floats
    e: Floats
    result: EMResult
    strength: Pair  # a + b of items, and of cells
    caution: Pair  # the share of it that intervals rely on

    @property
    def shared_strength(self) -> Floats:
        """a + b of the cells of a group, as far as intervals rely on it, (J,)."""
        return (self.strength[1] * self.caution[1])[: self.e.shape[1]]

    def variances(self, cells: Cells, w: Floats, e: Floats, fixed: Bools) -> tuple[Floats, Floats]:
        """Variances of the logits of w and e, which may have been scaled since."""
        found = variances(cells, w, e, *self.strength, fixed)
        parts = zip((w, e), found, self.strength, self.caution, strict=True)
        var_w, var_e = (cautious(*part) for part in parts)
        return var_w, var_e


def fit_browsing(
    cells: Cells,
    items: tuple[Floats, Floats, Floats],
    options: Options,
    anchor: Callable[[Floats], Bools],
    maximise: Callable[[Cells, Pair, Pair, Options, em.Params], EMResult] | None = None,
) -> BrowsingFit:
    """Fit w and e with the prior ``items`` (a, b, caution), and that of the scope per cell.

    Only the products w e are observed. The prior over queries is fitted to what clicks say of the
    other cells when those that ``anchor`` picks (of e, (G, J)) are taken as known.
    """
    shape = (cells.G, cells.J)
    x = {"w": np.full(cells.I, 0.5), "e": np.full(cells.G * cells.J, 0.5)}
    prior = flat_prior(options.smoothing, shape[1:])
    a, b, careful = items
    caution = np.ones(shape[1:])
    maximise = maximise or fit_em

    def fit() -> EMResult:
        return maximise(cells, (a, b), _tiled(prior, cells.G), options, x)

    result = fit()
    x = result.params
    for _ in range(SHARED_ROUNDS if options.shrinks else 0):
        fixed = anchor(x["e"].reshape(shape)).ravel()
        strength = a + b, np.tile(prior[0] + prior[1], cells.G)
        _, spread = variances(cells, x["w"], x["e"], *strength, fixed)
        of_cells = evidence(x["e"].reshape(shape), spread.reshape(shape), prior)
        prior, caution = prior_over_queries(*of_cells)
        result = fit()
        x = result.params
    strength = a + b, np.tile(prior[0] + prior[1], cells.G)
    relied = careful, np.tile(caution, cells.G)
    return BrowsingFit(x["w"], x["e"].reshape(shape), result, strength, relied)


def _tiled(prior: Pair, G: int) -> Pair:
    """The prior of the cells of every group."""
    return np.tile(prior[0], G), np.tile(prior[1], G)


def fit_em(cells: Cells, items: Pair, shared: Pair, options: Options, start: em.Params) -> EMResult:
    """EM with priors per item and per cell."""
    (a, b), (c, d) = items, shared
    trials_i, trials_j = cells.sums(cells.impressions)
    cell_group = np.repeat(np.arange(cells.G), cells.J)

    def step(params: dict[str, Floats], active: Bools) -> tuple[dict[str, Floats], Floats]:
        w, e = params["w"], params["e"]
        attractive, examined = np.zeros(cells.I), np.zeros(cells.G * cells.J)
        likelihood = np.zeros(cells.G)
        expect_rows(
            cells.item,
            cells.cell,
            cells.impressions,
            cells.clicks,
            cells.J,
            active,
            w,
            e,
            attractive,
            examined,
            likelihood,
        )
        likelihood += sum_by(cells.item_group, penalty(w, a, b), cells.G)
        likelihood += penalty(e, c, d).reshape(cells.G, -1).sum(axis=1)
        new_e = ratio(examined + c, trials_j + c + d)
        return {"w": ratio(attractive + a, trials_i + a + b), "e": new_e}, likelihood

    groups = {"w": cells.item_group, "e": cell_group}
    return run(step, start, groups, cells.G, options.iterations, options.tolerance)


def fit_mle(
    cells: Cells, items: Pair, shared: Pair, options: Options, start: em.Params
) -> EMResult:
    """The same penalised likelihood maximised directly: L-BFGS on the logits of w and e."""
    (a, b), (c_e, d_e) = items, shared
    item, cell, n, c = cells.item, cells.cell, cells.impressions, cells.clicks
    scale = max(float(n.sum()), 1.0)
    trace: list[float] = []

    def objective(z: Floats) -> tuple[float, Floats]:
        w, e = np.minimum(expit(z[: cells.I]), 1 - CAP), np.minimum(expit(z[cells.I :]), 1 - CAP)
        x = w[item] * e[cell]
        value = c @ np.log(np.maximum(x, 1e-300)) + (n - c) @ np.log1p(-x)
        value += penalty(w, a, b).sum() + penalty(e, c_e, d_e).sum()
        slope = (c - n * x) / (1.0 - x)  # d / d ln w = d / d ln e
        by_item, by_cell = cells.sums(slope)
        gradient = np.concatenate(
            [
                by_item * (1 - w) + a - (a + b) * w,
                by_cell * (1 - e) + c_e - (c_e + d_e) * e,
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
    params = {"w": expit(found.x[: cells.I]), "e": expit(found.x[cells.I :])}
    # the line search ends in rounding noise close to the optimum: that is convergence too
    settled = bool(found.success or np.abs(found.jac).max() < 1e-7)
    return EMResult(params, int(found.nit), np.full(cells.G, settled), trace)


def variances(
    cells: Cells, w: Floats, e: Floats, prior_w: Floats, prior_e: Floats, fixed: Bools
) -> tuple[Floats, Floats]:
    """Variances of the logits of w and e, by the inverse of the observed information.

    Items meet only through cells, so the item block is diagonal and the rest is a Schur
    complement of the cells of a group. ``fixed`` cells are taken as known (the PBM's scale).
    """
    item, cell, n, c = cells.item, cells.cell, cells.impressions, cells.clicks
    x = np.minimum(w[item] * e[cell], 1 - 1e-9)
    slope = (c - n * x) / (1 - x)
    curve = (n - c) * x / (1 - x) ** 2  # minus the second derivative in ln w, ln e
    dw, de = 1 - w[item], 1 - e[cell]
    items = sum_by(item, curve * dw**2 + slope * w[item] * dw, cells.I)
    items = np.maximum(items + prior_w * w * (1 - w), 1e-12)
    diagonal = sum_by(cell, curve * de**2 + slope * e[cell] * de, len(e))
    diagonal = diagonal + prior_e * e * (1 - e)
    cross = curve * dw * de
    var_w, var_e = 1.0 / items, np.full(len(e), np.inf)
    var_e[fixed] = 0.0
    order = np.argsort(cells.group, kind="stable")
    bounds = np.searchsorted(cells.group[order], np.arange(cells.G + 1))
    for g in range(cells.G):
        rows = order[bounds[g] : bounds[g + 1]]
        free = np.nonzero(~fixed[g * cells.J : (g + 1) * cells.J])[0]
        place = np.full(cells.J, len(free))
        place[free] = np.arange(len(free))
        mine, local = np.unique(item[rows], return_inverse=True)
        H = np.zeros((len(mine), len(free) + 1))
        H[local, place[cell[rows] - g * cells.J]] = cross[rows]
        H = H[:, :-1]
        schur = np.diag(diagonal[g * cells.J + free]) - (H / items[mine][:, None]).T @ H
        ridge = 1e-9 * max(float(np.abs(np.diag(schur)).max(initial=0.0)), 1.0)
        values, vectors = np.linalg.eigh(schur)
        inverse = (vectors / np.maximum(values, ridge)) @ vectors.T
        var_e[g * cells.J + free] = np.diag(inverse)
        solved = H / items[mine][:, None]
        var_w[mine] += np.einsum("is,st,it->i", solved, inverse, solved)
    return var_w, var_e
