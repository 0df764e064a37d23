"""Fit click models to a log: serps -> click statistics -> models."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from logeval.clicks.collection import FittedModels, read_models, refuse_to_replace
from logeval.clicks.estimation.click_statistics import Holdout, fold_patterns
from logeval.clicks.estimation.estimates import EstimationResult, Options
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.estimation.priors import check
from logeval.clicks.fitted import SCOPES, FittedModel, averaged
from logeval.clicks.models.registry import MODELS, check_options, model_names
from logeval.clicks.quality.scores import score_model
from logeval.errors import LogevalError, unknown_names
from logeval.log.log import Log, load
from logeval.log.queries import GivenQueries, Query, given_queries
from logeval.running.arrays import Bools
from logeval.running.progress import Progress
from logeval.storage import tables

MOST_DRAWS = 1_000  # each as large as the table of models without them
NO_CLICK = "there is no click in these SERPs"
METHODS = {method for m in MODELS.values() for method in (*m.methods, *m.ALIASES)}


@dataclass(frozen=True)
class FitPlan:
    """What is to be fitted, to which part of a log, and how; see ``fit_models``."""

    models: list[str]
    method: str | None = None
    scope: str = "partial"
    smoothing: str = "empirical-bayes"
    top_queries: int | None = None
    queries: list[Query] | None = None
    min_impressions: int = 0
    holdout: str | float | None = None
    iterations: int = Options.iterations
    tolerance: float = Options.tolerance
    draws: int = Options.draws
    seed: int = 0
    options: Mapping[str, str] = field(default_factory=dict)  # of single models

    @classmethod
    def of(cls, models: str | Iterable[str], *, queries: GivenQueries, **more: Any) -> FitPlan:
        """A plan from what users give, with its names checked."""
        names = model_names([models] if isinstance(models, str) else models)
        chosen = given_queries(queries)
        own = {name: more.pop(name) for name in list(more) if name not in cls.__annotations__}
        if more.get("scope") is None:
            priors = more.get("smoothing", cls.smoothing) == "empirical-bayes"
            more["scope"] = "partial" if priors else "per-query"
        plan = cls(names, queries=chosen, options=check_options(names, own), **more)
        if plan.method is not None and plan.method not in METHODS:
            raise unknown_names("method", [plan.method], METHODS)
        if plan.scope not in SCOPES:
            raise unknown_names("scope", [plan.scope], SCOPES)
        check(plan.smoothing)
        if plan.scope == "partial" and plan.smoothing != "empirical-bayes":
            raise LogevalError(
                f"scope=partial is a prior fitted over queries, smoothing={plan.smoothing} is "
                "another one; use scope=per-query"
            )
        Holdout.parse(plan.holdout)
        plan.check_numbers()
        return plan

    def check_numbers(self) -> None:
        """Raise for numbers with which nothing can be fitted."""
        least_of = {"top_queries": 1, "min_impressions": 0, "iterations": 1, "draws": 0}
        for name, least in least_of.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise LogevalError(f"{name}={value}: must be at least {least}")
        if self.draws > MOST_DRAWS:
            raise LogevalError(f"draws={self.draws}: at most {MOST_DRAWS:,} are kept")
        if not 0.0 <= self.tolerance < 1.0:
            raise LogevalError(f"tolerance={self.tolerance}: must be between 0 and 1")
        if self.queries is not None and not self.queries:
            raise LogevalError("queries is empty; leave it out to fit all queries")

    def arguments(self) -> dict[str, Any]:
        """The plan as a manifest records it."""
        queries = None if self.queries is None else [str(q) for q in self.queries]
        holdout = None if self.holdout is None else str(self.holdout)
        return {**vars(self), "queries": queries, "holdout": holdout, "options": dict(self.options)}

    def manifest(self, log: Log) -> tables.Manifest:
        """The manifest of the models that the plan makes of a log."""
        return tables.manifest_of("fit-models", self.arguments(), [{"log": log.identity}])

    def patterns(
        self, log: Log, scheduler: str | None = None
    ) -> tuple[FoldedClicks, Patterns | None]:
        """Training and held-out patterns of a log, folded on a Dask cluster if one is named."""
        data, held_out = fold_patterns(
            log,
            queries=self.queries,
            top_queries=self.top_queries,
            holdout=self.holdout,
            seed=self.seed,
            scheduler=scheduler,
        )
        if data is None:
            raise LogevalError(f"{log.path}: there are no SERPs to fit; check queries and holdout")
        if (most := int(data.impressions.max())) < self.min_impressions:
            raise LogevalError(
                f"{log.path}: min_impressions={self.min_impressions} leaves no item; the one shown "
                f"most was shown {most:,} times"
            )
        if self.holdout is not None and held_out is None:
            raise LogevalError(f"{log.path}: holdout={self.holdout} leaves no SERPs to score")
        return data, held_out

    def fit(self, name: str, data: FoldedClicks) -> FittedModel:
        """One of the models, fitted to patterns."""
        options = Options(
            MODELS[name].method(self.method),
            self.scope,
            check(self.smoothing),
            self.iterations,
            self.tolerance,
            self.options,
            self.draws,
            self.seed,
        )
        return replace(fit_one(name, data, options, self.min_impressions), base=data.base)


def fit_models(
    log: Log | Path | str,
    models: str | Iterable[str],
    *,
    method: str | None = None,
    scope: str | None = None,
    smoothing: str = "empirical-bayes",
    top_queries: int | None = None,
    queries: GivenQueries = None,
    min_impressions: int = 0,
    holdout: str | float | None = None,
    iterations: int = Options.iterations,
    tolerance: float = Options.tolerance,
    draws: int = Options.draws,
    out: Path | str | None = None,
    overwrite: bool = False,
    seed: int = 0,
    scheduler: str | None = None,
    quiet: bool = False,
    **options: str,
) -> FittedModels:
    """Fit one or more click models to the SERPs of a log.

    ``log`` is the folder of an ingested log, or what ``logeval.load`` gives. ``method`` applies
    to the models that have it; the others use their own. So do ``options``, which a model declares
    (``OPTIONS``), as ``last_termination="raw"`` of the DCM. ``scope`` says what queries share
    (``clicks.fitted.SCOPES``); by default they are shrunk towards each other (``partial``) where
    the smoothing is empirical Bayes, and apart (``per-query``) elsewhere. With ``holdout`` (a share
    of the sessions such as 0.1, or ``"days:25-27"``) the rest is fitted and the held-out part
    scored. ``draws`` of the parameters are kept for ``evaluate(draws=...)``. With ``out`` the
    models are written there, unless they are there already; other models that are there stay, and
    it is an error, without ``overwrite``. With a ``scheduler`` the log is folded by the workers of
    that Dask cluster, which must see it.
    """
    plan = FitPlan.of(
        models,
        method=method,
        scope=scope,
        smoothing=smoothing,
        top_queries=top_queries,
        queries=queries,
        min_impressions=min_impressions,
        holdout=holdout,
        iterations=iterations,
        tolerance=tolerance,
        draws=draws,
        seed=seed,
        **options,
    )
    log = load(log)
    manifest = plan.manifest(log)
    if out is not None and tables.same_work(Path(out), manifest):
        return read_models(out)
    if out is not None and not overwrite:
        refuse_to_replace(out)

    data, held_out = plan.patterns(log, scheduler)
    fitted = {}
    with Progress("fit", total=len(plan.models), unit="models", quiet=quiet) as progress:
        for name in plan.models:
            fitted[name] = plan.fit(name, data)
            if held_out is not None:
                fitted[name].report.update(score_model(fitted[name], held_out).headline())
            progress.advance(1)
    manifest["models"] = {name: f.report for name, f in fitted.items()}
    manifest["log_folder"] = str(log.path)
    result = FittedModels(fitted, manifest)
    if out is not None:
        result.write(out, overwrite)
    return result


def fit_one(
    name: str, data: FoldedClicks, options: Options, min_impressions: int = 0
) -> FittedModel:
    """One model fitted to all queries of ``data``; rarely shown items are dropped afterwards."""
    start, cpu = time.perf_counter(), time.process_time()
    kind = MODELS[name]
    fit = kind.fit(data, options)
    G, group = options.groups(data)
    weight = np.zeros(G)
    np.add.at(weight, group, data.serps)
    longest = np.zeros(G, dtype=np.int64)
    np.maximum.at(longest, group, data.positions)
    unseen_items, unseen_query = {}, {}
    for p in kind.PARAMETERS:
        if p.kind == "item":
            unseen_items[p.field] = fit.priors[p.field].mean
            unseen_query[p.field] = fit.priors[p.field].log_mean
        else:
            unseen_query[p.field] = averaged(fit.estimates[p.field].value, weight, longest)
    keep = data.impressions >= min_impressions
    estimates = {
        p.field: fit.estimates[p.field].map(lambda x: x[keep])
        if p.kind == "item"
        else fit.estimates[p.field]
        for p in kind.PARAMETERS
    }
    kept = np.concatenate([[0], np.cumsum(keep)])
    report = {
        "method": options.method,
        "queries": data.Q,
        "items": int(keep.sum()),
        "dropped_items": int((~keep).sum()),
        "serps": int(data.serps.sum()),
        "patterns": data.P,
        **_progress(fit),
        "seconds": round(time.perf_counter() - start, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "notes": [*fit.notes, *(f"{name}: {note}" for note in _notes(data, keep))],
        "priors": {
            p.name: _prior(fit, p.field, data)
            if p.kind == "item"
            else {"strength": fit.shared_strength[p.field].round(6).tolist()}
            for p in kind.PARAMETERS
        },
    }
    return FittedModel(
        name,
        options.method,
        options.scope,
        data.queries,
        data.positions,
        data.serps,
        data.item_ids[keep],
        kept[data.offsets],
        estimates,
        unseen_items,
        unseen_query,
        report=report,
    )


def _notes(data: FoldedClicks, keep: Bools) -> list[str]:
    """What the user should know about the data."""
    notes = []
    if not data.item_clicks.any():
        notes.append(f"{NO_CLICK}: all that is fitted is the prior")
    left = np.bincount(data.item_query[keep], minlength=data.Q)
    if without := [q for q, n in zip(data.queries, left, strict=True) if not n]:
        names = ", ".join(map(str, without[:5]))
        notes.append(f"{len(without)} queries have no item that was shown often enough ({names})")
    return notes


def _progress(fit: EstimationResult) -> dict[str, Any]:
    if not fit.groups:
        return {"iterations": None, "converged": None}
    return {"iterations": fit.iterations, "converged": f"{fit.converged} of {fit.groups}"}


def _prior(fit: EstimationResult, field: str, data: FoldedClicks) -> dict[str, Any]:
    """Pseudo-counts [a, b] of an item never shown, of the first thousand queries; slopes."""
    prior = fit.priors[field]
    a, b = prior.strength * prior.mean, prior.strength * (1.0 - prior.mean)
    pairs = zip(data.queries[:1000], a.round(6).tolist(), b.round(6).tolist(), strict=False)
    slopes = [] if prior.betas is None else np.median(prior.betas.slope, axis=0).round(6).tolist()
    return {"slopes": slopes, "queries": {str(q): [a, b] for q, a, b in pairs}}
