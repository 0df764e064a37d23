"""The SERPs on which models are checked: those held out, if the models were fitted to this log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.estimation.statistics.fold import fold
from logeval.clicks.fit import Fit
from logeval.clicks.quality.randomised import against_randomised, how_to_say
from logeval.clicks.support.selection import selected_by_clicks
from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.log.names import Names
from logeval.log.queries import Query
from logeval.running import seeds

SERPS = 20_000  # more held-out SERPs than this are sampled from


@dataclass(frozen=True)
class Sample:
    """The SERPs to check on, and whether the models were fitted to them."""

    test: Patterns
    fitted_to: bool = False
    notes: list[str] = field(default_factory=list)
    names: Names = field(default_factory=Names)  # of its items


def held_out_sample(models: FittedModels, log: Log, serps: int = SERPS, seed: int = 0) -> Sample:
    """The SERPs of a log to check models on."""
    plan = fit_of_log(models, log)
    if plan is None:
        test, held_out = patterns_of(fold(log)), None
        note = "the models were not fitted to this log: where it differs from theirs, they are off"
    else:
        fitted_to, held_out = plan.patterns()
        test = fitted_to.in_memory() if held_out is None else held_out
        note = (
            "the models were fitted to these SERPs, so the checks are lenient; fit them with "
            "holdout=0.1 to check on others"
        )
    notes = [] if held_out is not None else [note]
    known = [name for name, fitted in models.fitted.items() if not fitted.n_draws]
    if known:
        notes.append(
            f"{', '.join(known)}: there are no draws of the parameters, so they are taken as "
            "known, and their errors count as the model's"
        )
    fitted_to_these = plan is not None and held_out is None
    return sample_of(models.queries, test, serps, seed, fitted_to_these, notes, log.names)


def sample_of(
    queries: list[Query],
    test: Patterns,
    serps: int,
    seed: int,
    fitted_to: bool = False,
    notes: Iterable[str] = (),
    names: Names | None = None,
) -> Sample:
    """At most ``serps`` SERPs of the queries that the models know."""
    notes = list(notes)
    known = test.only(set(queries))
    if not len(known.count):
        raise LogevalError("the log has no SERPs of the queries that the models were fitted to")
    if len(known.count) < len(test.count):
        left_out = int(test.count.sum() - known.count.sum())
        notes.append(f"{left_out:,} SERPs of queries that the models do not know are left out")
    total = int(known.count.sum())
    if total > serps:
        rng = seeds.generator(seed, "checks", "sample")
        each = np.repeat(np.arange(len(known.count)), known.count.astype(np.int64))
        chosen = rng.choice(each, serps, replace=False)
        kept = np.bincount(chosen, minlength=len(known.count)).astype(np.float64)
        known = replace(known, count=kept).take(kept > 0)
        notes.append(f"{serps:,} SERPs, drawn from {total:,}, are checked")
    if (selected := selected_by_clicks(known)) is not None:
        notes.append(selected)
    return Sample(known, fitted_to, notes, names or Names())


def fitted_to_ranked(models: FittedModels, log: Log) -> tuple[FittedModels, pd.DataFrame]:
    """The models fitted again to the ranked lists, and how they predict those in random order."""
    plan = fit_of_log(models, log)
    if plan is None:
        raise LogevalError("randomised: the models were not fitted to this log; fit them to it")
    plan = plan.replace(models=list(models.fitted), holdout="random", verdict=False, out=None)
    try:
        data, test = plan.patterns()
    except LogevalError as error:
        raise LogevalError(
            f"{log.path}: there is not both a ranked part and one in random order ({error}); "
            f"{how_to_say(log)}"
        ) from None
    if test is None:
        raise LogevalError(f"{log.path}: there is no list in random order")
    fitted = {name: plan.fit(name, data) for name in models.fitted}
    found = against_randomised(fitted, test)
    again = FittedModels(fitted, {**models.manifest, "arguments": plan.arguments()})
    return again, found


def fit_of_log(models: FittedModels, log: Log) -> Fit | None:
    """How the models were fitted to this log; None for those from elsewhere."""
    inputs = [{"log": log.identity}]
    if models.manifest.get("stage") != Fit.NAME or models.manifest.get("inputs") != inputs:
        return None
    arguments = dict(models.manifest["arguments"])
    if arguments.get("queries") is not None:  # by their ids, not names
        arguments["queries"] = [Query.of(query) for query in arguments["queries"]]
    return Fit(log, **arguments)
