"""NDCG of exported judgments against the true attraction, beside click-through rates and counts.

    python -m benchmarks.judgments [--queries 60] [--truth dcm]

Generated logs with the same number of SERPs per query. Orders of the items that were shown, by the
relevance that `export` writes, by raw CTR (clicks / impressions), and by the same click model as
PyClick fits it (+1/+2 to every count, every query by itself; a DCM by counting). NDCG at 10 with
the true attraction as gain; differences are paired over queries, with Student's p. ``wrong`` is the
share of grades that the true attraction does not have.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.stats import ttest_1samp

import logeval
from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fitting import fit_one
from logeval.exports.export import THRESHOLDS
from logeval.storage.schemas import CLICK_STATISTICS
from logeval.synthetic.sessions import MEAN_SERPS, draw_sessions
from logeval.synthetic.world import make_world

SIZES = (100, 1_000, 10_000)
DEPTH = 10  # of the NDCG
BATCH = 50_000  # sessions


def log_of(world, serps: int, seed: int) -> pa.Table:
    """Click statistics of about that many SERPs of each query."""
    Q = len(world.popularity)
    even = replace(world, popularity=np.arange(1, Q + 1) / Q)
    left, batch, parts = round(serps * Q / MEAN_SERPS), 0, []
    while left > 0:
        drawn = draw_sessions(even, min(left, BATCH), 1000, seed, batch)
        bits = (drawn.clicks > 0).astype(np.int64) @ (1 << np.arange(drawn.clicks.shape[1]))
        frame = pd.DataFrame(drawn.lists + 1)
        frame["query_id"], frame["clicks"] = drawn.query + 1, bits
        parts.append(frame.groupby(list(frame.columns), as_index=False).size())
        left, batch = left - BATCH, batch + 1
    whole = pd.concat(parts)
    keys = [column for column in whole.columns if column != "size"]
    whole = whole.groupby(keys, as_index=False)["size"].sum()
    K = drawn.lists.shape[1]
    n = len(whole)
    columns = {
        "query_id": whole["query_id"], "region_id": pa.nulls(n, pa.int64()),
        "holdout": np.zeros(n, dtype=bool), "items": whole[list(range(K))].to_numpy().tolist(),
        "clicks": whole["clicks"], "count": whole["size"],
    }  # fmt: skip
    arrays = [pa.array(columns[f.name], f.type) for f in CLICK_STATISTICS]
    return pa.table(arrays, schema=CLICK_STATISTICS)


def ndcg(value: np.ndarray, gain: np.ndarray, rng: np.random.Generator) -> float:
    """Of the order by value, equal values in random order."""
    discount = 1.0 / np.log2(np.arange(min(DEPTH, len(gain))) + 2.0)
    order = np.lexsort((rng.random(len(value)), -value))[: len(discount)]
    return float(gain[order] @ discount / (np.sort(gain)[::-1][: len(discount)] @ discount))


def rows_of(truth: str, queries: int, seed: int, sizes=SIZES) -> list[dict]:
    """A row per number of SERPs and set of items."""
    world, rows = make_world(truth, queries, seed), []
    w = world.parameters["w"]
    for serps in sizes:
        data = patterns_of(log_of(world, serps, seed))
        kind = truth.upper()
        fitted = fit_one(kind, data, Options("em"))
        counting = "guo" if kind == "DCM" else "em"
        counts = fit_one(kind, data, Options(counting, "per-query", "pyclick", draws=0))
        table = logeval.export(
            FittedModels({kind: fitted}), judgments="csv", uncertain="keep"
        ).table
        ids = fitted.item_ids
        assert (ids == data.item_ids).all()
        values = {
            "exported": table["relevance"].to_numpy(),
            "CTR": data.item_clicks / data.impressions,
            "counts": counts.estimates["w"].value,
        }
        rng = np.random.default_rng(seed)
        true_grade = np.searchsorted(THRESHOLDS, w[ids - 1], side="right")
        wrong = table["grade"].to_numpy() != true_grade
        sure = ~table["uncertain"].to_numpy()
        for which, kept in (("all", np.ones(len(ids), dtype=bool)), ("not withheld", sure)):
            found = {name: [] for name in values}
            for q in range(len(fitted.queries)):
                mine = np.flatnonzero(kept[fitted.span(q)]) + fitted.offsets[q]
                if len(mine) < 2:
                    continue
                for name, value in values.items():
                    found[name].append(ndcg(value[mine], w[ids[mine] - 1], rng))
            x = {name: np.array(own) for name, own in found.items()}
            row = {"truth": kind, "SERPs": serps, "items": which, "queries": len(x["CTR"]),
                   "withheld": 1 - sure.mean(), "wrong": wrong[kept].mean()}  # fmt: skip
            row |= {name: own.mean() for name, own in x.items()}
            for name in ("CTR", "counts"):
                difference = x["exported"] - x[name]
                row[f"- {name}"] = difference.mean()
                row[f"p {name}"] = ttest_1samp(difference, 0.0).pvalue
            rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--truth", default="dcm")
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    table = pd.DataFrame(rows_of(asked.truth, asked.queries, asked.seed))
    print(table.to_string(index=False, float_format="%.4f"))


if __name__ == "__main__":
    main()
