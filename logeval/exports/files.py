"""Judgments and propensities as other programs read them, and files to train a ranker with.

``svmlight``: a row per (query, item), its grade as the label: what RankLib, XGBoost and
scikit-learn read. ``lightgbm``: rows of clicks, one per (query, item, position) and outcome, with
how many SERPs had it as the weight; LightGBM finds FILE.query, FILE.position and FILE.weight by
itself, and learns a bias of each position beside the ranker. With propensities it has none to
learn: of the n SERPs that showed an item those with it relevant weigh the sum of its clicks, each
over the propensity of its position, and those without it the rest of n.

Features are of the log: how often an item was shown and clicked, where, and what the fitted models
make of it. The relevance that grades are made of is no feature beside these grades.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from logeval.clicks.collection import FittedModels
from logeval.clicks.fitted import FittedModel
from logeval.clicks.naming import naming_of, without_blanks
from logeval.errors import LogevalError, visible
from logeval.exports.tables import FIELDS, graded, propensities_from, relevance_of
from logeval.running.arrays import Floats
from logeval.storage.spreadsheets import csv_of

if TYPE_CHECKING:
    from logeval.exports.export import Export


EVIDENCE = ["query", "item", "grade", "relevance", "low", "high", "observations", "uncertain"]
PAIR = ["query_number", "item_id"]


def qrels(table: pd.DataFrame) -> str:
    """TREC's form, ``query 0 item grade``, as trec_eval, ir_measures and ranx read it.

    Blanks separate its columns, so those in names become %20.
    """
    queries, items = (_without_blanks(table[name]) for name in ("query", "item"))
    rows = zip(queries, items, table["grade"], strict=True)
    return "".join(f"{q} 0 {item} {grade}\n" for q, item, grade in rows)


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


def training_files(
    asked: Export, grades: pd.DataFrame, propensities: pd.DataFrame | None
) -> tuple[dict[str, str], str]:
    """Texts by what their names end in, and a sentence about them."""
    models, fitted = asked.fitted, asked.fitted.named(asked.model)
    cells = shown_cells(models, fitted)
    features = features_of(models, fitted, cells)
    if asked.ltr == "svmlight":
        own = f"{fitted.model}.{asked.relevance}"
        return _graded(grades, features.drop(columns=own, errors="ignore"))
    cells = cells[pd.MultiIndex.from_frame(cells[PAIR]).isin(features.index)]
    if propensities is None:
        return _clicked(cells, features)
    weight = cells["position"].map(propensities.set_index("position")["weight"]).to_numpy()
    files, words = _clicked(weighed(cells, weight), features)
    del files[".position"]
    lost = cells["shown"][np.isnan(weight)].sum()
    left_out = f"; {lost:,.0f} results at positions without a propensity are left out"
    return files, words + (left_out if lost else "")


def weighed(cells: pd.DataFrame, weight: Floats) -> pd.DataFrame:
    """One cell per (query, item), with the SERPs in which it would be clicked if always examined.

    All its positions count together, so that a click at a rarely examined one is not too many.
    """
    known = cells.assign(clicked=cells["clicked"] * weight)[~np.isnan(weight)]
    return known.groupby(PAIR, as_index=False)[["shown", "clicked"]].sum().assign(position=1)


def shown_cells(models: FittedModels, fitted: FittedModel) -> pd.DataFrame:
    """How often each item of a query was shown and clicked at each position."""
    lists = models.lists
    if lists is None:
        raise LogevalError("features are counted from the lists of a log; fit the models to one")
    number = np.array([fitted.index.get(query, -1) for query in lists.queries])
    own = np.diff(lists.clicks, axis=1, prepend=0.0)
    n, k = np.nonzero(np.arange(lists.items.shape[1]) < lists.length[:, None])
    cells = pd.DataFrame(
        {
            "query_number": number[lists.query[n]],
            "item_id": lists.items[n, k],
            "position": k + 1,
            "shown": lists.serps[n],
            "clicked": own[n, k],
        }
    )
    cells = cells[cells["query_number"] >= 0]
    return cells.groupby([*PAIR, "position"], as_index=False).sum()


def features_of(models: FittedModels, fitted: FittedModel, cells: pd.DataFrame) -> pd.DataFrame:
    """Features by (query, item): counts, click-through rates, and the items' parameters."""
    keys = pd.MultiIndex.from_arrays([fitted.item_query, fitted.item_ids], names=PAIR)
    weighted = cells.assign(place=cells["position"] * cells["shown"])
    by_rank = cells.groupby("position")[["shown", "clicked"]].sum()
    expected = cells["position"].map(by_rank["clicked"] / by_rank["shown"]) * cells["shown"]
    total = weighted.assign(expected=expected).groupby(PAIR).sum().reindex(keys)
    shown = total["shown"].fillna(0.0)
    found = pd.DataFrame(
        {
            "log_shown": np.log1p(shown),
            "log_clicked": np.log1p(total["clicked"].fillna(0.0)),
            "ctr": (total["clicked"] / shown.where(shown > 0)).fillna(0.0),
            "clicks_over_expected": (total["clicked"] / total["expected"]).fillna(0.0),
            "mean_position": (total["place"] / shown.where(shown > 0)).fillna(0.0),
            "log_serps_of_query": np.log1p(np.nan_to_num(fitted.serps))[fitted.item_query],
        },
        index=keys,
    )
    for name, other in models.fitted.items():
        for relevance in FIELDS:
            try:
                value = relevance_of(other, relevance).value
            except LogevalError:  # a model without it
                continue
            number = np.array([fitted.index.get(query, -1) for query in other.queries])
            theirs = pd.MultiIndex.from_arrays([number[other.item_query], other.item_ids])
            column = pd.Series(value, theirs)
            found[f"{name}.{relevance}"] = column[~theirs.duplicated()].reindex(keys).to_numpy()
    return found.fillna(0.0)


