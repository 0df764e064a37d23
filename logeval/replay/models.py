"""Click models fitted to the log, or to a resampled one, for the estimators that need one.

They are fitted to whole lists, also when only the first K positions count: what was clicked
further down says something about items that the target moves up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from logeval.clicks.estimation.classes import number_of
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Counted, FoldedClicks
from logeval.clicks.estimation.priors import check
from logeval.clicks.fitted import FittedModel
from logeval.clicks.fitting import fit_mixture, fit_one
from logeval.clicks.models.registry import AUTO, MODELS, members_of, model_names, model_of
from logeval.clicks.quality.scores import score_model
from logeval.errors import LogevalError
from logeval.replay.estimators import OF_CELLS, Estimator
from logeval.replay.logged import Logged, thinned
from logeval.running.arrays import Floats

CANDIDATES = ("pbm", "dcm", "ubm", "dbn")  # of ``auto``
HELD_OUT = 0.2  # of the sessions


def fit(name: str, logged: Logged, weight: Floats, scope: str) -> FittedModel:
    """A click model fitted to the patterns with these numbers of SERPs."""
    (name,) = model_names([name])
    patterns = logged.patterns
    if logged.placed:
        if model_of(name)[0] not in OF_CELLS:
            raise LogevalError(
                f"{name}: needs lists, and the log holds single placements; take a model of item "
                f"and position ({', '.join(OF_CELLS)})"
            )
        own = {f.name: getattr(patterns, f.name) for f in fields(patterns)}
        patterns = Counted(**own)
    data = replace(patterns, count=weight.astype(np.float64)).take(weight > 0)
    return _fit(name, data, {"scope": scope})


def _fit(name: str, data: FoldedClicks, settings: Mapping[str, str]) -> FittedModel:
    base, own = model_of(name)
    asked = {**settings, **own}
    if members := members_of(name):
        return fit_mixture(
            name, members, data, lambda one, part, _: _fit(one, part, asked), intervals=False
        )
    # by EM where it has it: exact, and counting is biased (DCM, SDBN)
    options = Options(
        MODELS[base].method(asked.get("method", "em")),
        asked["scope"],
        check(asked.get("smoothing", "empirical-bayes")),
        classes=number_of(asked.get("classes", 1)),
        intervals=False,  # those of estimates come from resampled logs
    )
    return fit_one(name, data, options)


def fit_models(
    estimators: Sequence[Estimator], whole: Logged, weight: Floats, scope: str
) -> dict[str, FittedModel]:
    """The click models that the estimators need, fitted to ``weight`` (P,) SERPs per pattern."""
    names = sorted({e.needs for e in estimators if e.needs is not None})
    return {name: fit(name, whole, weight, scope) for name in names}


def with_best_model(
    estimators: Sequence[Estimator],
    whole: Logged,
    scope: str,
    seed: int,
    candidates: Sequence[str] = CANDIDATES,
) -> tuple[list[Estimator], dict[str, float] | None]:
    """The estimators with the click model that predicts best in place of ``auto``.

    Also the log-likelihoods per result of the sessions that were held out for it, by model, the
    best first; none where no estimator leaves the model open.
    """
    if all(e.model != AUTO for e in estimators):
        return list(estimators), None
    held_out = thinned(whole, HELD_OUT, seed)
    rest = whole.patterns.count - held_out
    own = replace(whole.patterns, count=held_out).take(held_out > 0)
    found = dict.fromkeys(candidates, math.nan)
    if len(own.count) and rest.any():
        for name in candidates:
            score = score_model(fit(name, whole, rest, scope), own)
            found[name] = score.headline()["log_likelihood"]
    found = dict(sorted(found.items(), key=lambda each: -each[1]))
    best = next(iter(found))
    named = [replace(e, click_model=best) if e.model == AUTO else e for e in estimators]  # type: ignore[call-arg]
    return list(dict.fromkeys(named)), found
