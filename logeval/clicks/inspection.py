"""One query of a fitted model, looked at: its items, its best list, and the lists of the log."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.fold import counted_patterns, fold
from logeval.clicks.estimation.patterns import Counted, Patterns, patterns_of
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.model import ClickModel
from logeval.clicks.users.optimum import Optimum
from logeval.log.log import Log, load
from logeval.log.names import Names, apart, shortened
from logeval.log.queries import GivenQuery, Query
from logeval.storage import tables


@dataclass(frozen=True)
class Inspection:
    """What ``inspect`` finds; without the log, ``lists`` is empty and nothing is counted."""

    model: str
    query: Query
    serps: int | None  # of the log
    items: pd.DataFrame  # item, shown, clicked, place in the best list, parameters with intervals
    positions: pd.DataFrame  # position, and the parameters that depend on it with intervals
    classes: pd.DataFrame  # class, share with interval, clicks on the best list; empty without any
    best: list[Any]  # item ids
    reward: str
    value: float  # expected reward of the best list
    proven: bool  # that no list is better; else it was found by a search
    lists: pd.DataFrame  # the lists of the log, most shown first, and how far from the best
    names: Names = field(default_factory=Names)  # of queries and items

    def named(self, width: int | None = None) -> Inspection:
        """The same for people: items have their names, shortened to a width."""
        if "item" not in self.names.kinds:
            return self

        short = apart(self.names.names_of("item", self.items["item"]), width)

        def names(ids: list[int]) -> list[str]:
            whole = self.names.names_of("item", ids)
            return [short.get(name) or shortened(name, width) for name in whole]

        lists = self.lists.assign(list=self.lists["list"].map(names))
        items = self.names.shown(self.items, width)
        return replace(self, items=items, best=names(self.best), lists=lists)


def inspect(
    models: FittedModels, query: GivenQuery, *, model: str | None = None, log: Log | None = None
) -> Inspection:
    """One query of one of the models, by default the first.

    ``log`` is by default the one that the models were fitted to, where it is still there. A list
    of the log is as good as its expected reward under the model, as a share of the best list's.
    """
    fitted = models.named(model)
    meant = models.the_query(fitted, query)
    own = fitted.of(meant)
    best = own.optimum()
    data = _patterns(models, meant, log)
    items, positions = _parameters(fitted, meant, own)
    items.insert(1, "best", _places(own, best))
    lists = pd.DataFrame(columns=["shown", "share", "reward", "in_best", "list"])
    if data is not None:
        for at, name, n in ((1, "shown", data.impressions), (2, "clicked", data.item_clicks)):
            count = dict(zip(data.item_ids.tolist(), n.astype(int).tolist(), strict=True))
            items.insert(at, name, [count.get(int(i), 0) for i in own.items])
        lists = lists if isinstance(data, Counted) else _lists(own, best, data)
    return Inspection(
        fitted.model,
        meant,
        None if data is None else int(data.serps.sum()),
        items,
        positions,
        _classes(fitted, meant, best),
        own.items[best.A].tolist(),
        own.rewards[0],
        best.value,
        best.proven,
        lists,
        models.names,
    )


def _patterns(models: FittedModels, query: Query, log: Log | None) -> Patterns | None:
    named = models.manifest.get("log_folder")
    if log is None and named and tables.there_is(named):
        log = load(named)
    if log is None:
        return None
    if log.holds != "serps":
        return counted_patterns(log, [query])
    return patterns_of(fold(log, queries=[query]))


def _parameters(
    fitted: FittedModel, query: Query, own: ClickModel
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The parameters by item, and those by position; three columns each."""
    items: dict[str, Any] = {"item": own.items}
    positions: dict[str, Any] = {"position": np.arange(1, own.K + 1)}
    for c, part in fitted.classes_of(query).items():
        for p in part.kind.PARAMETERS:
            if p.kind in ("item", "position"):
                found, target = part.estimate(p, query), items if p.kind == "item" else positions
                for end, x in (("", found.value), ("_low", found.low), ("_high", found.high)):
                    name = f"{p.name} {c}".strip() + end
                    target[name] = x if p.kind == "item" else x[: own.K]
    return pd.DataFrame(items), pd.DataFrame(positions)


def _classes(fitted: FittedModel, query: Query, best: Optimum) -> pd.DataFrame:
    """The classes of users: their shares, and how often they click on the best list."""
    rows, several = [], len({part.kind for part in fitted.classes}) > 1
    for c, part in fitted.classes_of(query).items():
        if c:
            share = fitted.estimates["share"].map(lambda x: x[fitted.index[query]])
            ends = {"share": share.value, "share_low": share.low, "share_high": share.high}
            clicks = part.of(query).expected_reward(best.A[None], "clicks")[0]
            rows.append(
                {
                    "class": f"{c} {part.kind.name}" if several else c,
                    **{key: x[int(c) - 1] for key, x in ends.items()},
                    "clicks": clicks,
                }
            )
    return pd.DataFrame(rows, columns=["class", "share", "share_low", "share_high", "clicks"])


def _places(own: ClickModel, best: Optimum) -> pd.Series:
    """The position of each item in the best list; null for the others."""
    places = pd.Series(pd.NA, index=range(own.L), dtype="Int64")
    places.iloc[best.A] = np.arange(1, len(best.A) + 1)
    return places


def _lists(own: ClickModel, best: Optimum, data: Patterns) -> pd.DataFrame:
    """One row per list of the log; no reward where it holds an item that the model dropped."""
    count: dict[tuple[int, ...], int] = {}
    for items, length, n in zip(data.items, data.length, data.count, strict=True):
        ids = tuple(data.item_ids[items[:length]].tolist())
        count[ids] = count.get(ids, 0) + int(n)
    known, top = set(own.items.tolist()), set(own.items[best.A].tolist())
    rows = []
    for ids, n in sorted(count.items(), key=lambda pair: (-pair[1], pair[0])):
        reward = np.nan
        if known.issuperset(ids) and len(ids) <= own.K and len(set(ids)) == len(ids):
            reward = float(own.expected_reward(own.rows_of(list(ids))[None])[0])
        rows.append(
            {
                "shown": n,
                "share": reward / best.value if best.value > 0 else np.nan,
                "reward": reward,
                "in_best": len(top.intersection(ids)),
                "list": list(ids),
            }
        )
    return pd.DataFrame(rows)
