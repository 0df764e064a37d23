"""A model's order of items against given judgments: NDCG, reciprocal rank, average precision.

A model orders the items of a query by what each would earn alone at the first position. Items
without a judgment count as not relevant, judged items that the model does not know as not found,
as trec_eval has it: gains are grades, discounts log2(1 + rank), relevant is a grade of 1 or more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.model import ClickModel
from logeval.clicks.naming import Naming, without_blanks
from logeval.errors import LogevalError, short
from logeval.running.arrays import Floats, Ints
from logeval.running.seeds import generator

DEPTH = 10
MEASURES = (f"NDCG@{DEPTH}", "MRR", "AP")
Grades = Mapping[str, Mapping[str, float]]  # by query and item


def read_qrels(path: Path | str) -> Grades:
    """The judgments of a TREC file: ``query 0 item grade``, separated by blanks."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, TypeError, UnicodeDecodeError) as error:
        raise LogevalError(f"{path}: cannot be read as judgments ({error})") from None
    found: dict[str, dict[str, float]] = {}
    for number, line in enumerate(lines, 1):
        parts = line.split()
        try:
            if not parts:
                continue
            query, _, item, grade = parts
            found.setdefault(query, {})[item] = float(grade)
        except ValueError:
            raise LogevalError(
                f"{path}, line {number}: {short(line)} is no judgment; write query 0 item grade"
            ) from None
    if not found:
        raise LogevalError(f"{path}: holds no judgments")
    return found


def model_order(model: ClickModel) -> Ints:
    """The rows of the items, best first; equal ones in random order."""
    value = model.expected_reward(np.arange(model.L)[:, None])
    tie = generator(0, "order", model.L).random(model.L)
    return np.lexsort((tie, -value))


def order_scores(fitted: FittedModel, qrels: Path | str, naming: Naming) -> dict[str, Floats]:
    """The ``MEASURES`` (3,) of each query that has a relevant judgment, by query."""
    judged, found = read_qrels(qrels), {}
    names = [without_blanks(name) for name in naming.queries(fitted.queries)]
    for query, name in zip(fitted.queries, names, strict=True):
        grades = judged.get(name) or judged.get(str(query))
        if not grades or max(grades.values()) <= 0:
            continue
        model = fitted.of(query)
        items = [without_blanks(item) for item in naming.items(model.items.tolist())]
        gains = np.array([grades.get(items[row], 0.0) for row in model_order(model)])
        found[str(query)] = measured(gains, np.array(list(grades.values())))
    if not found:
        raise LogevalError(
            f"{qrels}: no query of {fitted.model} has a relevant judgment there; it has "
            f"{', '.join(list(judged)[:3])}, and the models {', '.join(names[:3])}"
        )
    return found


def measured(gains: Floats, judged: Floats) -> Floats:
    """NDCG, reciprocal rank and average precision of grades in a model's order.

    ``judged`` are all grades of the query, in any order.
    """
    ideal = np.sort(np.maximum(judged, 0.0))[::-1]
    relevant = np.flatnonzero(gains >= 1.0) + 1  # ranks
    n = int((judged >= 1.0).sum())
    precision = (np.arange(len(relevant)) + 1) / relevant
    return np.array(
        [
            _dcg(np.maximum(gains, 0.0)) / _dcg(ideal),
            1.0 / relevant[0] if len(relevant) else 0.0,
            precision.sum() / n if n else 0.0,
        ]
    )


def _dcg(gains: Floats) -> float:
    top = gains[:DEPTH]
    return float(top @ (1.0 / np.log2(np.arange(len(top)) + 2.0)))


def judged_rows(scores: Mapping[str, Mapping[str, Floats]]) -> list[dict[str, Any]]:
    """Means over queries with 95% intervals (Student's), and differences to the best model."""
    if not scores:
        return []
    common = set.intersection(*(set(own) for own in scores.values()))
    if not common:
        raise LogevalError("the models have no judged query in common")
    queries = sorted(common)
    values = {name: np.stack([own[q] for q in queries]) for name, own in scores.items()}
    best = max(values, key=lambda name: float(values[name][:, 0].mean()))
    rows = [row for name, x in values.items() for row in _rows(name, None, x)]
    for name, x in values.items():
        if name != best:
            rows += _rows(name, best, x - values[best])
    return rows


def _rows(name: str, baseline: str | None, x: Floats) -> list[dict[str, Any]]:
    n = len(x)
    mean = x.mean(axis=0)
    half = np.full(len(mean), math.nan)
    if n > 1:
        half = stdtrit(n - 1, 0.975) * x.std(axis=0, ddof=1) / np.sqrt(n)
    low, high = mean - half, mean + half
    if baseline is None:
        low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    return [
        {"model": name, "baseline": baseline, "measure": measure, "queries": n,
         "value": float(mean[i]), "low": float(low[i]), "high": float(high[i])}
        for i, measure in enumerate(MEASURES)
    ]  # fmt: skip
