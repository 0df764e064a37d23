"""Targets as tables: (query, rank, item), with a probability, and with numbered lists.

columns                                 the target
query, rank, item                       one list per query
query, rank, item, probability          the probability of an item at a rank, the ranks apart
query, list, rank, item, probability    several lists, each with its probability

``query`` is written as everywhere, 9982@0; query_id and region_id will do as well. Queries and
items that are text in the log are named likewise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from logeval.errors import LogevalError, one_line, printable
from logeval.log.names import Names
from logeval.log.queries import Query

TOLERANCE = 1e-6  # of sums of probabilities
LONGEST = 1_000  # positions of a list
LARGEST = 2**63 - 1  # of an id
EXACT = 2**53 - 1  # as floats, which a blank in a column makes them; larger ones are rounded


def read_target_table(path: Path, names: Names | None = None, placed: bool = False) -> pd.DataFrame:
    """The rows of a target from a file; ``names`` are those of the log."""
    return target_rows(_read(path, names or Names()), path, names, placed)


def target_rows(
    given: pd.DataFrame, path: Path | str, names: Names | None = None, placed: bool = False
) -> pd.DataFrame:
    """The rows of a target, checked: query (Query), list, rank, item, probability.

    ``path`` is what errors call it. What the log does not have stays, with an id below 0. Where
    items are ``placed`` one by one, any position may have the same item.
    """
    names = names or Names()
    frame = given.reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    if "query" not in frame and "query_id" in frame:
        regions = frame["region_id"] if "region_id" in frame else [None] * len(frame)
        pairs = zip(frame["query_id"], regions, strict=True)
        frame["query"] = [str(q) if pd.isna(r) else f"{q}@{_whole(r)}" for q, r in pairs]
    missing = [name for name in ("query", "rank", "item") if name not in frame]
    if missing:
        raise LogevalError(
            f"{path}: there is no column {missing[0]!r} (it has {printable(frame.columns)}); "
            "a target has query, rank, item and perhaps probability, list"
        )
    if not len(frame):
        raise LogevalError(f"{path}: there is no row in it")
    named = [kind for kind in ("query", "item") if kind in names.kinds]
    for name in ("rank", "item"):
        frame[name] = frame[name].astype(str) if name in named else _integers(path, frame, name)
    texts = [str(_whole(name)) for name in frame["query"]]
    frame["query"] = texts if "query" in named else [Query.parse(text) for text in texts]
    if "probability" in frame:
        frame["probability"] = _probabilities(path, frame)
    by_rank = "probability" in frame and "list" not in frame
    if "list" not in frame:
        frame["list"] = 0
    if by_rank:
        _check_marginals(path, frame, 1.0 if not placed else np.inf)
    else:
        _check_lists(path, frame)
    for kind in named:
        frame[kind] = _ids(names, kind, frame[kind])
    if "query" in named:
        frame["query"] = [Query(number) for number in frame["query"]]
    frame.attrs["marginals"] = by_rank
    return frame


def _ids(names: Names, kind: str, column: pd.Series) -> list[int]:
    """The ids of names; those that the log does not have are numbered below 0."""
    known = names.ids_of(kind, column.unique())
    unknown = [name for name in known if known[name] is None]
    known |= {name: -1 - n for n, name in enumerate(unknown)}
    return [int(known[name]) for name in column]  # type: ignore[arg-type]


def _read(path: Path, names: Names) -> pd.DataFrame:
    if not path.is_file():
        raise LogevalError(f"{path}: there is no such file; a target is a Parquet or CSV table")
    try:
        with open(path, "rb") as file:
            parquet = file.read(4) == b"PAR1"
        text: Any = dict.fromkeys(names.kinds, str)
        return pd.read_parquet(path) if parquet else pd.read_csv(path, dtype=text)
    except (ValueError, OSError, NotImplementedError) as error:
        raise LogevalError(
            f"{path}: cannot be read as Parquet or CSV ({one_line(error)})"
        ) from None


def _whole(region: object) -> object:
    """An id as it is written in the name of a query: a blank in a column makes 5 a 5.0."""
    return f"{region:.0f}" if isinstance(region, float) and region.is_integer() else region


def _integers(path: Path | str, frame: pd.DataFrame, name: str) -> pd.Series:
    values = pd.to_numeric(frame[name], errors="coerce")
    largest = EXACT if values.dtype.kind == "f" else LARGEST
    first, last = (1, LONGEST) if name == "rank" else (-largest, largest)
    good = values.between(first, last) & (values == np.floor(values))
    span = f"from 1 to {LONGEST:,}" if name == "rank" else "of 64 bits"
    _check(path, frame[name], good, f"a whole number {span}")
    return values.astype(np.int64)


def _probabilities(path: Path | str, frame: pd.DataFrame) -> pd.Series:
    values = pd.to_numeric(frame["probability"], errors="coerce")
    _check(path, frame["probability"], values.between(0.0, 1.0), "between 0 and 1")
    return values.astype(np.float64)


def _check(path: Path | str, column: pd.Series, good: pd.Series, wanted: str) -> None:
    if not good.all():
        row = int(np.argmin(good))
        found = column.iloc[row]
        raise LogevalError(
            f"{path}: column {column.name!r}, row {row + 1}: "
            f"{repr(found) if isinstance(found, str) else found} is not {wanted}"
        )


def _check_lists(path: Path | str, frame: pd.DataFrame) -> None:
    if "probability" not in frame:
        if frame.groupby("query")["list"].nunique().max() > 1:
            raise LogevalError(f"{path}: there are several lists and no column `probability`")
        frame["probability"] = 1.0
    for key, rows in frame.groupby(["query", "list"], sort=False):
        query, number = key  # type: ignore[misc]
        place = _place(path, query) + (f", list {printable([str(number)])}" if number else "")
        for name, why in (
            ("rank", "with a column `probability` it may be"),
            ("item", "a list shows it once"),
        ):
            if len(twice := rows[name][rows[name].duplicated()]):
                raise LogevalError(f"{place}: {name} {twice.iloc[0]} is there twice; {why}")
        _check_no_gap(place, rows["rank"])
        if rows["probability"].nunique() > 1:
            raise LogevalError(f"{place}: a list has one probability, the same in all its rows")
    each = frame.drop_duplicates(["query", "list"])
    for query, total in each.groupby("query", sort=False)["probability"].sum().items():
        _check_sum(f"{_place(path, query)}: the probabilities of its lists", total)


def _check_marginals(path: Path | str, frame: pd.DataFrame, most: float) -> None:
    for query, rows in frame.groupby("query", sort=False):
        place = _place(path, query)
        _check_no_gap(place, rows["rank"])
        twice = rows[rows.duplicated(["rank", "item"])]
        if len(twice):
            rank, item = twice.iloc[0][["rank", "item"]]
            raise LogevalError(f"{place}: item {item} is at rank {rank} twice")
        for rank, total in rows.groupby("rank")["probability"].sum().items():
            _check_sum(f"{place}, rank {rank}: the probabilities", total)
        of_item = rows.groupby("item")["probability"].sum()
        if of_item.max() > most + TOLERANCE:
            raise LogevalError(
                f"{place}: item {of_item.idxmax()} is shown with probability "
                f"{of_item.max():g}: twice on some list"
            )


def _place(path: Path | str, query: Any) -> str:
    return f"{path}: query {query if isinstance(query, str) else Query(*query)}"


def _check_no_gap(place: str, ranks: pd.Series) -> None:
    if absent := set(range(1, int(ranks.max()) + 1)) - set(ranks):
        raise LogevalError(f"{place}: rank {min(absent)} is missing")


def _check_sum(what: str, total: float) -> None:
    if abs(total - 1.0) > TOLERANCE:
        raise LogevalError(f"{what} add up to {total:g}, not 1")
