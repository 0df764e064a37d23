"""Fitted models beside the true ones of a generated log.

For the model that is the true one, each of its parameters: bias and root mean squared error, and
how often the 95% interval holds the truth. For every model, what it costs to trust it: the regret,
under the true model, of the list that it takes for the best.

w and e of PBM and UBM have a free scale; the truth is brought to the fit's, at the position whose
examination the fit keeps fixed. Parameters that nothing was observed of, and the DCM's v at the
last position, which no click speaks of, are left out.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from logeval.clicks.collection import FittedModels
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.model import ClickModel
from logeval.errors import LogevalError, printable
from logeval.log.log import Log
from logeval.log.queries import Query
from logeval.running.arrays import Floats, Ints, place_of
from logeval.storage import tables

if TYPE_CHECKING:
    import pandas as pd

QUERIES = 50  # the most frequent ones, whose best lists are compared
LOGGED = "the log's list"


def check_belongs(truth: FittedModels, log: Log, name: str) -> None:
    """Raise for the truth of another file than the one that a log was made from.

    Two files of one name and size may be of two seeds. Models that ``generate`` did not write are
    of no file.
    """
    if truth.manifest.get("stage") != "generate":
        return
    sources, own = log.manifest["inputs"], truth.manifest.get("log_sha256")
    if own and {source.get("sha256") for source in sources} == {own}:
        return
    made_from = printable(source["name"] for source in sources)
    out = truth.manifest["arguments"].get("out")
    of = f"is of another {out}; ingest that, or" if own else "does not say of which file it is;"
    again = tables.command(log.path, truth.manifest)
    raise LogevalError(
        f"{log.path}: was made from {made_from}, but {name} {of} make both again: {again}, and "
        "ingest LOG"
    )


def against_truth(models: FittedModels, truth: FittedModels) -> pd.DataFrame:
    """One row per model and parameter, and one per model with the regret of its best list."""
    import pandas as pd

    true = next(iter(truth.fitted.values()))
    queries = [query for query in models.queries if query in true.index]
    if not queries:
        raise LogevalError("the truth has none of the queries that the models were fitted to")
    rows: list[dict[str, Any]] = []
    for name, fitted in models.fitted.items():
        if name == true.model and len(fitted.classes) == 1:  # which class is which is not known
            rows += _parameters(fitted, true, [q for q in queries if q in fitted.index])
        rows.append(_regret(fitted, true, queries[:QUERIES]))
    rows.append(_regret_of_log(next(iter(models.fitted.values())), true, queries[:QUERIES]))
    columns = ["model", "parameter", "values", "bias", "rmse", "coverage"]
    columns += ["queries", "regret", "relative_regret"]
    return pd.DataFrame(rows).reindex(columns=columns)


def _parameters(
    fitted: FittedModel, true: FittedModel, queries: list[Query]
) -> list[dict[str, Any]]:
    parts: dict[str, list[Floats]] = {p.field: [] for p in fitted.kind.PARAMETERS}
    for query in queries:
        model, known = true.of(query), fitted.of(query)
        scale = _scale(known, model)
        at = place_of(known.items, model.items)
        for p in fitted.kind.PARAMETERS:
            x = fitted.estimate(p, query)
            truth = np.asarray(getattr(model, p.field), dtype=np.float64)
            if p.kind == "item":
                truth = np.where(at >= 0, truth[np.maximum(at, 0)] * scale, np.nan)
            else:
                x = x.map(partial(_cut, truth.shape))
                truth = truth / scale if p.field == "e" else truth
            unknown = x.raw is not None and np.isfinite(x.raw)  # replaced: not identified
            observations = np.where(unknown, 0.0, x.observations)
            found = np.stack([x.value, x.low, x.high, observations, truth])
            parts[p.field].append(found.reshape(5, -1))
    rows = []
    for p in fitted.kind.PARAMETERS:
        value, low, high, observations, truth = np.concatenate(parts[p.field], axis=1)
        use = (observations > 0) & np.isfinite(truth)
        error = (value - truth)[use]
        known = use & np.isfinite(low) & np.isfinite(high)
        inside = (low <= truth) & (truth <= high)
        rows.append(
            {
                "model": fitted.model,
                "parameter": p.name,
                "values": int(use.sum()),
                "bias": float(error.mean()) if use.any() else None,
                "rmse": float(np.sqrt((error**2).mean())) if use.any() else None,
                "coverage": float(inside[known].mean()) if known.any() else None,
            }
        )
    return rows


def _cut(shape: tuple[int, ...], fitted: Floats) -> Floats:
    """A shared parameter in the shape of the truth's; nan beyond the fit's positions."""
    wide = np.full(shape, np.nan)
    common = tuple(slice(0, min(a, b)) for a, b in zip(np.shape(fitted), shape, strict=True))
    wide[common] = fitted[common]
    return wide


def _scale(fitted: ClickModel, true: ClickModel) -> float:
    """What the true attraction is multiplied by, and examination divided by."""
    e = getattr(fitted, "e", None)
    if e is None:
        return 1.0
    at = (int(e.argmax()),) if e.ndim == 1 else (0, 0)
    return float(getattr(true, "e")[at] / e[at])  # noqa: B009 - only some models have one


def _regret(fitted: FittedModel, true: FittedModel, queries: list[Query]) -> dict[str, Any]:
    lists = {}
    for query in queries:
        if query in fitted.index:
            known, model = fitted.of(query), true.of(query)
            K = min(known.K, model.K, known.L, model.L)
            reward = model.rewards[0]
            lists[query] = known.best_list(K, reward if reward in known.rewards else "clicks")
    return {"model": fitted.model, "parameter": "best list", **_cost(lists, true)}


def _regret_of_log(fitted: FittedModel, true: FittedModel, queries: list[Query]) -> dict[str, Any]:
    """The same for the list that the log shows most often."""
    base = fitted.base or []
    lists = {q: base[fitted.index[q]] for q in queries if base and q in fitted.index}
    return {"model": LOGGED, "parameter": "best list", **_cost(lists, true)}


def _cost(lists: dict[Query, Ints], true: FittedModel) -> dict[str, Any]:
    """The mean regret of lists of item ids under the true model, and as a share of the best."""
    regret, best = [], []
    for query, ids in lists.items():
        model = true.of(query)
        if not len(ids) or not np.isin(ids, model.items).all():
            continue
        optimum = model.optimum(len(ids)).value
        earned = float(model.expected_reward(model.rows_of(ids)[None])[0])
        regret.append(max(optimum - earned, 0.0))
        best.append(optimum)
    if not regret:
        return {"queries": 0}
    mean = float(np.mean(regret))
    relative = mean / max(float(np.mean(best)), 1e-12)
    return {"queries": len(regret), "regret": mean, "relative_regret": relative}
