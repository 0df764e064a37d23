"""Rows from elsewhere: read if they make a model, refused if not."""

from __future__ import annotations

import json
import math

import pytest

from logeval.clicks.collection import models_of_json
from logeval.errors import LogevalError
from logeval.log.queries import Query


def row(parameter, value, model="DCM", **more):
    return {"model": model, "query_id": 1, "parameter": parameter, "value": value, **more}


def without(row, name):
    return {key: value for key, value in row.items() if key != name}


ITEMS, STOPS = row("attraction", [0.5, 0.2], items=[7, 8]), row("termination", [0.7, 0.4])


def test_parameters_from_elsewhere_can_be_imported():
    rows = [
        row("termination", [0.75, 0.25], "dcm"),
        row("attraction", [0.5, 0.1, 0.3], "dcm", items=[7, 9, 8]),
    ]
    model = models_of_json(json.dumps(rows))["DCM", Query(1)]
    assert model.items.tolist() == [7, 9, 8]
    assert model.v.tolist() == [0.75, 0.25]
    assert model.best_list().tolist() == [7, 8]
    assert models_of_json(json.dumps(rows))["DCM"].of(Query(1), unseen=True).w[-1] == pytest.approx(
        0.3
    )


def test_every_kind_of_parameter_can_be_imported():
    rows = [
        row("attraction", [0.5, 0.2], "ubm", items=[7, 8]),
        row("examination", [1.0, 0.6, 0.9], "ubm"),
    ]
    rows += [
        row("attraction", [0.5], "dbn", items=[7]),
        row("satisfaction", [0.3], "dbn", items=[7]),
    ]
    rows += [{**row("continuation", [0.9], "dbn", scope="pooled"), "query_id": None}]
    rows[2]["scope"] = rows[3]["scope"] = "pooled"
    models = models_of_json(json.dumps({"rows": rows}))
    assert models["UBM", "1"].e.tolist() == [[1.0, 0.0, 0.0], [0.6, 0.9, 0.0]]
    assert (models["DBN", "1"].gamma, models["DBN", "1"].K) == (0.9, 10)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows: List should have at least 1"),
        ([ITEMS, without(STOPS, "model")], "rows.1.model: Field required"),
        ([ITEMS, without(STOPS, "parameter")], "rows.1.parameter: Field required"),
        ([ITEMS, without(STOPS, "value")], "rows.1.value: Field required"),
        ([{**ITEMS, "value": [1.5, 0.2]}, STOPS], "rows.0.value.0: .* less than or equal to 1"),
        ([{**ITEMS, "value": [0.5]}, STOPS], "not of its items|not of the items"),
        ([{**ITEMS, "colour": 1}, STOPS], "rows.0.colour: Extra inputs"),
        ([{**ITEMS, "positio\n": 1}, STOPS], r"rows.0.positio\\n"),
        ([ITEMS, row("positions", [1])], "DCM has no parameter 'positions'; it has attraction"),
        ([ITEMS], "DCM termination: there must be one row for each of its queries, 1; there are 0"),
        ([ITEMS, STOPS, STOPS], "termination: there must be one row .*; there are 2"),
        ([ITEMS, ITEMS | {"model": "dcm"}, STOPS], "attraction: there must be one row"),
        ([ITEMS, {**STOPS, "query_id": 2}], "attraction: there must be one row .*1, 2"),
        ([{**ITEMS, "items": [7, 8.5]}, STOPS], "rows.0.items.1: .* integer"),
        ([{**ITEMS, "query_id": 10**30}, STOPS], "rows.0.query_id"),
        ([{**ITEMS, "scope": "poold"}, STOPS], "rows.0.scope: .* 'pooled'"),
        ([{**ITEMS, "scope": "pooled"}, STOPS], "of scope per-query and pooled"),
        ([{**one, "scope": "pooled"} for one in (ITEMS, STOPS)], "termination: there must be one"),
        ([{**one, "query_id": None} for one in (ITEMS, STOPS)], "DCM: name its queries"),
        ([ITEMS, {**STOPS, "observations": [-3, 1]}], "rows.1.observations.0"),
        ([ITEMS, {**STOPS, "observations": [math.inf, 1]}], "rows.1.observations.0"),
        ([ITEMS, {**STOPS, "low": [0.1]}], "low must have as many elements as value, 2"),
        ([ITEMS, {**STOPS, "low": [0.7, 0], "high": [0.2, 1]}], "low must be at most high"),
        ([ITEMS, row("termination", [0.5] * 1001)], "lists have at least 1"),
    ],
)  # fmt: skip
def test_wrong_rows_are_refused(rows, message):
    with pytest.raises(LogevalError, match=message):
        models_of_json(json.dumps({"rows": rows}))


@pytest.mark.parametrize("text", ["[1, 2", "[" * 100_000, "3", '{"rows": 3}', '{"names": 3}'])
def test_what_is_no_file_of_models_is_refused(text):
    with pytest.raises(LogevalError, match="not rows of the models table"):
        models_of_json(text)


LISTED = {"model": "DCM", "query_id": 1, "positions": 2, "items": [7, 8]}


def test_listed_queries_say_what_else_is_known_of_them():
    rows = [ITEMS, STOPS]
    models = models_of_json(json.dumps({"rows": rows, "queries": [{**LISTED, "base": [8, 7]}]}))
    assert models["DCM", "1"].items.tolist() == [7, 8]
    assert [shown.tolist() for shown in models.fitted["DCM"].base] == [[8, 7]]


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([{**LISTED, "positions": 1}], "is not of the items and positions of its queries"),
        ([{**LISTED, "positions": 0}], "queries.0.positions"),
        ([{**LISTED, "positions": 1.5}], "queries.0.positions"),
        ([{**LISTED, "query_id": 3}], "attraction: there must be one row .*, 3"),
        ([{**LISTED, "items": [7]}], "attraction of query 1: not of its items"),
        ([{**LISTED, "items": [7, 8, 8]}], "item 8 is twice in a list"),
        ([LISTED, {**LISTED, "model": "dcm"}], "DCM: name its queries, each once"),
        ([LISTED, {**LISTED, "model": "PBM"}], "PBM has queries, but no parameters"),
        ([{**LISTED, "colour": 1}], "queries.0.colour"),
        ([{**LISTED, "base": [7, 9]}], "item 9 of base is not one of the items"),
        ([{**LISTED, "base": [7, 8, 7]}], "item 7 is twice in a list"),
    ],
)
def test_queries_that_do_not_fit_the_rows_are_refused(queries, message):
    with pytest.raises(LogevalError, match=message):
        models_of_json(json.dumps({"rows": [ITEMS, STOPS], "queries": queries}))
