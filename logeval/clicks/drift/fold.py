"""serps -> click statistics by period: days, weeks, or N parts of the days of a log."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow.compute as pc

from logeval.clicks.estimation.patterns import Patterns, patterns_of, query_index
from logeval.clicks.estimation.statistics.fold import (
    IN_MEMORY,
    MAX_POSITIONS,
    Holdout,
    choose,
    click_bits,
    view_of_fitted,
)
from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.log.queries import Query
from logeval.running.arrays import Floats, Ints

DAY, WEEK, LONGEST_NAMES = 1, 7, ("day", "week")
MOST = 400  # periods: a year of days
MOST_TESTED = 28  # of the strata: more are taken together


@dataclass(frozen=True)
class Period:
    """Days first..last of the log."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}" if self.last > self.first else str(self.first)


@dataclass(frozen=True)
class ByPeriod:
    """Patterns of all periods, numbered alike, and the period of each; strata of all SERPs."""

    periods: tuple[Period, ...]
    train: Patterns
    train_period: Ints
    held_out: Patterns
    held_out_period: Ints
    strata: Strata


@dataclass(frozen=True)
class Strata:
    """How often items were shown and clicked by period and position, without a click above."""

    periods: int
    queries: list[Query]
    query: Ints  # (n,) index of the query, in order
    item: Ints  # (n,) its id
    position: Ints
    period: Ints
    shown: Floats
    clicked: Floats


def check_periods(text: str | int) -> str:
    """``day``, ``week`` or a number of at least two."""
    text = str(text).strip().lower()
    if text not in LONGEST_NAMES and not (text.isdigit() and 2 <= int(text) <= MOST):
        raise LogevalError(f"periods={text}: write day, week, or a number from 2 to {MOST}")
    return text


def periods_of(first: int, last: int, text: str) -> tuple[Period, ...]:
    """The periods of the days first..last."""
    days = last - first + 1
    if text in LONGEST_NAMES:
        length = DAY if text == "day" else WEEK
        starts = list(range(first, last + 1, length))
        if len(starts) > 1 and last - starts[-1] + 1 < length / 2:  # a short rest joins the last
            starts.pop()
    else:
        if int(text) > days:
            raise LogevalError(f"periods={text}: the log has {days} days; ask for fewer, or day")
        starts = [first + j * days // int(text) for j in range(int(text))]
    if len(starts) < 2:
        raise LogevalError(f"periods={text}: the {days} days of the log are one; ask for shorter")
    if len(starts) > MOST:
        raise LogevalError(f"periods={text}: the log has {days} days; ask for week, or a number")
    return tuple(map(Period, starts, [*(start - 1 for start in starts[1:]), last]))


def fold_by_period(
    log: Log,
    text: str,
    queries: list[Query] | None,
    top_queries: int | None,
    holdout: str | float | None,
    seed: int,
) -> ByPeriod:
    """The patterns of a log by period; a share of the sessions is held out."""
    below = f"{int(Holdout.parse(holdout).share * 16**8):08x}"
    with log.connect() as db:
        view_of_fitted(db)
        where = choose(db, queries, top_queries)
        days = _days(db, where)
        if days is None:
            raise LogevalError(
                f"{log.path}: the log does not say on which day a search was made, so there are "
                "no periods; leave periods out"
            )
        periods = periods_of(*days, text)
        folded = f"""
            SELECT query_id, region_id, period, part, items, clicks, count(*) AS count
            FROM (
                SELECT query_id, region_id, items, {click_bits("clicks")} AS clicks,
                    {_period(periods)} AS period,
                    md5('{int(seed)}:' || session_id) < '{below}' AS part
                FROM fitted {where} {"AND" if where else "WHERE"}
                    len(items) BETWEEN 1 AND {MAX_POSITIONS}
            )
            GROUP BY ALL ORDER BY query_id, region_id, items, clicks, period, part"""
        rows = db.sql(folded).to_arrow_table()
        strata = _strata(db, where, periods)
    if rows.num_rows > IN_MEMORY:
        raise LogevalError(
            f"{log.path}: {rows.num_rows:,} different result pages by period do not fit into "
            "memory; take fewer queries with top_queries, or longer periods"
        )
    train, rest = rows.filter(pc.invert(rows["part"])), rows.filter(rows["part"])
    if not train.num_rows or not rest.num_rows:
        raise LogevalError(f"{log.path}: holdout={holdout} leaves no SERPs to fit, or to score")
    return ByPeriod(
        periods,
        patterns_of(train),
        train["period"].to_numpy(),
        patterns_of(rest),
        rest["period"].to_numpy(),
        strata,
    )


def fold_strata(
    log: Log, parts: int, queries: list[Query] | None, top_queries: int | None
) -> Strata | None:
    """The strata of at most so many parts of a log; None if it does not know of several days."""
    with log.connect() as db:
        view_of_fitted(db)
        where = choose(db, queries, top_queries)
        days = _days(db, where)
        if days is None or days[0] == days[1]:
            return None
        number = min(parts, days[1] - days[0] + 1)
        return _strata(db, where, periods_of(*days, str(number)))


def _days(db: duckdb.DuckDBPyConnection, where: str) -> tuple[int, int] | None:
    """The first day and the last, if they are known."""
    first, last, without = db.execute(
        f"SELECT min(day), max(day), count(*) - count(day) FROM fitted {where}"
    ).fetchall()[0]
    return None if first is None or without else (first, last)


def _period(periods: tuple[Period, ...]) -> str:
    """SQL: the number of the period of a day."""
    starts = ", ".join(str(p.first) for p in periods)
    return f"len([s FOR s IN [{starts}] IF s <= day]) - 1"


def _strata(db: duckdb.DuckDBPyConnection, where: str, periods: tuple[Period, ...]) -> Strata:
    P = min(len(periods), MOST_TESTED)
    rows = db.sql(f"""
        WITH read AS (
            SELECT query_id, region_id, ({_period(periods)}) * {P} // {len(periods)} AS period,
                items, clicks,
                coalesce(nullif(list_position([c > 0 FOR c IN clicks], true), 0), len(items)) AS n
            FROM fitted {where}),
        results AS (
            SELECT query_id, region_id, period, unnest(items[:n]) AS item,
                generate_subscripts(items[:n], 1) AS position, unnest(clicks[:n]) > 0 AS clicked
            FROM read)
        SELECT query_id, region_id, item, position, period, count(*)::DOUBLE AS shown,
            count(*) FILTER (clicked)::DOUBLE AS clicked
        FROM results GROUP BY ALL ORDER BY query_id, region_id, item, position, period
        """).to_arrow_table()
    query, queries = query_index(rows)
    order = np.argsort(query, kind="stable")
    names = ("item", "position", "period", "shown", "clicked")
    return Strata(P, queries, query[order], *(rows[name].to_numpy()[order] for name in names))
