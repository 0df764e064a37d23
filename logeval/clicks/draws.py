"""Draws of fitted parameters: what else the models could be, for all that the log says.

They are made with the fit, from the joint posterior of all its parameters
(``estimation.posterior``), and kept in its table: draw d of a query is the d-th value of each of
its parameters, so what parameters have to do with each other is in it, and pooled ones are the
same for all queries.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from logeval.clicks.fitted import FittedModel
from logeval.errors import LogevalError


def check_draws(fitted: FittedModel, draws: int) -> None:
    """Raise unless the model has as many."""
    kept = [fitted.estimates[p.field].draws for p in fitted.kind.PARAMETERS]
    if any(x is None for x in kept):
        raise LogevalError(
            f"{fitted.model} has no draws; fit it to a log with fit-models, or evaluate without"
        )
    have = min(len(x) for x in kept if x is not None)
    if have < draws:
        raise LogevalError(
            f"draws={draws}: {fitted.model} was fitted with {have}; ask for fewer, or fit it with "
            f"draws={draws}"
        )


def drawn(fitted: FittedModel, draw: int) -> FittedModel:
    """Draw number ``draw``, from 1, in place of the fitted values."""
    estimates = dict(fitted.estimates)
    for p in fitted.kind.PARAMETERS:
        whole = estimates[p.field]
        assert whole.draws is not None
        estimates[p.field] = replace(whole, value=whole.draws[draw - 1])
    return replace(fitted, estimates=estimates)


def draws_of(fitted: FittedModel, n: int) -> list[FittedModel]:
    """Up to n draws in place of the fitted values; the model itself where it has none."""
    kept = [fitted.estimates[p.field].draws for p in fitted.kind.PARAMETERS]
    D = min(0 if x is None else len(x) for x in kept)
    return (
        [drawn(fitted, int(d) + 1) for d in np.arange(min(n, D)) * D // min(n, D)]
        if D
        else [fitted]
    )
