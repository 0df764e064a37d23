"""Classes of users: what their intervals hold, how long a fit takes.

Logs are drawn from three classes of DCM users (60% who look at little, 28%, and 12% who open much),
or of PBM users, in the wide world of ``draws``: 8 queries of 100 items, lists by quality.

    python -m benchmarks.classes coverage 20 [SEED]
    python -m benchmarks.classes time [SEED]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import expit, logit

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.classes import Classes
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.registry import MODELS
from logeval.running import seeds
from logeval.storage import schemas

K, L, QUERIES = 6, 100, 8
SHARE = np.array([0.6, 0.28, 0.12])
MORE = (-1.0, 0.8, 2.5)  # of the logit of the attraction, class by class
V = np.array([0.5, 0.3, 0.2, 0.1, 0.1, 0.1])
ENDS = (0.0125, 0.9875)  # of 40 draws, whose extremes are a little inside
E = np.array([1.0, 0.7, 0.5, 0.4, 0.3, 0.25])


def users(kind: str, rng: np.random.Generator, items: int = L, positions: int = K) -> ClickModel:
    """Three classes that agree on which items are good, more or less."""
    common = rng.normal(-2.0, 1.0, items)
    classes = []
    for more in MORE:
        w = expit(common + more + rng.normal(0.0, 0.5, items))
        shared: dict[str, Any] = {"v": V} if kind == "DCM" else {"e": E}
        shared = {f: np.pad(x, (0, positions - K), mode="edge") for f, x in shared.items()}
        classes.append(MODELS[kind](items=np.arange(items), K=positions, w=w, **shared))
    return Classes.of(SHARE, classes)


def log_of(models: Sequence[ClickModel], n: int, rng: np.random.Generator) -> Patterns:
    """n SERPs of each, by quality."""
    rows = []
    for q, model in enumerate(models):
        assert isinstance(model, Classes)
        w: Any = sum(s * getattr(c, "w") for s, c in zip(model.share, model.classes, strict=True))  # noqa: B009
        A = np.argsort(-(1.5 * logit(w) + rng.gumbel(size=(n, model.L))), axis=1)[:, : model.K]
        bits = model.sample(A, rng.random((n, model.K + 1))) @ (1 << np.arange(model.K))
        rows += [
            {"query_id": q, "holdout": False, "items": a, "clicks": c, "count": 1}
            for a, c in zip(A.tolist(), bits.tolist(), strict=True)
        ]
    return patterns_of(pa.Table.from_pylist(rows, schema=schemas.CLICK_STATISTICS))


def intervals(kind: str, n: int, seed: int) -> Iterator[dict[str, Any]]:
    """Whether intervals hold the truth: of shares, and of what lists earn, from 40 draws."""
    rng = seeds.generator(seed, "classes", kind)
    models = [users(kind, rng) for _ in range(QUERIES)]
    data = log_of(models, n, rng)
    fit = fit_one(f"{kind}(classes=3)", data, Options("em", classes=3, draws=40))
    share: Any = fit.estimates["share"]
    for q, query in enumerate(data.queries):
        true = models[query.query_id]
        own = fit.of(query)
        for c in range(3):
            low, high = np.quantile(share.draws[:, q, c], ENDS)
            yield {"what": f"share of class {c + 1}", "held": low <= SHARE[c] <= high}
        ids = data.item_ids[data.offsets[q] : data.offsets[q + 1]]
        rows = data.query == q
        shown = data.items[rows] - data.offsets[q]
        lists = {"today's lists": shown, "the fitted best list": own.optimum().A[None]}
        for what, A in lists.items():
            weight = data.count[rows] if what == "today's lists" else np.ones(1)
            for reward in own.rewards:
                truth = np.average(true.expected_reward(ids[A], reward), weights=weight)
                drawn = [
                    np.average(
                        fit.drawn(d + 1).of(query).expected_reward(A, reward), weights=weight
                    )
                    for d in range(fit.n_draws)
                ]
                low, high = np.quantile(drawn, ENDS)
                mean = np.mean(drawn)
                yield {
                    "what": f"{reward} of {what}",
                    "held": low <= truth <= high,
                    "error": mean - truth,
                    "truth": truth,
                }


def coverage(logs: int = 20, seed: int = 0) -> pd.DataFrame:
    """By kind of users, SERPs of a query, and what the interval is of."""
    rows = []
    for kind in ("DCM", "PBM"):
        for n in (500, 3000):
            for log in range(logs):
                for row in intervals(kind, n, seed + log):
                    rows.append({"users": kind, "serps": n, **row})
                print(kind, n, log, end="\r", file=sys.stderr, flush=True)
    by = pd.DataFrame(rows).groupby(["users", "serps", "what"])
    return by.agg(
        held=("held", "mean"), of=("held", "size"), error=("error", "mean"), truth=("truth", "mean")
    )


def times(seed: int = 0) -> pd.DataFrame:
    """CPU seconds of a fit with three classes beside one."""
    rows = []
    for kind in ("DCM", "PBM", "UBM", "DBN", "CCM"):
        rng = seeds.generator(seed, "classes", "time")
        data = log_of([users("DCM", rng) for _ in range(QUERIES)], 3000, rng)
        found = {}
        for C in (1, 3):
            for _ in range(2):  # the second one is compiled
                fit = fit_one(f"{kind}(classes={C})", data, Options("em", classes=C))
                found[C] = fit.report["cpu_seconds"]
        rows.append([kind, found[1], found[3], found[3] / found[1]])
    return pd.DataFrame(rows, columns=["model", "one class", "three", "ratio"])


if __name__ == "__main__":
    what, *numbers = sys.argv[1:]
    given = [int(x) for x in numbers]
    made = {"coverage": coverage, "time": times}[what]
    print(made(*given).round(4).to_string())
