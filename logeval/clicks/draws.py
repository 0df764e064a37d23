"""Draws of fitted parameters: what else the models could be, for all that the log says.

They are made with the fit, from the joint posterior of all its parameters
(``estimation.posterior``), and kept in its table: draw d of a query is the d-th value of each of
its parameters, so what parameters have to do with each other is in it, and pooled ones are the
same for all queries.
"""

from __future__ import annotations

from dataclasses import replace

from logeval.clicks.fitted import FittedModel
from logeval.errors import LogevalError


def check_draws(fitted: FittedModel, draws: int) -> None:
    """Raise unless the model has as many."""
    have = fitted.n_draws
    if not have:
        raise LogevalError(
            f"{fitted.model} has no draws; fit it to a log with fit-models, or evaluate without"
        )
    if have < draws:
        raise LogevalError(
            f"draws={draws}: {fitted.model} was fitted with {have}; ask for fewer, or fit it with "
            f"draws={draws}"
        )


def drawn(fitted: FittedModel, draw: int) -> FittedModel:
    """Draw number ``draw``, from 1, in place of the fitted values."""
    estimates = {}
    for name, whole in fitted.estimates.items():
        assert whole.draws is not None
        estimates[name] = replace(whole, value=whole.draws[draw - 1])
    return replace(fitted, estimates=estimates)


def some_draws(fitted: FittedModel, most: int) -> list[FittedModel]:
    """Its draws, at most so many; the model itself where it has none."""
    return [drawn(fitted, d + 1) for d in range(min(fitted.n_draws, most))] or [fitted]
