"""Which estimator to trust on this log: leave one part out, and predict its clicks.

The lists of the part are the target, its clicks the truth, and the other parts the log. The error
is compared with the noise of the truth itself (no estimate can be better than that) and with RCTR,
the logger's own value. The clip M of a part may be chosen on the other parts, and so may the
estimator of each query (as in Kiyohara et al., "Off-policy evaluation of ranking policies under
diverse user behavior", KDD 2023, who choose by context).

Two more questions have numbers of their own. Does an estimator know which *list* earns more? That
is the slope of held-out clicks on what it predicts for single lists (``clicks.quality.value``). And
what would have come of choosing by it, among the parts? With best@k the largest true value among
the k parts that it puts first, and std@k the standard deviation of their true values,
SharpeRatio@k = (best@k - the log's own value) / std@k (Kiyohara et al., "Towards assessing and
benchmarking risk-return tradeoff of off-policy evaluation", ICLR 2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.quality.value import regression
from logeval.clicks.support.selection import how_to_say
from logeval.errors import LogevalError
from logeval.evaluation.statistics.intervals import t_quantile
from logeval.facts import Fact
from logeval.replay.estimate import clicked_only
from logeval.replay.estimators import Estimator
from logeval.replay.logged import MAX_POSITIONS, Logged, cut, parts_sql, read_logged
from logeval.replay.models import CANDIDATES, fit_models, with_best_model
from logeval.replay.targets import ListTarget, mean_clicks
from logeval.replay.values import Predictions, Values
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, Ints, sum_by
from logeval.running.progress import Progress
from logeval.storage import tables
from logeval.storage.results import Stored

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.facts import Answer
    from logeval.replay.stages import ReplayValidate


RESAMPLES = 2000  # of the parts, for intervals
PARTS = 10  # of the lists in random order
FIRST = 3  # k of the Sharpe ratio
MOST_LISTS, MOST_NUMBERS = 100, 5_000_000  # of a query in a part; of cells and lists at once
SLOPE = ("slope", "slope_low", "slope_high")
PER_QUERY = "the best of each query"


@dataclass(frozen=True)
class Validation(Stored):
    """What ``replay_validate`` gives: rows in the schema ``schemas.VALIDATION``, and choices.

    A choice for each K (``Errors.choice``): the estimator with the smallest error, and what else
    its tests say.
    """

    TABLES: ClassVar = {"table": "validation"}
    KEPT = ("choices", "facts")

    table: pd.DataFrame
    choices: list[dict[str, Any]]
    manifest: tables.Manifest = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)

    def plot(self, ax: Axes | None = None) -> Axes:
        """RMSE against K, with the noise of the truth as floor."""
        from logeval.reports.figures.models import plot_validation

        return plot_validation(self, ax)

    def verdict(self) -> Answer:
        """Which estimator predicts the parts that were left out."""
        from logeval.reports.answers.replay import of_validation

        return of_validation(self)


def validate(asked: ReplayValidate, manifest: tables.Manifest) -> Validation:
    """Every part as the target of the others, at every K and clip."""
    log, chosen = asked.opened, asked.chosen
    part = parts_sql(asked.parts, asked.seed)
    if asked.randomised:
        part = f"CASE WHEN random THEN {parts_sql(asked.parts or PARTS, asked.seed)} ELSE -1 END"
    whole = read_logged(log, queries=asked.wanted, top_queries=asked.top_queries, part=part)
    candidates = CANDIDATES[:1] if whole.placed else CANDIDATES
    chosen, _ = with_best_model(chosen, whole, asked.scope, asked.seed, candidates)
    numbers = np.unique(whole.part)
    if asked.randomised:
        if len(numbers) < 3 or numbers[0] >= 0:
            raise LogevalError(
                f"{log.path}: there is not both a ranked part and one in random order, of several "
                f"sessions; {how_to_say(log)}"
            )
        numbers = numbers[1:]
    if len(numbers) < 2:
        raise LogevalError(
            f"{log.path}: the log has one day only, or does not say the days; leave out parts of "
            "its sessions instead, with parts=10"
        )
    positions = asked.numbers or list(range(1, min(whole.patterns.K, MAX_POSITIONS) + 1))
    if max(positions) > whole.patterns.K:
        raise LogevalError(
            f"positions={max(positions)}: the lists of the log have at most {whole.patterns.K} "
            f"items; ask for positions=1..{whole.patterns.K}"
        )
    errors = [Errors(chosen, asked.weights, K, len(numbers), whole.patterns.Q) for K in positions]
    with Progress("validate", len(numbers) * len(positions), "estimates", asked.quiet) as progress:
        short = [cut(whole, K) for K in positions]  # lists are judged at the last K
        for i, number in enumerate(numbers):
            others = whole.part < 0 if asked.randomised else whole.part != number
            rest = whole.patterns.count * others
            models = fit_models(chosen, whole, rest, asked.scope)
            for of_K, logged in zip(errors, short, strict=True):
                known = logged.part < 0 if asked.randomised else logged.part != number
                of_K.leave_out(i, number, logged, known, models, logged is short[-1])
                progress.advance(1)
    table = pd.DataFrame([row for of_K in errors for row in of_K.rows(asked.seed)])
    manifest["log_folder"] = str(log.path)
    judged = errors[0].serps.sum(axis=0) > 0
    shown, facts = whole.patterns.serps[~judged], clicked_only(log)
    if len(shown):
        serps = {"serps": int(shown.sum())}
        n, every = float(len(shown)), float(len(judged))
        facts.append(Fact("queries-lost", "", "caution", n, threshold=every, more=serps))
    return Validation(table, [of_K.choice(table) for of_K in errors], manifest, facts)


class Errors:
    """Errors at one K: of every estimator, clip, part and query."""

    def __init__(
        self, estimators: list[Estimator], clips: Sequence[float], K: int, F: int, Q: int
    ) -> None:
        self.estimators, self.clips, self.K = estimators, clips, K
        self.error = np.zeros((len(estimators), len(clips), F, Q))
        self.serps, self.noise = np.zeros((F, Q)), np.zeros((F, Q))
        self.truth = np.zeros((F, Q))
        self.support = np.full((len(estimators), F), np.nan)
        self.lists = np.zeros((len(estimators), Q, 5))  # sums for slopes

    def leave_out(
        self, i: int, number: int, logged: Logged, known: Bools, models: Any, with_lists: bool
    ) -> None:
        """Part ``number`` as target and truth, the ``known`` patterns as the log."""
        patterns, mine = logged.patterns, logged.part == number
        own, Q = patterns.take(mine), patterns.Q
        serps = sum_by(own.query, own.count, Q)
        truth, variance = mean_clicks(own.query, own.clicks.sum(axis=1), own.count, Q)
        target = ListTarget(
            f"part {number}", Q, self.K, patterns.item_query, patterns.item_ids, own.query,
            own.items, own.count / serps[own.query],
        )  # fmt: skip
        rest = patterns.count * known
        log = replace(logged, patterns=replace(patterns, count=rest))
        found = Values(log, target, self.estimators)
        predictions, n = found.predictions(models), log.patterns.serps
        usable = (serps > 0) & (n > 0)
        self.serps[i] = np.where(usable, serps, 0.0)
        self.truth[i] = np.where(usable, truth, 0.0)
        self.noise[i] = np.where(usable, np.nan_to_num(variance), 0.0)
        share = self.serps[i] / max(self.serps[i].sum(), 1.0)
        for e, estimator in enumerate(self.estimators):
            if (support := found.support(estimator, predictions)) is not None:  # without a clip
                self.support[e, i] = support.columns(n, share, 0.0)["support"][0]
        for j, clip in enumerate(self.clips):
            found.clip = clip
            for e, value in enumerate(found.values(rest[:, None], predictions).values()):
                self.error[e, j, i] = np.where(usable, value[:, 0] - truth, 0.0)
        if with_lists:
            found.clip = np.inf
            rows = np.flatnonzero(mine & usable[patterns.query])
            self._add_lists(found, predictions, patterns, rest, rows)

    def _add_lists(
        self, found: Values, predictions: Predictions, patterns: Patterns, rest: Floats, rows: Ints
    ) -> None:
        """What the lists of a part earned, patterns ``rows``, and what was predicted of them."""
        most = MOST_NUMBERS // max(sum(len(cells.h) for cells in found.cells.values()), 1)
        first, column, rows = most_shown(patterns, rows, int(np.clip(most, 5, MOST_LISTS)))
        lists = np.zeros((patterns.P, int(column.max(initial=-1)) + 1))
        lists[first, column[first]] = 1.0
        query, y = patterns.query[rows], patterns.clicks[rows].sum(axis=1)
        for e, value in enumerate(found.of_lists(lists, rest[:, None], predictions).values()):
            x = value[query, column[rows]]
            self.lists[e] += sums_by_query(query, x, y, patterns.count[rows], patterns.Q)

    def squares(self) -> Floats:
        """(E, M, F) sums over the queries of squared errors, by SERPs."""
        squares: Floats = (self.error**2 * self.serps).sum(axis=3)
        return squares

    def chosen(self) -> Floats:
        """(E, F) for each part the sum at the clip that is best on the other parts."""
        s = self.squares()
        others = s.sum(axis=2, keepdims=True) - s
        best = others.argmin(axis=1)  # (E, F)
        return np.take_along_axis(s, best[:, None, :], axis=1)[:, 0]

    def per_query(self) -> Floats:
        """(F, Q) the errors of the estimator of each query that is best on the other parts."""
        best = self.squares().sum(axis=2).argmin(axis=1)  # the clip of each estimator
        error = np.stack([self.error[e, j] for e, j in enumerate(best)])
        square = error**2 * self.serps
        others = square.sum(axis=1, keepdims=True) - square
        found: Floats = np.take_along_axis(error, others.argmin(axis=0)[None], axis=0)[0]
        return found

    def sharpe(self, e: int, clip: int) -> float:
        """The Sharpe ratio of a choice among the parts by an estimator; nan without a spread."""
        weight = self.serps / self.serps.sum(axis=1, keepdims=True)
        truth = (weight * self.truth).sum(axis=1)
        value = truth + (weight * self.error[e, clip]).sum(axis=1)
        first = truth[np.argsort(-value, kind="stable")[:FIRST]]
        logger = float((truth * self.serps.sum(axis=1)).sum() / self.serps.sum())
        return float((first.max() - logger) / first.std()) if first.std() > 0.0 else np.nan

    def rows(self, seed: int) -> list[dict[str, Any]]:
        """The rows of the table."""
        weight = self.serps.sum(axis=1)  # (F,)
        floor = (self.noise * self.serps).sum() / weight.sum()
        squares, chosen = self.squares(), self.chosen()
        room = squares[self.rctr, 0].sum() / weight.sum() - floor
        bias = (self.error * self.serps).sum(axis=(2, 3)) / weight.sum()
        rows = []
        for i, e in enumerate(self.estimators):
            best = int(squares[i].sum(axis=1).argmin())
            for j in range(-1, len(self.clips)):
                s = chosen[i] if j < 0 else squares[i, j]
                mse = s.sum() / weight.sum()
                low, high = np.sqrt(_interval(s, weight, seed))
                rows.append(
                    {
                        "estimator": str(e),
                        "positions": self.K,
                        "clip": np.nan if j < 0 else float(self.clips[j]),
                        "parts": len(weight),
                        "serps": int(weight.sum()),
                        "rmse": math.sqrt(mse),
                        "low": low,
                        "high": high,
                        "bias": bias[i, best if j < 0 else j],
                        "floor": math.sqrt(floor),
                        "skill": 1.0 - (mse - floor) / room if room > 0 else np.nan,
                        "support": self.support[i].mean(),
                        "sharpe": self.sharpe(i, best if j < 0 else j),
                    }
                )
                if j < 0 and not e.normalised:
                    slope = zip(SLOPE, regression(self.lists[i]), strict=True)
                    rows[-1] |= dict(slope)
        error = self.per_query()
        s = (error**2 * self.serps).sum(axis=1)
        mse = s.sum() / weight.sum()
        low, high = np.sqrt(_interval(s, weight, seed))
        same = {key: rows[-1][key] for key in ("positions", "parts", "serps", "floor")}
        own = {"rmse": math.sqrt(mse), "low": low, "high": high}
        own["bias"] = (error * self.serps).sum() / weight.sum()
        own["skill"] = 1.0 - (mse - floor) / room if room > 0 else np.nan
        return [*rows, {"estimator": PER_QUERY, "clip": np.nan} | same | own]

    def choice(self, table: pd.DataFrame) -> dict[str, Any]:
        """The best estimator at K, and what can be said of it.

        ``ties`` are not told from it: those that its test does not call worse, and those whose RMSE
        is the same as far as it is printed. ``beats_logger``: RCTR is told from it. ``spread`` is
        how far the predictions of the weighted estimators are from RCTR's, at most.
        """
        rows = table[(table["positions"] == self.K) & table["clip"].isna()]
        rows = rows[rows["estimator"] != PER_QUERY].reset_index(drop=True)
        chosen, weight = self.chosen(), self.serps.sum(axis=1)
        best = int(rows["rmse"].argmin())
        b, rctr = rows.iloc[best], self.rctr
        ties = [
            str(e)
            for i, e in enumerate(self.estimators)
            if i != best
            and (
                _shown(rows["rmse"][i]) == _shown(b["rmse"])
                or not is_larger(chosen[i] - chosen[best], weight)
            )
        ]
        worse = [
            str(e)
            for i, e in enumerate(self.estimators)
            if i != rctr and is_larger(chosen[i] - chosen[rctr], weight)
        ]
        return {
            "positions": self.K,
            "best": str(self.estimators[best]),
            "rmse": float(b["rmse"]),
            "floor": float(b["floor"]),
            "logger_rmse": float(rows["rmse"][rctr]),
            "ties": ties,
            "worse": worse,
            "beats_logger": best != rctr and str(self.estimators[rctr]) not in ties,
            "spread": self._spread(),
        }

    @property
    def rctr(self) -> int:
        """Which of the estimators is RCTR."""
        return next(i for i, e in enumerate(self.estimators) if e.NAME == "RCTR")

    def _spread(self) -> float:
        """The root mean square of the largest difference to RCTR's predictions, at any clip."""
        weighted = [i for i, e in enumerate(self.estimators) if e.LEVEL is not None]
        apart = self.error[weighted] - self.error[self.rctr]
        squares = (apart**2 * self.serps).sum(axis=(2, 3)) / self.serps.sum()
        return float(np.sqrt(squares.min(axis=1).max()))


