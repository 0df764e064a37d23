"""One click model fitted to folded clicks, with what its manifest reports of the fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from logeval.clicks.estimation.classes import AUTO, in_words
from logeval.clicks.estimation.estimates import ModelEstimate, Options, ParameterEstimate
from logeval.clicks.estimation.patterns import Counted, FoldedClicks
from logeval.clicks.fitted import FittedClasses, FittedModel
from logeval.clicks.models import blend
from logeval.clicks.models.own import checked_fit
from logeval.clicks.models.registry import kind_of
from logeval.clicks.quality.scores import log_likelihoods
from logeval.clicks.support.identified import OTHERS, Identified, identified, record, resting
from logeval.clicks.support.selection import expected_empty
from logeval.running.arrays import Bools
from logeval.running.seeds import generator
from logeval.running.words import joined

NO_CLICK = "there is no click in these SERPs"


def fit_one(
    name: str, data: FoldedClicks, options: Options, min_impressions: int = 0
) -> FittedModel:
    """One model fitted to all queries of ``data``; rarely shown items are dropped afterwards."""
    start, cpu = time.perf_counter(), time.process_time()
    kind, keep = kind_of(name), data.impressions >= min_impressions
    found = identified(kind, data, options.scope)
    about = [f"{name}: {note}" for note in _notes(data, keep)]
    if options.classes == 1:
        fit = checked_fit(kind, kind.fit(data, options), data, options.groups(data)[0])
        fitted = _fitted(name, fit, data, options, keep, found)
        fitted.report["notes"] = [*fit.notes, *about]
    else:
        fitted = _fitted_classes(name, data, options, keep, found)
        fitted.report["notes"] += about
    if (empty := expected_empty(data)) is not None:
        fitted.report["expected_empty"] = empty
    fitted.of(data.queries[0])  # a model of the user's own is checked
    if found is not None:
        pages, other = not isinstance(data, Counted), OTHERS.get(kind.examined_by or "")
        less = identified(kind_of(other), data, options.scope) if pages and other else None
        fitted.report["identified"] = record(data.queries, found, fitted, less, pages)
    fitted.report["seconds"] = round(time.perf_counter() - start, 3)
    fitted.report["cpu_seconds"] = round(time.process_time() - cpu, 3)
    return fitted


def _fitted_classes(
    name: str, data: FoldedClicks, options: Options, keep: Bools, known: Identified | None
) -> FittedClasses:
    """A model with classes of users."""
    found = kind_of(name).fit_classes(data.in_memory(), options, options.classes)
    parts = tuple(_fitted(name, part, data, options, keep, known) for part in found.parts)
    numbers = (found.share.value > 0).sum(axis=1)
    count = {str(c): int((numbers == c).sum()) for c in np.unique(numbers).tolist()}
    first = parts[0]
    report = {key: value for key, value in first.report.items() if key != "priors"}
    who = in_words(found.behaviour)
    if options.classes == AUTO:
        who = f"{found.number} {'class' if found.number == 1 else 'classes'} chosen: {who}"
    report |= {
        "classes": count,
        "number_of_classes": found.number,
        "behaviour": found.behaviour,
        "who": who,
    }
    report["priors"] = {str(c + 1): part.report["priors"] for c, part in enumerate(parts)}
    report["notes"] = list(found.notes)
    return FittedClasses(
        name, first.method, first.scope, first.queries, first.positions, first.serps,
        first.item_ids, first.offsets, {"share": found.share}, {}, {}, first.base, report,
        first.identified, parts=parts,
    )  # fmt: skip


Member = Callable[[str, FoldedClicks, bool], FittedModel]  # name, data, with intervals


def fit_mixture(
    name: str,
    members: Iterable[str],
    data: FoldedClicks,
    fit: Member,
    intervals: bool = True,
    seed: int = 0,
) -> FittedClasses:
    """A mixture of models: its weights from SERPs kept apart, its members from all."""
    start, cpu = time.perf_counter(), time.process_time()
    data, rng = data.in_memory(), generator(seed, "mixture", "held out")
    n, M = rng.binomial(data.count.astype(np.int64), blend.HELD_OUT).astype(float), len([*members])
    apart, rest = (data.weighted(x).take(x > 0) for x in (n, data.count - n))
    log_p = np.zeros((apart.P, M))
    if apart.P and rest.P:
        for m, member in enumerate(members):
            log_p[:, m] = log_likelihoods(fit(member, rest, False), apart)
    overall, each = blend.weights(log_p, apart.count, apart.query, data.Q)
    fits = [fit(member, data, intervals) for member in members]
    D = min(one.n_draws for one in fits)
    drawn = blend.drawn_weights(log_p, apart.count, apart.query, overall, each, D, rng)
    ones, first = np.ones((data.Q, 1)), fits[0]
    alone = ParameterEstimate(ones, ones, ones, ones, draws=np.ones((D, data.Q, 1)))
    shares = [one.estimates.get("share", alone) for one in fits]
    share = blend.blended(each, drawn if D else None, shares)
    of_members = dict(zip(members, overall.round(6).tolist(), strict=True))
    same = ("queries", "items", "dropped_items", "serps", "patterns")
    report = {"method": "em"} | {key: first.report[key] for key in same} | {
        "iterations": None,
        "converged": None,
        "members": of_members,
        "who": "users follow " + joined([f"{m} ({w:.0%})" for m, w in of_members.items()]),
        "notes": list(dict.fromkeys(note for one in fits for note in one.report["notes"])),
        "seconds": round(time.perf_counter() - start, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
    }  # fmt: skip
    return FittedClasses(
        name, "em", first.scope, first.queries, first.positions, first.serps, first.item_ids,
        first.offsets, {"share": share}, {}, {}, first.base, report,
        parts=tuple(part for one in fits for part in one.classes),
    )  # fmt: skip


def _fitted(
    name: str,
    fit: ModelEstimate,
    data: FoldedClicks,
    options: Options,
    keep: Bools,
    known: Identified | None,
) -> FittedModel:
    """The fit of a model, or of one of its classes, without the items that are not kept."""
    kind = kind_of(name)
    unseen_items, unseen_query = {}, {}
    for p in kind.PARAMETERS:
        if p.kind == "item":
            unseen_items[p.field] = fit.priors[p.field].mean
            unseen_query[p.field] = fit.priors[p.field].log_mean
    estimates = {
        p.field: fit.estimates[p.field].map(lambda x: x[keep])
        if p.kind == "item"
        else fit.estimates[p.field]
        for p in kind.PARAMETERS
    }
    marks = resting(kind, fit, known, data.item_query)
    kept = np.concatenate([[0], np.cumsum(keep)])
    report = {
        "method": options.method,
        "queries": data.Q,
        "items": int(keep.sum()),
        "dropped_items": int((~keep).sum()),
        "serps": int(data.serps.sum()),
        "patterns": data.P,
        "iterations": fit.iterations if fit.groups else None,
        "converged": f"{fit.converged} of {fit.groups}" if fit.groups else None,
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
        base=data.base,
        identified=None if known is None else known.share,
        prior={
            p.field: marks[p.field][keep] if p.kind == "item" else marks[p.field]
            for p in kind.PARAMETERS
        },
    )


def _notes(data: FoldedClicks, keep: Bools) -> list[str]:
    """What the user should know about the data."""
    notes = []
    if not data.item_clicks.any():
        notes.append(f"{NO_CLICK}: all that is fitted is the prior")
    if expected_empty(data) is not None:
        notes.append(
            "every SERP has a click, so these are the parameters of searches with a click, not of "
            "all; `logeval describe` says what can be relied on"
        )
    left = np.bincount(data.item_query[keep], minlength=data.Q)
    if without := [q for q, n in zip(data.queries, left, strict=True) if not n]:
        names = ", ".join(map(str, without[:5]))
        notes.append(f"{len(without)} queries have no item that was shown often enough ({names})")
    return notes


def _prior(fit: ModelEstimate, field: str, data: FoldedClicks) -> dict[str, Any]:
    """Pseudo-counts [a, b] of an item never shown, of the first thousand queries; slopes."""
    prior = fit.priors[field]
    a, b = prior.strength * prior.mean, prior.strength * (1.0 - prior.mean)
    pairs = zip(data.queries[:1000], a.round(6).tolist(), b.round(6).tolist(), strict=False)
    slopes = [] if prior.betas is None else np.median(prior.betas.slope, axis=0).round(6).tolist()
    return {"slopes": slopes, "queries": {str(q): [a, b] for q, a, b in pairs}}
