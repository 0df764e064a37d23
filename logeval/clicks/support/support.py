"""What a table of counts supports: swaps need impressions and clicks by position, and no pages.

The counts do not say which clicks were made on one page, so the intervals of the examination leave
out what those have in common.

How sure a log of this size is: expected widths of intervals, from its own counts.

With examination e(k) from swaps, an item was examined x(i) = sum of n(i, k) e(k) times, so its
attraction w(i), clicks over x(i), drawn to the mean of the query as if by ``BELIEF`` examinations
more, has the variance w (1 - w) / (x + BELIEF). The best list has the largest w, and is worth the
sum of e(k) w(k) clicks. More SERPs of the same ranker multiply x.

What a log supports, before anything is fitted to it: per query, and in words.

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
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from logeval.clicks.estimation.fold import counted_patterns, fold
from logeval.clicks.estimation.patterns import Counted, Patterns, patterns_of
from logeval.clicks.models.registry import MODELS
from logeval.clicks.support.graph import CARRIES, METHODS, harvest
from logeval.clicks.support.identified import MIXED, few, identified
from logeval.clicks.support.selection import CLICKS_ALONE, clicks_alone, selected_by_clicks
from logeval.errors import LogevalError
from logeval.log.log import Log, load
from logeval.log.names import Names
from logeval.log.queries import Query
from logeval.running.arrays import Floats, sum_by
from logeval.running.words import joined, number
from logeval.storage.results import Shown

if TYPE_CHECKING:
    from logeval.reports.answers.checks import Answer


def counted_words(table: pd.DataFrame) -> list[str]:
    """What can be fitted, and to how many queries."""
    can = [name for name, kind in MODELS.items() if kind.from_counts]
    others = [name for name in can if name != "PBM"]
    Q, carried = len(table), int((table["share_pbm"] >= CARRIES).sum())
    found = [
        f"{carried:,} of {Q:,} queries can carry a PBM, which needs items that were clicked at "
        "several ranks, or attraction and examination cannot be separated",
        f"{joined(others)} can be fitted to all of them. Cascades and the UBM cannot: counts do "
        "not say what else was clicked on a page",
    ]
    if carried < Q:
        found[0] += "; of the others use the DCTR, which does not tell them apart"
    return found


BELIEF = 25.0  # examinations; chosen on other logs than those of docs/measured.md
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


def size_words(table: pd.DataFrame) -> list[str]:
    """How sure a fit would be, and what would halve its intervals."""
    sure = table[table["width_value"] > 0.0]
    if sure.empty:
        return []
    middle = sure.iloc[(sure["width_value"] / sure["value"]).argsort().iloc[len(sure) // 2]]
    return [
        f"Expect a 95% interval about {number(middle['width_value'])} wide for the best list's "
        f"{number(middle['value'])} clicks per search (query {middle['query']}, in relative width "
        "the median), "
        f"and {number(middle['width_items'])} wide for the attraction of its items; "
        f"{middle['serps_to_halve']:,.0f} SERPs of it, in place of {middle['serps']:,}, would "
        "halve the first"
    ]


NEEDY = ("PBM", "UBM", "DBN", "DCM")  # the models that need most come first
ONE_LIST = 0.95  # of the SERPs of a query


@dataclass(frozen=True)
class Support(Shown):
    """What a log supports: a row per query, and sentences; ``verdict()`` is them as an answer."""

    table: pd.DataFrame
    examination: pd.DataFrame  # from swaps (``harvesting``)
    sentences: list[str] = field(default_factory=list)
    names: Names = field(default_factory=Names)  # of its queries

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and strings, fit for JSON, queries by their names."""
        frames = {"queries": self.names.shown(self.table), "examination": self.examination}
        rows = {
            name: frame.astype(object).where(frame.notna(), None).to_dict(orient="records")
            for name, frame in frames.items()
        }
        return {**rows, "words": self.sentences}

    def verdict(self) -> Answer:
        """The answer in words."""
        from logeval.reports.answers.checks import support_verdict

        return support_verdict(self)


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
        return Support(
            pd.DataFrame(), pd.DataFrame(), ["there are no SERPs with clicks to learn from"]
        )
    return support_of(data, log.names.of_queries(queries))


def support_of(data: Patterns, names: Names | None = None) -> Support:
    """The same of clicks that are folded already, in the ``names`` of the queries."""
    names = names or Names()
    if clicks_alone(data):
        return Support(pd.DataFrame(), pd.DataFrame(), [CLICKS_ALONE])
    if isinstance(data, Counted):
        say, selected = counted_words, None
    else:
        say, selected = words, selected_by_clicks(data)
    swaps = harvest(data)
    swaps = swaps[swaps["method"] == METHODS[0]].reset_index(drop=True)
    table = _table(data).join(expected_widths(data, swaps["examination"].to_numpy()))
    shown = names.shown(table)
    first = [] if selected is None else [selected]
    return Support(table, swaps, first + say(shown) + size_words(shown), names)


def _table(data: Patterns) -> pd.DataFrame:
    """What the lists of each query decide about the models; counts about the PBM alone."""
    pages = not isinstance(data, Counted)
    names = NEEDY if pages else NEEDY[:1]
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


def words(table: pd.DataFrame) -> list[str]:
    """How many queries can carry which models, and what to do about the others."""
    carried = {name: table[f"share_{name.lower()}"] >= CARRIES for name in NEEDY}
    Q, numbers = len(table), {name: int(ok.sum()) for name, ok in carried.items()}
    first, *others = [f"{n:,}{{}} a {name}" for name, n in numbers.items()]
    parts = joined([first.format(f" of {Q:,} queries can carry"), *(x.format("") for x in others)])
    found = [f"{parts}: {HOW}"]
    fixed = int((table["top_list"] >= ONE_LIST).sum())
    if fixed:
        show = "shows one list" if fixed == 1 else "show one list"
        found.append(f"{fixed:,} of them {show} in at least {ONE_LIST:.0%} of the SERPs")
    good = table["query"][carried["PBM"]].tolist()
    found += why_not(table[~carried["PBM"]])
    others = table["query"][carried["DCM"] & ~carried["PBM"]].tolist()
    use = "use a DCM, which one list is enough for"
    if 0 < len(good) < Q:
        instead = f", or {use}" if others else ""
        found.append(f"For a PBM leave the others out{instead}: --queries {few(good)}")
    elif others:
        which = "" if len(others) == Q else f": --queries {few(others)}"
        found.append(f"A PBM or UBM would rest on its prior; {use}{which}")
    elif not good:
        found.append("Each of these models would rest on its prior")
    return found


def why_not(lost: pd.DataFrame) -> list[str]:
    """Of queries that cannot carry a PBM: whose lists are apart, and which have too few SERPs."""
    apart = lost["mix"] < MIXED
    found = []
    if n := int(apart.sum()):
        found.append(
            f"For a PBM the lists of {few(lost['query'][apart].tolist())} ({n:,}) hardly mix: "
            "their results fall into parts that few SERPs, or none, compare. More of the same will "
            "not help; some lists in another order will"
        )
    if n := int((~apart).sum()):
        found.append(
            f"For a PBM {few(lost['query'][~apart].tolist())} ({n:,}) have lists that mix, but too "
            "few SERPs: the column serps_pbm says how many each needs"
        )
    return found


HOW = (
    "the models named first need items that were clicked at several ranks, or attraction and "
    "examination cannot be separated"
)