def most_shown(patterns: Patterns, rows: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """Of patterns ``rows`` those of the most shown lists of each query.

    A pattern of each list; by pattern the place of its list among those of the query, the most
    shown first (-1 of others); and the patterns of these lists.
    """
    _, at, number = np.unique(patterns.items[rows], axis=0, return_index=True, return_inverse=True)
    serps = sum_by(number.ravel(), patterns.count[rows], len(at))
    query = patterns.query[rows[at]]
    order = np.lexsort((-serps, query))
    start = np.searchsorted(query[order], query[order])
    place = np.empty(len(at), dtype=np.int64)
    place[order] = np.arange(len(at)) - start
    column = np.full(patterns.P, -1, dtype=np.int64)
    column[rows] = np.where(place < most, place, -1)[number.ravel()]
    return rows[at[place < most]], column, rows[column[rows] >= 0]


def sums_by_query(query: Ints, x: Floats, y: Floats, n: Floats, Q: int) -> Floats:
    """``clicks.quality.value.sums`` of each query, (Q, 5), of searches seen ``n`` times."""
    N = np.maximum(sum_by(query, n, Q), 1e-300)
    x, y = (v - (sum_by(query, n * v, Q) / N)[query] for v in (x, y))
    a, c = x * y, x * x
    return np.stack([sum_by(query, n * one, Q) for one in (c, a, a * a, a * c, c * c)], axis=1)


def _interval(sums: Floats, weight: Floats, seed: int) -> Floats:
    """95% bootstrap interval of sum(sums) / sum(weight), over parts."""
    rng, F = seeds.generator(seed, "replay", "parts"), len(weight)
    drawn = rng.multinomial(F, np.full(F, 1.0 / F), size=RESAMPLES).astype(np.float64)
    return np.quantile((drawn @ sums) / (drawn @ weight), [0.025, 0.975])


def is_larger(difference: Floats, weight: Floats) -> bool:
    """Whether sum(difference) / sum(weight) over parts is above 0: Student's test, at 2.5%.

    The standard error is that of the linearised ratio. A bootstrap of the parts would call two
    estimators different whenever one is better on each of them: by chance one time in 2^(F - 1).
    """
    F = len(weight)
    mean = difference.sum() / weight.sum()
    residual = difference - mean * weight
    error = math.sqrt(F / (F - 1) * (residual @ residual)) / weight.sum()
    return bool(mean > t_quantile(F) * error)


def _shown(x: float) -> str:
    """As the table prints it."""
    return f"{x:.4g}"
