"""Whether users change: is the same item clicked as often in every period?

A stratum holds the searches that showed an item of a query at a position, without a click above it.
Users who do not change click there with one probability: those of a PBM, UBM, CM, DCM and SDBN
exactly, whatever else was shown, so lists need not recur, and no model is fitted. Given the n_j
searches of each period, and C clicks on all N of them, the clicks of period j deviate by

    U_j = c_j - n_j C / N,    cov(U_j, U_l) = C (N - C) (N 1[j = l] n_j - n_j n_l) / (N^2 (N - 1)),

which are summed over the positions of an item. X = sum U' cov^-1 U over items is chi-squared with k
degrees of freedom, the directions in which clicks vary enough (Mantel and Haenszel, 1959; Birch,
1965). If the logit of an item's attraction differs by d_j in period j, U has the mean cov d: X is
noncentral, by V tau^2, with V the sum of the variances of those directions and tau^2 the mean
square of d along them. So tau is estimated by sqrt((X - k) / V), and X tests whether tau exceeds
``SIZE``: some change there always is, and in a large log any shows. Where no item recurs at a
position, V is 0 and nothing is said.

``SIZE`` is what matters: the best constant list of users whose logits vary so from period to period
earns 1% less than the best list of each period (``benchmarks/drift.py size``).

Click models by period are each shrunk towards their neighbours. The model of period j is fitted to
all SERPs, those of a period i with the weight rho^|i - j|: with rho = 1 it is the constant model,
with a small rho each period speaks for itself. Each query has the rho that predicts its held-out
SERPs best, and rho = 1 unless its users change, or those of the log as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import pyarrow.compute as pc
from scipy.special import bdtrc, chndtr, chndtrix  # scipy.stats takes a second to import

from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.fold import (
    IN_MEMORY,
    MAX_POSITIONS,
    Holdout,
    choose,
    click_bits,
    view_of_fitted,
)
from logeval.clicks.estimation.patterns import Patterns, patterns_of, query_index
from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.scores import log_likelihoods
from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.log.queries import Query
from logeval.running.arrays import Bools, Floats, Ints, distinct, sum_by

LEVEL, LOG_LEVEL = 0.05, 0.01  # of the test of a query, and of that of the log as a whole
VARIANCE = 5.0  # clicks squared; chi-squared does not describe sums that vary less
SIZE = 0.2  # sd of an item's logit from period to period; less makes no difference
ASKED = 2 * SIZE  # how surely that would be found
POWER = 0.5  # with less, no change found says nothing
PARTS, QUERIES = 4, 100  # of a log that is tested along with a fit


@dataclass(frozen=True)
class Change:
    """Of groups of searches: tau, and how surely it is, and ``ASKED`` would be, above ``SIZE``."""

    size: Floats  # (G,) tau
    p: Floats  # (G,) of tau <= SIZE
    power: Floats  # (G,)
    level: float

    @property
    def found(self) -> Bools:
        """Whether users change by more than ``SIZE``, (G,)."""
        return self.p < self.level

    @property
    def tested(self) -> Bools:
        """Whether the clicks can say, (G,)."""
        return self.found | (self.power >= POWER)

    def record(self) -> dict[str, Any]:
        """Of the first group, for manifests."""
        named = {
            "size": self.size,
            "p": self.p,
            "power": self.power,
            "found": self.found,
            "tested": self.tested,
        }
        return {name: x[0].item() for name, x in named.items()}


def of_log(log: Log, queries: list[Query] | None, top_queries: int | None) -> Change | None:
    """Of the most frequent queries together; None where the log knows no days, or one."""
    top = QUERIES if top_queries is None else min(QUERIES, top_queries)
    strata = fold_strata(log, PARTS, queries and queries[:QUERIES], top)
    return None if strata is None else changes_of(strata)[1]


def changes_of(data: Strata) -> tuple[Change, Change]:
    """Of each query, and of all together."""
    sums = np.zeros((len(data.queries), 3))
    bounds = np.searchsorted(data.query, np.arange(len(sums) + 1))
    for q in range(len(sums)):  # one by one: the covariances of all may be large
        U, V = deviations(data, slice(bounds[q], bounds[q + 1]))
        variance, direction = np.linalg.eigh(V)
        kept = variance >= VARIANCE
        off = np.einsum("ij,ijk->ik", U, direction)[kept]
        sums[q] = kept.sum(), (off**2 / variance[kept]).sum(), variance[kept].sum()
    return _tested(sums, LEVEL), _tested(sums.sum(axis=0, keepdims=True), LOG_LEVEL)


def deviations(data: Strata, rows: slice) -> tuple[Floats, Floats]:
    """U (items, periods) of some rows, and the covariances (items, periods, periods)."""
    P, most = data.periods, int(data.position.max(initial=0)) + 1
    _, item = np.unique(data.item[rows], return_inverse=True)
    keys, stratum = distinct(item * most + data.position[rows], (item.max() + 1) * most)
    cell, shape = stratum * P + data.period[rows], (len(keys), P)
    n, c = (sum_by(cell, x[rows], len(keys) * P).reshape(shape) for x in (data.shown, data.clicked))
    N, C = n.sum(axis=1, keepdims=True), c.sum(axis=1, keepdims=True)
    one = C * (N - C) / (N**2 * np.maximum(N - 1.0, 1.0))
    both = N[:, :, None] * n[:, :, None] * np.eye(P) - n[:, :, None] * n[:, None, :]
    U, V = np.zeros((item.max() + 1, P)), np.zeros((item.max() + 1, P, P))
    np.add.at(U, keys // most, c - n * C / N)
    np.add.at(V, keys // most, one[:, :, None] * both)
    return U, V


def _tested(sums: Floats, level: float) -> Change:
    k, X, V = sums.T
    there, some = k > 0, np.maximum(k, 1.0)
    largest = chndtrix(1.0 - level, some, SIZE**2 * V)
    return Change(
        np.sqrt(np.maximum(X - k, 0.0) / np.where(there, V, 1.0)),
        np.where(there, 1.0 - chndtr(X, some, SIZE**2 * V), 1.0),
        np.where(there, 1.0 - chndtr(largest, some, ASKED**2 * V), 0.0),
        level,
    )


def changes(report: dict[str, Any]) -> bool:
    """Whether the log as a whole drifts, or more queries than chance explains."""
    drifting, tested = report["queries_drifting"], report["queries_tested"]
    more = drifting > 0 and bdtrc(drifting - 1, tested, LEVEL) < LEVEL
    return bool(report["log_drifts"] or more)


def which(report: dict[str, Any]) -> str:
    """The queries that change, and their share of the searches."""
    drifting, tested = report["queries_drifting"], report["queries_tested"]
    if not drifting:
        return f"all queries together show it, none of the {tested} tested by itself"
    return (
        f"{drifting} of {tested} queries tested, with {report['serps_drifting']:.0%} of the "
        "searches"
    )


def in_words(name: str, report: dict[str, Any]) -> str:
    """Whether users change, how many queries that is about, and what to do."""
    periods, log = len(report["periods"]), report["log"]
    if changes(report):
        return (
            f"{name}: users change over the {periods} periods: {which(report)} (chance alone: at "
            f"most {LEVEL:.0%} of the queries). The odds of a click move by a factor of "
            f"{math.exp(log['size']):.2f}. Compare policies with evaluate --drift, which walks "
            "through the periods."
        )
    sure = f"of the odds by {math.exp(ASKED):.2g} would be found in {log['power']:.0%} of such logs"
    if not log["tested"]:
        return (
            f"{name}: whether users change over the {periods} periods cannot be tested: too few "
            f"items were shown at one rank in several of them (a change {sure})."
        )
    return (
        f"{name}: no change of users that matters is visible over the {periods} periods; one "
        f"{sure}. Use the constant model."
    )


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


RHO = (0.05, 0.3, 0.7, 0.95)  # and 1, the constant model
NAMED = 20  # queries that a report names


@dataclass(frozen=True)
class Drift:
    """The models of the periods, and what is known of the change."""

    models: tuple[FittedModel, ...]
    queries: Change  # of each query
    log: Change  # of all SERPs together
    report: dict[str, Any]


def fit_by_period(
    constant: FittedModel,
    fit: Callable[[Patterns], FittedModel],
    data: ByPeriod,
    tick: Callable[[int], None],
) -> Drift:
    """``fit`` fits a model, that was fitted to all periods, to patterns; ``tick`` hears of each."""
    P, held_out, count = len(data.periods), data.held_out, data.held_out.count
    serp = np.repeat(np.arange(data.train.P), data.train.count.astype(np.int64))
    period = data.train_period[serp]
    by_rho: list[list[FittedModel]] = []
    scores = np.empty((len(RHO) + 1, held_out.P))
    scores[-1] = log_likelihoods(constant, held_out)
    for c, rho in enumerate(RHO):
        each = []
        for j in range(P):
            weight = sum_by(serp, rho ** np.abs(period - j), data.train.P)
            each.append(fit(data.train.weighted(weight)))
            mine = np.flatnonzero(data.held_out_period == j)
            scores[c, mine] = log_likelihoods(each[-1], held_out.take(mine))
            tick(1)
        by_rho.append(each)
    place = np.array([constant.index.get(q, -1) for q in held_out.queries], dtype=np.int64)
    group = place[held_out.query]
    seen = group >= 0  # whatever was never fitted says nothing
    Q = len(constant.queries)
    sums = np.stack([sum_by(group[seen], (x * count)[seen], Q) for x in scores])
    every, log = changes_of(data.strata)
    at = {query: i for i, query in enumerate(data.strata.queries)}
    rows = [at[query] for query in constant.queries]
    queries = Change(every.size[rows], every.p[rows], every.power[rows], every.level)
    choice = np.where(queries.found | log.found[0], sums.argmax(axis=0), len(RHO))
    models = tuple(
        replace(_chosen([each[j] for each in by_rho] + [constant], choice), shown=shown)
        for j, shown in enumerate(shown_by_period(data, constant))
    )
    serps = sum_by(group[seen], count[seen], Q)
    gain = (sums[choice, np.arange(Q)] - sums[-1]) / np.maximum(serps, 1.0)
    return Drift(models, queries, log, _report(constant, data, queries, log, choice, gain))


def shown_by_period(data: ByPeriod, model: FittedModel) -> Bools:
    """(periods, I) whether the log showed an item of the model in a period, held out or not."""
    pairs = zip(model.item_query.tolist(), model.item_ids.tolist(), strict=True)
    place = {(model.queries[q], item): i for i, (q, item) in enumerate(pairs)}
    found = np.zeros((len(data.periods), len(place)), dtype=np.bool_)
    for part, period in (
        (data.train, data.train_period),
        (data.held_out, data.held_out_period),
    ):
        mine = zip(part.item_query.tolist(), part.item_ids.tolist(), strict=True)
        at = np.array([place.get((part.queries[q], item), -1) for q, item in mine], np.int64)
        rows, items = period[part.shown.pattern], at[part.shown.item]
        found[rows[items >= 0], items[items >= 0]] = True
    return found


def fits_of(periods: int) -> int:
    """How many fits that takes."""
    return len(RHO) * periods


def _chosen(candidates: Sequence[FittedModel], choice: Ints) -> FittedModel:
    """Each query with the parameters of the candidate that it has chosen."""
    first = candidates[-1]
    of_item = choice[first.item_query]
    items = {p.field for p in first.kind.PARAMETERS if p.kind == "item"}

    def of(name: str) -> ParameterEstimate:
        at = of_item if name in items else choice
        rows = np.arange(len(at))
        parts = [c.estimates[name] for c in candidates]
        taken = {
            key: np.stack([getattr(part, key) for part in parts])[at, rows]
            for key in ("value", "low", "high", "observations", "raw")
            if getattr(parts[-1], key) is not None
        }
        return replace(parts[-1], draws=None, **taken)

    return replace(first, estimates={name: of(name) for name in first.estimates})


def _report(
    model: FittedModel, data: ByPeriod, queries: Change, log: Change, choice: Ints, gain: Floats
) -> dict[str, Any]:
    """What the manifest says."""
    drifting = np.flatnonzero(queries.found)
    by_gain = drifting[np.argsort(-gain[drifting], kind="stable")]
    rho = (*RHO, 1.0)
    return {
        "periods": [str(period) for period in data.periods],
        "log_drifts": bool(log.found[0]),
        "log": log.record(),
        "queries_tested": int(queries.tested.sum()),
        "queries_drifting": len(drifting),
        "serps_drifting": float(model.serps[drifting].sum() / max(model.serps.sum(), 1.0)),
        "queries": [
            {"query": str(model.queries[q]), "rho": rho[choice[q]], "gain": float(gain[q])}
            for q in by_gain[:NAMED]
        ],
    }
