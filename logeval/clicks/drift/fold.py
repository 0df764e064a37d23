"""serps -> click statistics by period: days, weeks, or N parts of the days of a log."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from logeval.clicks.estimation.patterns import Patterns, patterns_of
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
from logeval.running.arrays import Ints

DAY, WEEK, LONGEST_NAMES = 1, 7, ("day", "week")
MOST = 400  # periods: a year of days


@dataclass(frozen=True)
class Period:
    """Days first..last of the log."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}" if self.last > self.first else str(self.first)


@dataclass(frozen=True)
class ByPeriod:
    """Patterns of all periods, numbered alike, and the period of each; held out ones in halves."""

    periods: tuple[Period, ...]
    train: Patterns
    train_period: Ints
    held_out: Patterns
    held_out_period: Ints
    half: Ints  # 1 or 2, of each held-out pattern


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
    """The patterns of a log by period; a share of the sessions, in two halves, is held out."""
    share = Holdout.parse(holdout).share
    below, half = (f"{int(x * 16**8):08x}" for x in (share, share / 2.0))
    session = f"md5('{int(seed)}:' || session_id)"
    with log.connect() as db:
        view_of_fitted(db)
        where = choose(db, queries, top_queries)
        first, last, without = db.execute(
            f"SELECT min(day), max(day), count(*) - count(day) FROM fitted {where}"
        ).fetchall()[0]
        if first is None or without:
            raise LogevalError(
                f"{log.path}: the log does not say on which day a search was made, so there are "
                "no periods; leave periods out"
            )
        periods = periods_of(first, last, text)
        starts = "[" + ", ".join(str(p.first) for p in periods) + "]"
        folded = f"""
            SELECT query_id, region_id, period, part, items, clicks, count(*) AS count
            FROM (
                SELECT query_id, region_id, items, {click_bits("clicks")} AS clicks,
                    len([s FOR s IN {starts} IF s <= day]) - 1 AS period,
                    CASE WHEN {session} < '{half}' THEN 1 WHEN {session} < '{below}' THEN 2
                        ELSE 0 END AS part
                FROM fitted {where} {"AND" if where else "WHERE"}
                    len(items) BETWEEN 1 AND {MAX_POSITIONS}
            )
            GROUP BY ALL ORDER BY query_id, region_id, items, clicks, period, part"""
        rows = db.sql(folded).to_arrow_table()
    if rows.num_rows > IN_MEMORY:
        raise LogevalError(
            f"{log.path}: {rows.num_rows:,} different result pages by period do not fit into "
            "memory; take fewer queries with top_queries, or longer periods"
        )
    train, rest = rows.filter(pc.equal(rows["part"], 0)), rows.filter(pc.greater(rows["part"], 0))
    if not train.num_rows or not rest.num_rows:
        raise LogevalError(f"{log.path}: holdout={holdout} leaves no SERPs to fit, or to score")
    return ByPeriod(
        periods,
        patterns_of(train),
        train["period"].to_numpy(),
        patterns_of(rest),
        rest["period"].to_numpy(),
        rest["part"].to_numpy(),
    )
