"""Fitted models written, read, exported, imported and drawn."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.collection import models_of_json, read_models
from logeval.clicks.fit import fit_models
from logeval.errors import LogevalError
from logeval.log.queries import Query
from logeval.storage import tables
from tests.clicks.examples import ALL


@pytest.fixture(scope="module", params=["per-query", "pooled"])
def models(request, log):
    return fit_models(log, ALL, scope=request.param, holdout=0.2, quiet=True)


def same(one, other):
    assert list(one.fitted) == list(other.fitted)
    for name, fitted in one.fitted.items():
        for query in [*fitted.queries, Query(99)]:
            for unseen in (False, True):
                a, b = fitted.of(query, unseen), other.fitted[name].of(query, unseen)
                assert (a.items == b.items).all()
                assert a.K == b.K
                for p in a.PARAMETERS:
                    assert getattr(a, p.field) == pytest.approx(getattr(b, p.field), abs=1e-12)


def test_models_survive_writing_and_reading(models, tmp_path):
    models.write(tmp_path / "models")
    back = read_models(tmp_path / "models")
    same(models, back)
    assert models.table().equals(back.table())
    assert back.summary()["serps"].tolist() == models.summary()["serps"].tolist()


def test_queries_survive_writing_and_json(models, tmp_path):
    models.write(tmp_path / "models")
    table = models.query_table()
    assert table.num_rows == len(models)
    assert read_models(tmp_path / "models").query_table().equals(table)
    assert models_of_json(models.to_json()).query_table().equals(table)
    lists = table.to_pylist()
    assert {len(row["base"]) for row in lists} == {4}
    assert all(set(row["base"]) <= set(row["items"]) for row in lists)


def test_a_row_of_the_table_is_the_array_of_a_query(models, tmp_path):
    models.write(tmp_path / "models")
    table = tables.read_table(tmp_path / "models", "models").to_pandas()
    for (_, parameter, id_), rows in table.groupby(["model", "parameter", "query_id"]):
        (row,) = rows.to_dict("records")
        model = models[row["model"], int(id_)]
        (field,) = (p.field for p in model.PARAMETERS if p.name == parameter)
        value = getattr(model, field)
        if row["items"] is not None:
            assert row["items"].tolist() == model.items.tolist()
        if np.ndim(value) == 2:  # transitions: those above the diagonal are not
            value = value[np.tril_indices(model.K)]
        assert row["value"].tolist() == np.atleast_1d(value).tolist()
        assert len(row["low"]) == len(row["value"])
    assert len(table) < len(models.table()) / 3


def test_tables_that_are_laid_out_otherwise_are_made_again(models, tmp_path):
    models.write(tmp_path / "models")
    with tables.staged(tmp_path / "models", overwrite=True) as folder:
        tables.write_parquet(models.query_table(), folder / "queries.parquet")
        tables.write_parquet(models.arrow(), folder / "models.parquet")
        tables.write_manifest(folder, models.manifest)
    with pytest.raises(LogevalError, match="another version"):
        read_models(tmp_path / "models")


def test_models_survive_json(models):
    same(models, models_of_json(models.to_json()))


def test_every_parameter_lies_in_its_interval(models):
    table = models.table()
    rows = table[table["low"].notna()]
    assert (rows["low"] <= rows["value"] + 1e-9).all()
    assert (rows["value"] <= rows["high"] + 1e-9).all()
    assert rows["observations"].notna().all()
    estimated = table[table["item_id"].notna() & (table["model"] != "Choice")]  # has none
    assert len(estimated) == len(estimated.dropna(subset=["low", "high"]))


def test_iterating_gives_models_of_queries(models):
    triples = list(models)
    assert len(triples) == len(models) == 3 * len(ALL)
    name, query, model = triples[0]
    assert (name, str(query), model.K) == ("GCTR", "0", 4)
    assert models["dcm", "1"].L == 7
    with pytest.raises(LogevalError, match="was not fitted for query 9"):
        models["DCM", "9"]


def test_the_figures_hold_the_numbers(models):
    termination = models.plot("termination", "dcm", queries=["1"])
    drawn = termination.lines[0].get_ydata()
    np.testing.assert_array_equal(drawn, models["dcm", "1"].v)
    assert models.plot("attraction", "pbm").get_legend() is not None
    with pytest.raises(LogevalError, match="did you mean termination"):
        models.plot("terminaton", "dcm")