def _graded(grades: pd.DataFrame, features: pd.DataFrame) -> tuple[dict[str, str], str]:
    x = features.loc[pd.MultiIndex.from_frame(grades[PAIR])].to_numpy()
    labels = zip(grades["grade"], grades["query_number"] + 1, strict=True)
    # a name with the end of a line would begin another row
    ends = [visible(f" # {q} {i}") for q, i in zip(grades["query"], grades["item"], strict=True)]
    starts = [f"{grade} qid:{q}" for grade, q in labels]
    named = " ".join(f"{f + 1}:{name}" for f, name in enumerate(features.columns))
    rows = _lines(starts, x, ends)
    about = f"{len(grades):,} rows with {features.shape[1]} features"
    return {"": f"# {named}\n{rows}"}, about


def _clicked(cells: pd.DataFrame, features: pd.DataFrame) -> tuple[dict[str, str], str]:
    """Two rows of each cell, those SERPs that clicked and those that did not."""
    parts = [
        cells.assign(label=1, weight=cells["clicked"]),
        cells.assign(label=0, weight=cells["shown"] - cells["clicked"]),
    ]
    rows = pd.concat(parts).query("weight > 0").sort_values([*PAIR, "position", "label"])
    x = features.loc[pd.MultiIndex.from_frame(rows[PAIR])].to_numpy()
    sizes = rows.groupby("query_number").size()
    files = {
        "": _lines([str(label) for label in rows["label"]], x, [""] * len(rows), first=0),
        ".query": "".join(f"{n}\n" for n in sizes),
        ".position": "".join(f"{k}\n" for k in rows["position"]),
        ".weight": "".join(f"{w:g}\n" for w in rows["weight"]),
        ".features": "".join(f"{name}\n" for name in features.columns),
    }
    return files, f"{len(rows):,} rows of clicks with {features.shape[1]} features"


def _lines(starts: list[str], x: Floats, ends: list[str], first: int = 1) -> str:
    """Rows of ``start 1:value 2:value ... end``; LightGBM counts features from 0."""
    text = []
    for start, values, end in zip(starts, x, ends, strict=True):
        cells = " ".join(f"{f}:{value:.6g}" for f, value in enumerate(values.tolist(), first))
        text.append(f"{start} {cells}{end}\n")
    return "".join(text)


@dataclass(frozen=True)
class Exported:
    """``files`` holds texts by what is appended to the name of ``out``; "" is ``out`` itself."""

    table: pd.DataFrame
    files: dict[str, str]
    words: str

    def __repr__(self) -> str:
        return f"Exported: {self.words}"


def exported(asked: Export) -> Exported:
    """The table that is asked for, and its files."""
    if asked.propensities:
        table, source = propensities_from(asked)
        words = f"examination of {len(table)} positions {source}"
        if blank := int(table["examination"].isna().sum()):
            words += f"; {blank:,} are blank: too few items were clicked there and elsewhere"
        return Exported(table, {"": csv_of(table, "%.6g")}, words)
    every = graded(asked.fitted.named(asked.model), asked, naming_of(asked.fitted))
    table = every[~every["uncertain"]] if asked.uncertain == "withhold" else every
    words = _judged(every, asked.uncertain)
    if asked.judgments is not None:
        return Exported(table, {"": JUDGMENTS[asked.judgments](table)}, words)
    weights, source = None, ""
    if asked.propensities_from is not None:
        weights, source = propensities_from(asked)
        source = f"; clicks weighed by examination {source}"
    found, rows = training_files(asked, table, weights)
    return Exported(table, found, f"{rows}; {words}" if asked.ltr == "svmlight" else rows + source)


def _judged(every: pd.DataFrame, uncertain: str) -> str:
    """How many judgments there are, and what became of those that are uncertain."""
    n, out_of = int(every["uncertain"].sum()), len(every)
    left = out_of - n if uncertain == "withhold" else out_of
    if every["low"].isna().all():
        return f"{left:,} judgments without intervals (the models have none): all kept"
    done = "withheld" if uncertain == "withhold" else "kept"
    hint = "" if left else "; keep them with uncertain=keep"
    return (
        f"{left:,} judgments of {every['query_number'].nunique():,} queries; {n:,} of {out_of:,} "
        f"items ({n / max(out_of, 1):.0%}) have a 95% interval that spans grades and are "
        f"{done}{hint}"
    )
