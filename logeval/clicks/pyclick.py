"""PyClick: SERPs as its session objects, and its fitted models as ours.

PyClick (github.com/markovi/PyClick, GPL) is not needed by logeval and not on PyPI; the PyPI
package ``pyclick`` is something else. It is imported only when these functions are called.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.registry import MODELS, model_names
from logeval.errors import LogevalError
from logeval.log.log import Log, load
from logeval.log.queries import Query
from logeval.running.arrays import Floats

NAMES = {  # of our parameters -> PyClick's
    "ctr": "ctr",
    "attraction": "attr",
    "examination": "exam",
    "satisfaction": "sat",
    "termination": "cont",
    "continuation": "cont",
    "tau1": "cont_noclick",
    "tau2": "cont_click_nonrel",
    "tau3": "cont_click_rel",
}
UNSEEN_VALUE = 0.5  # PyClick's value of what it has not seen


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise LogevalError(
            "PyClick is not installed; it is not the PyPI package of that name: "
            "pip install git+https://github.com/markovi/PyClick"
        ) from None


def to_sessions(log: Log | Path | str, queries: Iterable[Query] | None = None) -> list[Any]:
    """The SERPs of a log as PyClick's SearchSession objects; test SERPs are left out.

    Their query is written as ``9982@0``, so that regions stay apart.
    """
    sessions = _module("pyclick.search_session.SearchSession").SearchSession
    results = _module("pyclick.search_session.SearchResult").SearchResult
    wanted = None if queries is None else set(queries)
    out = []
    columns = ["query_id", "region_id", "test", "items", "clicks"]
    for file in load(log).files:
        for row in pq.read_table(file, columns=columns).to_pylist():
            query = Query(row["query_id"], row["region_id"])
            if row["test"] or (wanted is not None and query not in wanted):
                continue
            session = sessions(str(query))
            session.web_results = [
                results(item, int(clicks > 0))
                for item, clicks in zip(row["items"], row["clicks"], strict=True)
            ]
            out.append(session)
    return out


def from_pyclick(model: Any, name: str | None = None) -> FittedModels:
    """A fitted PyClick model as ours, with the values of all its queries."""
    name = model_names([name or type(model).__name__])[0]
    params = {parameter.name: container for parameter, container in model.params.items()}
    by_field = {p.field: params[NAMES[p.name]] for p in MODELS[name].PARAMETERS}
    of_items = [by_field[p.field] for p in MODELS[name].PARAMETERS if p.kind == "item"]
    pairs = _pairs(of_items[0]) if of_items else []
    queries = list(dict.fromkeys(query for query, _ in pairs))
    counts = np.array([sum(1 for q, _ in pairs if q == query) for query in queries], dtype=int)
    estimates, unseen_items, unseen_query = {}, {}, {}
    K = 10  # PyClick's fixed number of ranks
    for p in MODELS[name].PARAMETERS:
        container = by_field[p.field]
        if p.kind == "item":
            value = np.array([container.get(q, i).value() for q, i in pairs], dtype=float)
            unseen_items[p.field] = np.full(len(queries), UNSEEN_VALUE)
            unseen_query[p.field] = UNSEEN_VALUE
        elif p.kind == "scalar":
            value = np.array([container.get().value()], dtype=float)
        elif p.kind == "position":
            value = np.array([[container.get(k).value() for k in range(K)]], dtype=float)
            value = 1.0 - value if p.field == "v" else value  # its cont is our 1 - v
        else:
            value = _examination(container, K)
        estimates[p.field] = ParameterEstimate.known(value)
    return FittedModels(
        {
            name: FittedModel(
                name,
                "pyclick",
                "pooled",
                [Query.parse(str(q)) for q in queries],
                np.full(len(queries), K),
                np.full(len(queries), np.nan),
                np.array([int(i) for _, i in pairs], dtype=np.int64),
                np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
                estimates,
                unseen_items,
                unseen_query,
            )
        }
    )


def _pairs(container: Any) -> list[tuple[Any, Any]]:
    return [(query, item) for query, items in container._container.items() for item in items]


def _examination(container: Any, K: int) -> Floats:
    """e(k, r); PyClick files "no previous click" under the last rank."""
    e = np.zeros((1, K, K + 1))
    for k in range(K):
        e[0, k, 0] = container.get(k, K - 1).value()
        for r in range(k):
            e[0, k, r + 1] = container.get(k, r).value()
    return e
