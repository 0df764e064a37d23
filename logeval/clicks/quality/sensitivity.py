"""How the clicks on a list pull at the parameters: d ln P(c) / d logit of each parameter.

This gradient (the score) serves twice. Its covariance over users of the training lists is the
information that the log holds on the parameters (Fisher), and its covariance with any count of
clicks on the held-out lists is the derivative of the expected count, since
d E[f(c)] / d theta = E[f(c) d ln P(c) / d theta]. Nothing here depends on which model it is: a
chain's score comes from ``chain_gradient_rows`` by the chain rule through its formulas, which are
at most quadratic in a parameter, so central differences are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from logeval.clicks.models.browsing import Browsing
from logeval.clicks.models.chain import spread
from logeval.clicks.models.model import ChainModel, ClickModel, Parameter
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit

INSIDE = 1e-9
STEP = 1e-4


@njit(cache=True, nogil=True)
def chain_gradient_rows(
    w: Floats, stay: Floats, skip: float, clicks: Ints, dw: Floats, dstay: Floats, dskip: Floats
) -> None:
    """d ln P(c) / d w_k, d stay_k and d skip of each row, added to zeros.

    Down to the last click l all is examined: P = prod of w stay, (1 - w) skip. Nothing is clicked
    below it with probability 1 - stay_l + stay_l B_{l+1}, where B_k = (1 - w_k) (1 - skip +
    skip B_{k+1}) is that of no click from k on, examined; B is 1 beyond the end.
    """
    K = w.shape[1]
    B = np.empty(K + 1)
    for i in range(w.shape[0]):
        last = -1
        for k in range(K):
            if clicks[i, k]:
                last = k
        for k in range(last + 1):
            if clicks[i, k]:
                dw[i, k] = 1.0 / w[i, k]
                if k < last:
                    dstay[i, k] = 1.0 / stay[i, k]
            else:
                dw[i, k] = -1.0 / (1.0 - w[i, k])
                dskip[i] += 1.0 / skip
        if last == K - 1:
            continue
        B[K] = 1.0
        for k in range(K - 1, last, -1):
            B[k] = (1.0 - w[i, k]) * (1.0 - skip + skip * B[k + 1])
        if last < 0:
            slope = 1.0 / B[0]  # d ln P / d B_{last+1}
        else:
            below = 1.0 - stay[i, last] + stay[i, last] * B[last + 1]
            dstay[i, last] = (B[last + 1] - 1.0) / below
            slope = stay[i, last] / below
        for k in range(last + 1, K):
            dw[i, k] = -slope * (1.0 - skip + skip * B[k + 1])
            dskip[i] += slope * (1.0 - w[i, k]) * (B[k + 1] - 1.0)
            slope *= (1.0 - w[i, k]) * skip


def shared_size(kind: type[ClickModel], K: int) -> int:
    """The number of parameters that are not items', for lists of up to K."""
    sizes = {"item": 0, "position": K, "transition": K * (K + 1), "scalar": 1}
    return sum(sizes[p.kind] for p in kind.PARAMETERS)


def item_fields(kind: type[ClickModel]) -> list[str]:
    """The item parameters of a model."""
    return [p.field for p in kind.PARAMETERS if p.kind == "item"]


def logit_values(model: ClickModel, K: int) -> Floats:
    """Every parameter of a query in the numbering of ``score``, clipped inside (0, 1)."""
    parts: list[Floats] = [getattr(model, field) for field in item_fields(type(model))]
    shared = [p for p in model.PARAMETERS if p.kind != "item"]
    parts += [sized_like_score(p, getattr(model, p.field), K, 0.5) for p in shared]
    return np.clip(np.concatenate(parts), INSIDE, 1 - INSIDE)


def sized_like_score(p: Parameter, value: Any, K: int, rest: float = 2.0) -> Floats:
    """Numbers of a parameter that items share as for lists of up to K, flat.

    Positions beyond have the last one's, transitions beyond ``rest``; one number holds for all.
    """
    value = np.asarray(value, dtype=np.float64)
    if p.kind == "scalar":
        return value.reshape(1)
    if p.kind == "position":
        value = np.atleast_1d(value)
        return np.pad(value, (0, max(K - len(value), 0)), mode="edge")[:K]
    wide = np.full((K, K + 1), rest if value.ndim else float(value))
    if value.ndim:
        own = min(K, len(value))
        wide[:own, : own + 1] = value[:own, : own + 1]
    return wide.ravel()


