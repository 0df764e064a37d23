"""Rows from elsewhere: read if they make a model, refused if not."""

from __future__ import annotations

import json
import math

import pytest

from logeval.clicks.collection import models_of_json
from logeval.errors import LogevalError
from logeval.log.queries import Query


def dcm_row(parameter, value=0.5, **more):
    return {"model": "DCM", "query_id": 1, "parameter": parameter, "value": value, **more}


def without(row, name):
    return {key: value for key, value in row.items() if key != name}


ITEM, OTHER = dcm_row("attraction", item_id=7), dcm_row("attraction", item_id=8)
FIRST, SECOND = dcm_row("termination", position=1), dcm_row("termination", position=2)
UBM_ITEM = {**ITEM, "model": "UBM"}
UBM_FIRST = {**FIRST, "model": "UBM", "parameter": "examination"}


def test_parameters_from_elsewhere_can_be_imported():
    rows = [
        {"model": "dcm", "query_id": 5, "parameter": "attraction", "item_id": i, "value": w}
        for i, w in ((7, 0.5), (9, 0.1), (8, 0.3))
    ]
    rows += [
        {"model": "dcm", "query_id": 5, "parameter": "termination", "position": k, "value": v}
        for k, v in ((2, 0.25), (1, 0.75))
    ]
    model = models_of_json(json.dumps(rows))["DCM", Query(5)]
    assert model.items.tolist() == [7, 9, 8]
    assert model.v.tolist() == [0.75, 0.25]
    assert model.best_list().tolist() == [7, 8]
    with pytest.raises(LogevalError, match="lacks its parameter 'termination'"):
        models_of_json(json.dumps(rows[:3]))
    with pytest.raises(LogevalError, match=r"attraction = 1.5 of DCM is not a probability"):
        models_of_json(json.dumps([{**rows[0], "value": 1.5}]))
    with pytest.raises(LogevalError, match="unknown columns colour"):
        models_of_json(json.dumps([{**rows[0], "colour": 1}]))
    with pytest.raises(LogevalError, match=r"unknown columns 'positio\\n'; there"):
        models_of_json(json.dumps([{**rows[0], "positio\n": 1}]))
    with pytest.raises(LogevalError, match="termination is incomplete"):
        models_of_json(json.dumps([*rows[:3], {**rows[3], "position": 2}]))
    with pytest.raises(LogevalError, match="not rows of the models table"):
        models_of_json("[1, 2")
    with pytest.raises(LogevalError, match="not rows of the models table"):
        models_of_json(json.dumps([{**rows[0], "query_id": 10**30}]))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "there are no rows"),
        ([ITEM, without(FIRST, "model")], "row 2 has no model"),
        ([ITEM, without(FIRST, "parameter")], "row 2 has no parameter"),
        (
            [ITEM, without(FIRST, "position")],
            "termination: the row of query 1 has no place; .* position of its query, from 1",
        ),
        (
            [UBM_ITEM, UBM_FIRST],
            "row of query 1, position 1 has no place; .* previous click above it",
        ),
        (
            [UBM_ITEM, {**UBM_FIRST, "previous": 1}],
            "position 1, previous 1 has no place; .* above it",
        ),
        (
            [ITEM, FIRST, dcm_row("positions", 1)],
            "DCM has no parameter 'positions'; it has attraction",
        ),
        ([ITEM, {**FIRST, "position": 0}, FIRST], "position 0 has no place; .* from 1"),
        ([ITEM, {**FIRST, "position": 1.5}], "position must be a whole number"),
        ([{**ITEM, "scope": "poold"}, FIRST], "unknown scope.*did you mean pooled"),
        ([{**ITEM, "scope": "pooled"}, FIRST], "of scope per-query and of scope pooled"),
        ([{**row, "scope": "pooled"} for row in (ITEM, FIRST)], "position 1 has no place"),
        ([ITEM, ITEM, FIRST], "attraction: the row of query 1, item 7 is there twice"),
        (
            [ITEM, {**ITEM, "model": "dcm"}, FIRST],
            "attraction: the row of query 1, item 7 is there twice",
        ),
        (
            [without(ITEM, "query_id"), FIRST],
            "row of item 7 has no place; .* a query of the model and one of its items",
        ),
        (
            [dcm_row("attraction") | {"query_id": None}, without(FIRST, "query_id")],
            "DCM has no query",
        ),
        ([ITEM, {**FIRST, "observations": -3}], "row 2, termination of DCM: observations = -3"),
        ([{**ITEM, "observations": math.nan}, FIRST], "row 1, .*: observations = nan must be"),
        ([ITEM, {**FIRST, "observations": math.inf}], "row 2, .*: observations = inf must be"),
        ([ITEM, {**FIRST, "low": 0.1, "high": math.inf}], "row 2, .*: high = inf must be"),
        ([ITEM, {**FIRST, "low": -math.inf, "high": 1}], "row 2, .*: low = -inf must be"),
        ([ITEM, {**FIRST, "low": 0.7, "high": 0.2}], "row 2, .*: low = 0.7 must be at most high"),
    ],
)
def test_wrong_rows_are_refused(rows, message):
    with pytest.raises(LogevalError, match=message):
        models_of_json(json.dumps({"rows": rows}))


LISTED = {"model": "DCM", "query_id": 1, "positions": 2, "items": [8, 7]}


def test_listed_queries_say_which_items_there_are_and_in_which_order():
    rows = [ITEM, OTHER, FIRST, SECOND]
    models = models_of_json(json.dumps({"rows": rows, "queries": [{**LISTED, "base": [7, 8]}]}))
    assert models["DCM", "1"].items.tolist() == [8, 7]
    assert [shown.tolist() for shown in models.fitted["DCM"].base] == [[7, 8]]


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([{**LISTED, "positions": 1}], "position 2 has no place; .* a position of its query"),
        ([{**LISTED, "positions": 0}], "DCM: lists have at least 1"),
        ([{**LISTED, "positions": 1.5}], "positions must be a whole number"),
        ([{**LISTED, "query_id": 3}], "query 1, item 7 has no place; .* a query of the model"),
        ([{**LISTED, "items": [7]}], "item 8 has no place; .* one of its items"),
        ([{**LISTED, "items": [7, 8, 8]}], "item 8 of a query is listed twice"),
        ([{**LISTED, "items": [7, 8, 9]}], "attraction is incomplete: 1 rows"),
        ([LISTED, {**LISTED, "model": "dcm"}], "DCM: query 1 is listed twice"),
        ([LISTED, {**LISTED, "model": "PBM"}], "PBM has queries, but no parameters"),
        ([{**LISTED, "colour": 1}], "unknown columns colour"),
        ([{**LISTED, "base": [7, 9]}], "base of query 1: item 9 has no parameters"),
        ([{**LISTED, "base": [7, 8, 7]}], "base of query 1: item 7 is twice"),
    ],
)
def test_queries_that_do_not_fit_the_rows_are_refused(queries, message):
    rows = [ITEM, OTHER, FIRST, SECOND]
    with pytest.raises(LogevalError, match=message):
        models_of_json(json.dumps({"rows": rows, "queries": queries}))
