"""What a table of counts supports: swaps need impressions and clicks by position, and no pages.

The counts do not say which clicks were made on one page, so the intervals of the examination leave
out what those have in common.

How sure a log of this size is: expected widths of intervals, from its own counts.

With examination e(k) from swaps, an item was examined x(i) = sum of n(i, k) e(k) times, so its
attraction w(i), clicks over x(i), drawn to the mean of the query as if by ``BELIEF`` examinations
more, has the variance w (1 - w) / (x + BELIEF). The best list has the largest w, and is worth the
sum of e(k) w(k) clicks. More SERPs of the same ranker multiply x.

What a log supports, before anything is fitted to it: per query, and as facts.

``share_pbm`` is the share of the query's impressions whose items and positions the clicks compare
with each other, likewise ``share_ubm``, ``share_dbn`` and ``share_dcm`` (``identified``): a query
can carry a model from 0.8. ``cut_clicks`` hold the graph of the PBM together at its
weakest place; ``mix`` is how far its lists mix (1: as if in random order, below 0.1 they are
apart), ``serps_pbm`` how many SERPs of the same kind a PBM needs. ``top_list`` is the share of the
list that was shown most. The rest is about how sure a log of this size is (``size``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from logeval.clicks.estimation.fold import counted_patterns, fold
from logeval.clicks.estimation.patterns import Counted, Patterns, patterns_of
from logeval.clicks.models.registry import MODELS
from logeval.clicks.support.graph import CARRIES, METHODS, harvest
from logeval.clicks.support.identified import MIXED, identified
from logeval.clicks.support.selection import clicks_alone, expected_empty
from logeval.errors import LogevalError
from logeval.facts import Answer, Fact
from logeval.log.log import Log, load
from logeval.log.names import Names
from logeval.log.queries import Query
from logeval.running.arrays import Floats, sum_by
from logeval.storage.results import Shown

BELIEF = 25.0  # examinations; chosen on other logs than those of docs/evidence.md
NORMAL = 1.959964


def expected_widths(data: Patterns, examination: Floats) -> pd.DataFrame:
    """Per query: value of the best list, widths of 95% intervals, SERPs that would halve the first.

    ``width_value`` is of that value in clicks per search, ``width_items`` the median of the
    attraction of its items; ``serps_to_halve`` is the number of SERPs in all, with which the first
    would be half as wide.
    """
    e = filled(examination)
    x = data.sum_items(data.shown.count * e[data.shown.position])
    clicks = data.item_clicks
    by_query = [sum_by(data.item_query, each, data.Q) for each in (clicks, x)]
    mean = (by_query[0] / np.maximum(by_query[1], 1e-300))[data.item_query]
    w = np.clip((clicks + BELIEF * mean) / (x + BELIEF), 0.0, 1.0)
    rows = []
    for q in range(data.Q):
        mine = np.arange(data.offsets[q], data.offsets[q + 1])
        K = min(int(data.positions[q]), len(mine))
        top = mine[np.argsort(-w[mine], kind="stable")[:K]]
        weight = np.sort(e[: data.positions[q]])[::-1][:K]
        spread = w[top] * (1 - w[top])
        variance = _variance(1.0, weight**2 * spread, x[top])
        half = np.nan
        if variance > 0.0:
            half = brentq(_more_than, 1.0, 1e9, (weight**2 * spread, x[top], variance / 4))
        rows.append(
            {
                "value": float(weight @ w[top]),
                "width_value": 2 * NORMAL * np.sqrt(variance),
                "width_items": float(np.median(2 * NORMAL * np.sqrt(spread / (x[top] + BELIEF)))),
                "serps_to_halve": np.ceil(half * data.serps[q]),
            }
        )
    return pd.DataFrame(rows)


def _variance(more: float, spread: Floats, x: Floats) -> float:
    """Of the value of a list, with so many times the SERPs."""
    return float((spread / (more * x + BELIEF)).sum())


def _more_than(more: float, spread: Floats, x: Floats, wanted: float) -> float:
    return _variance(more, spread, x) - wanted


def filled(examination: Floats) -> Floats:
    """Examination by rank, relative to the largest; a rank without a value has that above it."""
    known = pd.Series(examination).ffill().fillna(1.0).to_numpy(dtype=np.float64)
    return np.asarray(known / known.max())


def width(table: pd.DataFrame) -> Fact | None:
    """How sure a fit of the median query would be: the interval of its best list's value."""
    sure = table[table["width_value"] > 0.0]
    if sure.empty:
        return None
    middle = sure.iloc[(sure["width_value"] / sure["value"]).argsort().iloc[len(sure) // 2]]
    numbers = (float(middle[name]) for name in ("value", "width_value", "serps_to_halve"))
    value, wide, serps = numbers
    return Fact("width", str(middle["query"]), value=value, low=wide, threshold=serps)


NEEDY = ("DCM", "DBN", "PBM", "UBM")  # the models that need most come last
ONE_LIST = 0.95  # of the SERPs of a query


@dataclass(frozen=True)
class Support(Shown):
    """What a log supports: a row per query, and facts."""

    table: pd.DataFrame
    examination: pd.DataFrame  # from swaps (``harvesting``)
    facts: list[Fact] = field(default_factory=list)
    names: Names = field(default_factory=Names)  # of its queries

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and strings, fit for JSON, queries by their names."""
        frames = {"queries": self.names.shown(self.table), "examination": self.examination}
        rows = {
            name: frame.astype(object).where(frame.notna(), None).to_dict(orient="records")
            for name, frame in frames.items()
        }
        return {**rows, "facts": [fact.record() for fact in self.facts]}

    def verdict(self) -> Answer:
        """The conclusion, and what limits it."""
        return Answer(self.facts[:1], self.facts[1:])


def support(log: Log | Path | str, top: int = 20) -> Support:
    """What the clicks on the ``top`` most frequent queries of a log, or its folder, can decide.

    >>> logeval.support("data/log").table["query"].tolist()
    ['1', '2', '3']
    """
    log = load(log)
    queries = [Query.of(name) for name in log.top_queries(top)["query"]]
    if log.holds != "serps":
        data: Patterns | None = counted_patterns(log, queries)
    else:
        data = patterns_of(fold(log, queries=queries), queries) if queries else None
    if data is None:
        return Support(pd.DataFrame(), pd.DataFrame(), [Fact("nothing-shown", level="stop")])
    return support_of(data, log.names.of_queries(queries))


def support_of(data: Patterns, names: Names | None = None) -> Support:
    """The same of clicks that are folded already, in the ``names`` of the queries."""
    names = names or Names()
    if clicks_alone(data):
        return Support(pd.DataFrame(), pd.DataFrame(), [Fact("clicks-alone", level="stop")])
    swaps = harvest(data)
    swaps = swaps[swaps["method"] == METHODS[0]].reset_index(drop=True)
    table = _table(data).join(expected_widths(data, swaps["examination"].to_numpy()))
    shown = names.shown(table)
    found = about(shown, pages=not isinstance(data, Counted))
    empty = None if isinstance(data, Counted) else expected_empty(data)
    if empty is not None:
        found.insert(0, Fact("clicked-only", level="stop", value=empty))
    sure = width(shown)
    return Support(table, swaps, found + ([] if sure is None else [sure]), names)


def _table(data: Patterns) -> pd.DataFrame:
    """What the lists of each query decide about the models; counts about the PBM alone."""
    pages = not isinstance(data, Counted)
    names = NEEDY if pages else ("PBM",)
    found = {name: identified(MODELS[name], data, "per-query") for name in names}
    pbm = found["PBM"]
    if pbm is None or pbm.cut is None:
        raise LogevalError("the PBM is not known here; is another registered under its name?")
    needed = data.serps * pbm.times_needed
    more = np.ceil(np.where(np.isfinite(needed), needed, np.nan))
    return pd.DataFrame(
        {
            "query": [str(query) for query in data.queries],
            "serps": data.serps.astype(np.int64),  # of counts at least: see ``Counted``
            **({"top_list": top_lists(data)} if pages else {}),
            **{f"share_{name.lower()}": one.share for name, one in found.items() if one},
            "cut_clicks": np.where(np.isfinite(pbm.cut), pbm.cut, np.nan),
            **({"mix": pbm.mix, "serps_pbm": more} if pages else {}),
        }
    )


def top_lists(data: Patterns) -> Floats:
    """The share of each query's SERPs that show the list shown most, (Q,)."""
    code = np.unique(np.column_stack([data.query, data.items]), axis=0, return_inverse=True)[1]
    shown = sum_by(code.ravel(), data.count, int(code.max()) + 1)
    most = np.zeros(data.Q)
    np.maximum.at(most, data.query, shown[code.ravel()])
    return most / np.maximum(data.serps, 1e-300)


def about(table: pd.DataFrame, pages: bool) -> list[Fact]:
    """How many queries can carry which models, and why the others cannot carry a PBM."""
    shares = {name: table.get(f"share_{name.lower()}") for name in NEEDY}
    carried = {name: int((x >= CARRIES).sum()) for name, x in shares.items() if x is not None}
    lost = table[table["share_pbm"] < CARRIES]
    found = [Fact("carries", "", "fine" if max(carried.values()) else "caution",
                  threshold=float(len(table)), more={"models": carried})]  # fmt: skip
    if not pages:
        return found
    fixed = int((table["top_list"] >= ONE_LIST).sum())
    if fixed:
        found.append(Fact("one-list", level="caution", value=float(fixed)))
    apart = lost["mix"] < MIXED
    for code, rows in (("lists-apart", lost[apart]), ("too-few-searches", lost[~apart])):
        if len(rows):
            named = {"queries": rows["query"].tolist()}
            found.append(Fact(code, value=float(len(rows)), more=named))
    return found
