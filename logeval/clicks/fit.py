"""Fit click models to a log: serps -> click statistics -> models."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from logeval import tables
from logeval.clicks.collection import FittedModels, read_models
from logeval.clicks.estimation import click_statistics as statistics
from logeval.clicks.estimation.estimates import EstimationResult, Options, ParameterEstimate
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.estimation.priors import check
from logeval.clicks.fitted import SCOPES, FittedModel, averaged
from logeval.clicks.models.registry import MODELS, model_names
from logeval.clicks.quality import scores as quality
from logeval.errors import LogevalError, unknown_names
from logeval.log.queries import Query
from logeval.progress import Progress

LAST = ("previous", "raw")
METHODS = {method for model in MODELS.values() for method in model.methods}


def fit_models(
    log: Any,
    models: str | Iterable[str],
    *,
    method: str | None = None,
    scope: str = "per-query",
    smoothing: str = "empirical-bayes",
    top_queries: int | None = None,
    queries: Iterable[Query | str] | None = None,
    min_impressions: int = 0,
    holdout: str | float | None = None,
    iterations: int = Options.iterations,
    tolerance: float = Options.tolerance,
    last_termination: str = Options.last_termination,
    out: Path | str | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> FittedModels:
    """Fit one or more click models to the SERPs of a log.

    ``log`` is the folder of an ingested log, or what ``logeval.load`` gives. ``method`` applies
    to the models that have it; the others use their own. With ``holdout`` (a share of the
    sessions such as 0.1, or ``"days:25-27"``) the rest is fitted and the held-out part scored.
    With ``out`` the models are written there, unless they are there already.
    """
    names = model_names([models] if isinstance(models, str) else models)
    if method is not None and method not in METHODS:
        raise unknown_names("method", [method], METHODS)
    for kind, value, known in (
        ("scope", scope, SCOPES),
        ("last termination", last_termination, LAST),
    ):
        if value not in known:
            raise unknown_names(kind, [value], known)
    path = Path(getattr(log, "path", log))
    tables.read_manifest(path)
    chosen = (
        None if queries is None else [Query.parse(q) if isinstance(q, str) else q for q in queries]
    )
    arguments = {
        "models": names,
        "method": method,
        "scope": scope,
        "smoothing": check(smoothing),
        "top_queries": top_queries,
        "queries": None if chosen is None else [str(q) for q in chosen],
        "min_impressions": min_impressions,
        "holdout": None if holdout is None else str(holdout),
        "iterations": iterations,
        "tolerance": tolerance,
        "last_termination": last_termination,
        "seed": seed,
    }
    inputs = [{"log": tables.checksum(path / tables.MANIFEST)}]
    manifest = tables.manifest_of("fit-models", arguments, inputs)
    if out is not None and tables.same_work(Path(out), manifest):
        return read_models(out)

    data, held_out = read_patterns(path, chosen, top_queries, holdout, seed)
    fitted = {}
    with Progress("fit", total=len(names), unit="models", quiet=quiet) as progress:
        for name in names:
            methods = MODELS[name].methods
            options = Options(
                method if method in methods else methods[0],
                scope,
                check(smoothing),
                iterations,
                tolerance,
                last_termination,
            )
            fitted[name] = fit_one(name, data, options, min_impressions)
            if held_out is not None:
                score = quality.score_model(fitted[name], held_out)
                fitted[name].report.update(score.headline())
            progress.advance(1)
    manifest["models"] = {name: f.report for name, f in fitted.items()}
    manifest["log_folder"] = str(path)
    result = FittedModels(fitted, manifest)
    if out is not None:
        result.write(out)
    return result


def read_patterns(
    path: Path,
    queries: list[Query] | None,
    top_queries: int | None,
    holdout: str | float | None,
    seed: int,
) -> tuple[Patterns, Patterns | None]:
    """Training and held-out patterns of a log."""
    table = statistics.fold(
        path, queries=queries, top_queries=top_queries, holdout=holdout, seed=seed
    )
    train = statistics.training(table)
    if not train.num_rows:
        raise LogevalError(f"{path}: there are no SERPs to fit; check --queries and --holdout")
    data = patterns_of(train)
    held_out = None
    if holdout is not None:
        rest = statistics.training(table, held_out=True)
        if not rest.num_rows:
            raise LogevalError(f"{path}: --holdout {holdout} leaves no SERPs to score")
        held_out = patterns_of(rest)
    return data, held_out


def fit_one(name: str, data: Patterns, options: Options, min_impressions: int = 0) -> FittedModel:
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
        p.field: _kept(fit.estimates[p.field], keep) if p.kind == "item" else fit.estimates[p.field]
        for p in kind.PARAMETERS
    }
    kept = np.concatenate([[0], np.cumsum(keep)])
    report = {
        "method": options.method,
        "queries": data.Q,
        "items": int(keep.sum()),
        "dropped_items": int((~keep).sum()),
        "serps": int(data.count.sum()),
        "patterns": len(data.count),
        **_progress(fit),
        "seconds": round(time.perf_counter() - start, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "notes": fit.notes,
        "priors": {p.name: _prior(fit, p.field, data) for p in kind.PARAMETERS if p.kind == "item"},
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
        report,
    )


def _progress(fit: EstimationResult) -> dict[str, Any]:
    if not fit.groups:
        return {"iterations": None, "converged": None}
    return {"iterations": fit.iterations, "converged": f"{fit.converged} of {fit.groups}"}


def _prior(fit: EstimationResult, field: str, data: Patterns) -> dict[str, Any]:
    """Pseudo-counts [a, b] by query, up to the first thousand, and of the log."""
    prior = fit.priors[field]
    pairs = zip(data.queries[:1000], prior.a.tolist(), prior.b.tolist(), strict=False)
    by_query = {str(q): [round(a, 6), round(b, 6)] for q, a, b in pairs}
    return {"log": [round(prior.log_a, 6), round(prior.log_b, 6)], "queries": by_query}


def _kept(estimate: ParameterEstimate, keep: np.ndarray) -> ParameterEstimate:
    raw = None if estimate.raw is None else estimate.raw[keep]
    return ParameterEstimate(
        estimate.value[keep],
        estimate.low[keep],
        estimate.high[keep],
        estimate.observations[keep],
        raw,
    )
