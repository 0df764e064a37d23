"""Patterns on disk give the same numbers, and the same fits, as those in memory."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from logeval.clicks.estimation import fold
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.fold import StoredPatterns, store
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models.registry import MODELS
from logeval.storage import schemas
from tests.clicks.examples import random_model, statistics_of


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Six queries, of unequal frequency and lengths of lists."""
    rng = np.random.default_rng(4)
    sizes = [(5, 3), (7, 4), (4, 4), (6, 2), (5, 4), (12, 4)]
    models = [random_model("DCM", rng, L=L, K=K, low=0.1, high=0.8) for L, K in sizes]
    table = statistics_of(models, 40, rng, spread=2.0)
    more = rng.integers(1, 4, len(table))
    table = table.set_column(table.schema.get_field_index("count"), "count", [more])
    rows = table.cast(schemas.CLICK_STATISTICS).sort_by("query_id")
    file = tmp_path_factory.mktemp("stored") / "statistics.parquet"
    pq.write_table(rows, file)
    return patterns_of(rows), store(file, block=30)


def test_numbers_are_those_of_memory(both):
    memory, disk = both
    assert len(disk.numbers) > 2  # blocks
    assert (disk.queries, disk.P, disk.K) == (memory.queries, memory.P, memory.K)
    for name in ("item_ids", "offsets", "positions", "impressions", "item_clicks", "serps"):
        np.testing.assert_array_equal(getattr(disk, name), getattr(memory, name), err_msg=name)
    assert [x.tolist() for x in disk.base] == [x.tolist() for x in memory.base]
    again = disk.in_memory()
    rows, expected = (
        sorted(zip(x.query, map(tuple, x.items), map(tuple, x.clicks), x.count, strict=True))
        for x in (again, memory)
    )
    assert rows == expected


def test_a_block_has_whole_queries(both):
    _, disk = both
    queries = [set(block.query.tolist()) for block in disk.blocks()]
    assert sum(map(len, queries)) == disk.Q == len(set().union(*queries))


@pytest.mark.parametrize("scope", ["pooled", "partial"])
@pytest.mark.parametrize("name", MODELS)
def test_fits_are_those_of_memory(both, name, scope):
    memory, disk = (MODELS[name].fit(x, Options(MODELS[name].methods[0], scope)) for x in both)
    assert memory.iterations == disk.iterations
    for field, expected in memory.estimates.items():
        for column in ("value", "low", "high", "observations"):
            np.testing.assert_allclose(
                getattr(disk.estimates[field], column), getattr(expected, column), atol=1e-7
            )


def test_large_logs_stay_on_disk(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = statistics_of([random_model("PBM", rng, L=5, K=3)], 50, rng).to_pandas()
    rows["holdout"] = rng.random(len(rows)) < 0.3
    file = tmp_path / "s.parquet"
    table = schemas.CLICK_STATISTICS.empty_table()
    table = type(table).from_pandas(rows, schema=schemas.CLICK_STATISTICS, preserve_index=False)
    pq.write_table(table, file)

    def cached(log, manifest, write, read):
        return read(file)

    monkeypatch.setattr(fold, "cached", cached)
    log = type("Log", (), {"path": tmp_path, "identity": ""})()
    small = fold.fold_patterns(log, holdout=0.3)
    monkeypatch.setattr(fold, "IN_MEMORY", 10)
    train, held_out = fold.fold_patterns(log, holdout=0.3)
    assert isinstance(train, StoredPatterns)
    assert train.serps.sum() == small[0].serps.sum() == rows["count"][~rows["holdout"]].sum()
    assert held_out.serps.sum() == small[1].serps.sum() == rows["count"][rows["holdout"]].sum()