def score(model: ClickModel, A: Ints, clicks: Ints, K: int) -> tuple[Floats, Ints]:
    """The score of each row and the number of the parameter of each column, (n, C) both.

    Item parameters are numbered first, field by field over the items of the model, then the
    shared ones, as for lists of up to K.
    """
    if isinstance(model, ChainModel):
        return _chain_score(model, A, clicks, K)
    return _browsing_score(model, A, clicks, K)


def _chain_score(model: ChainModel, A: Ints, clicks: Ints, K: int) -> tuple[Floats, Ints]:
    n, length = A.shape
    x: dict[str, Any] = {}
    for p in model.PARAMETERS:
        value = np.clip(getattr(model, p.field), INSIDE, 1 - INSIDE)
        x[p.field] = value[A] if p.kind == "item" else value
        if p.kind == "position":
            x[p.field] = np.broadcast_to(value[:length], A.shape)
    formulas = model.formulas
    w, stay = spread(x["w"], A.shape), formulas.stay(x)
    skip = float(np.max(formulas.skip(x)))
    dw, dstay, dskip = np.zeros_like(w), np.zeros_like(w), np.zeros(n)
    chain_gradient_rows(w, stay, skip, clicks, dw, dstay, dskip)

    columns, index = [], []
    start, item = model.L * len(item_fields(type(model))), 0
    for p in model.PARAMETERS:
        value = x[p.field]
        up, down = {**x, p.field: value + STEP}, {**x, p.field: value - STEP}
        slope = dstay * (formulas.stay(up) - formulas.stay(down)) / (2 * STEP)
        if p.field == "w":
            slope = slope + dw
        if p.kind == "scalar":
            skips = np.asarray(formulas.skip(up)) - np.asarray(formulas.skip(down))
            total = slope.sum(axis=1) + dskip * float(skips) / (2 * STEP)
            columns.append((total * value * (1 - value))[:, None])
            index.append(np.full((n, 1), start))
            start += 1
            continue
        columns.append(slope * value * (1 - value))
        if p.kind == "item":
            index.append(A + model.L * item)
            item += 1
        else:
            index.append(np.broadcast_to(start + np.arange(length), A.shape))
            start += K
    return _joined(columns, index, n)


def _browsing_score(model: ClickModel, A: Ints, clicks: Ints, K: int) -> tuple[Floats, Ints]:
    """P(c_k = 1 | previous click r) = e(k, r) w: items are w, positions and transitions e."""
    users = model.users
    assert isinstance(users, Browsing)
    n, length = A.shape
    ranks = np.arange(length)
    latest = np.maximum.accumulate(np.where(clicks > 0, ranks + 1, 0), axis=1)
    r = np.concatenate([np.zeros((n, 1), dtype=np.int64), latest[:, :-1]], axis=1)
    w = np.clip(users.w[A], INSIDE, 1 - INSIDE)
    e = np.clip(users.e[ranks, r], INSIDE, 1.0)
    p = np.minimum(w * e, 1 - INSIDE)
    pull = np.where(clicks > 0, 1.0, -p / (1 - p))  # d ln P / d ln w = d ln P / d ln e

    columns, index = [], []
    start, item = model.L * len(item_fields(type(model))), 0
    for parameter in model.PARAMETERS:
        if parameter.kind == "item":
            columns.append(pull * (1 - w))
            index.append(A + model.L * item)
            item += 1
        elif parameter.kind == "scalar":
            columns.append((pull * (1 - w)).sum(axis=1, keepdims=True))
            index.append(np.full((n, 1), start))
            start += 1
        elif parameter.kind == "position":
            columns.append(pull * (1 - e))
            index.append(np.broadcast_to(start + ranks, A.shape))
            start += K
        else:
            columns.append(pull * (1 - e))
            index.append(start + ranks * (K + 1) + r)
            start += K * (K + 1)
    return _joined(columns, index, n)


def _joined(columns: list[Floats], index: list[Ints], n: int) -> tuple[Floats, Ints]:
    if not columns:
        return np.zeros((n, 0)), np.zeros((n, 0), dtype=np.int64)
    joined = np.concatenate(index, axis=1).astype(np.int64)
    return np.ascontiguousarray(np.concatenate(columns, axis=1)), joined
