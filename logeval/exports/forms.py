"""Judgments and propensities as other programs read them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pandas as pd

from logeval.clicks.naming import without_blanks
from logeval.errors import LogevalError
from logeval.storage.spreadsheets import csv_of

EVIDENCE = ["query", "item", "grade", "relevance", "low", "high", "observations", "uncertain"]
MARK = "U"  # in the second column of qrels, which readers ignore; "0" otherwise


def qrels(table: pd.DataFrame) -> str:
    """TREC's form, ``query 0 item grade``, as trec_eval, ir_measures and ranx read it.

    Blanks separate its columns, so those in names become %20.
    """
    queries, items = (_without_blanks(table[name]) for name in ("query", "item"))
    marks = table["uncertain"].map({True: MARK, False: "0"})
    rows = zip(queries, marks, items, table["grade"], strict=True)
    return "".join(f"{q} {mark} {item} {grade}\n" for q, mark, item, grade in rows)


def _without_blanks(names: pd.Series) -> list[str]:
    changed = {name: without_blanks(name) for name in set(names)}
    if len(set(changed.values())) < len(changed):
        raise LogevalError("names differ only by blanks and %20; use judgments=csv")
    return [changed[name] for name in names]


def judgment_csv(table: pd.DataFrame) -> str:
    """The grades with what they rest on."""
    return csv_of(table[[*EVIDENCE, "model"]])


def opensearch(table: pd.DataFrame) -> str:
    """The body of PUT _plugins/_search_relevance/judgments; ratings are text there."""
    ratings = [
        {
            "query": query,
            "ratings": [
                {"docId": item, "rating": f"{grade:.1f}"}
                for item, grade in zip(rows["item"], rows["grade"], strict=True)
            ],
        }
        for query, rows in table.groupby("query", sort=False)
    ]
    named = ", ".join(dict.fromkeys(table["model"]))
    about = {  # a name has at most 50 characters there
        "name": f"logeval {named}".strip()[:50],
        "description": "Graded judgments from clicks, by logeval export",
        "type": "IMPORT_JUDGMENT",
    }
    return json.dumps({**about, "judgmentRatings": ratings}, indent=1, ensure_ascii=False) + "\n"


JUDGMENTS: dict[str, Callable[[pd.DataFrame], str]] = {
    "qrels": qrels,
    "csv": judgment_csv,
    "json": opensearch,
}


def propensities_csv(table: pd.DataFrame) -> str:
    """A row per position, in six digits."""
    return csv_of(table, "%.6g")


def propensities_json(table: pd.DataFrame) -> str:
    """``IPW_list`` (by position, 1 at the first), by query where asked for, and the rows."""
    found: dict[str, object] = {}
    by_position = table[table["previous"].isna()]
    if table["query"].isna().all():
        found["IPW_list"] = _numbers(by_position["weight"])
    else:
        parts = by_position.groupby("query", sort=False)
        found["IPW_lists"] = {query: _numbers(rows["weight"]) for query, rows in parts}
    rows = table.astype(object).where(table.notna(), None)
    return json.dumps({**found, "rows": rows.to_dict(orient="records")}, ensure_ascii=False) + "\n"


def _numbers(values: pd.Series) -> list[float | None]:
    """JSON has no nan."""
    return [None if value != value else value for value in values.tolist()]


PROPENSITIES: dict[str, Callable[[pd.DataFrame], str]] = {
    "csv": propensities_csv,
    "json": propensities_json,
}
