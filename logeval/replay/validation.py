"""Lists in random order as the truth of estimators: do their intervals hold, is their order right?

The SERPs in random order are cut into ``RANKERS`` by the result on top: of the items that were seen
there, those that the ranked lists have highest, and so on down. Every part is what a ranker shows
that puts such an item first and the others in random order, and its clicks are the truth of that
ranker, whatever users do. Estimators and their click models see the ranked lists alone.

Which estimator to trust on this log: leave one part out, and predict its clicks.

The lists of the part are the target, its clicks the truth, and the other parts the log. The
error is compared with the noise of the truth itself (no estimate can be better than that) and
with RCTR, the logger's own value. The clip M of a part may be chosen on the other parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.quality.randomised import how_to_say
from logeval.clicks.support.selection import selected_by_clicks
from logeval.errors import LogevalError
from logeval.evaluation.statistics.intervals import t_quantile
from logeval.log.log import Log
from logeval.replay.estimates import Estimate, add_intervals
from logeval.replay.estimators import Estimator
from logeval.replay.fitting import fit_models, with_best_model
from logeval.replay.logged import MAX_POSITIONS, Logged, cut, parts_sql, read_logged
from logeval.replay.reading import TargetSource, bind, mean_clicks
from logeval.replay.targets import ListTarget
from logeval.replay.values import Values
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, Ints, sum_by
from logeval.running.progress import Progress
from logeval.storage import tables
from logeval.storage.results import Stored

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from logeval.replay.stages import ReplayValidate
    from logeval.reports.answers.checks import Answer


RANKERS, RARE = 4, 20  # SERPs of a ranker and query, with fewer of which it is not judged
ROUNDS, REFITS = 200, 20  # of the bootstrap
MIN_SUPPORT = 0.8  # as ``replay estimate`` has it
NORMAL = 1.959964


class Judged(NamedTuple):
    """Values of R rankers on Q queries: true, and by E estimators; nan where not judged."""

    truth: Floats  # (R, Q)
    truth_error: Floats  # (R, Q) its standard error
    value: Floats  # (E, R, Q)
    half: Floats  # (E, R, Q) half of the 95% interval


def against_random(
    log: Log, random: Patterns, K: int, chosen: list[Estimator], scope: str, smoothing: float,
    seed: int, quiet: bool,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """A row per estimator: intervals that hold, and rankers in the right order, at K positions."""
    queries = list(random.queries)
    ranked = read_logged(log, queries=queries, where="NOT coalesce(random, false)")
    group = rankers(random, ranked.patterns)
    parts = [random.take(group == r) for r in range(RANKERS)]
    parts = [part for part in parts if len(part.count)]
    models = partial(fit_models, chosen, ranked, scope=scope)
    fitted = models(ranked.patterns.count)
    short, found = cut(ranked, K), []
    for r, part in enumerate(parts):
        target = bind(TargetSource(f"ranker {r}", patterns=part), short, K, scope, seed)
        values = Values(short, target, chosen, smoothing=smoothing)
        found.append(Estimate(values, values.predictions(fitted), MIN_SUPPORT))
    add_intervals(found, ranked, models, ROUNDS, REFITS, seed, quiet)
    yield from scores(_judged(found, parts, short.patterns.queries, K), chosen, K)


def rankers(random: Patterns, ranked: Patterns) -> Ints:
    """The ranker of each pattern: by the mean rank that its first item has in the ranked lists."""
    keys = list(zip(ranked.item_query.tolist(), ranked.item_ids.tolist(), strict=True))
    number = {(ranked.queries[q], i): n for n, (q, i) in enumerate(keys)}
    shown = ranked.shown
    total = ranked.sum_items(shown.count)
    mean = ranked.sum_items(shown.count * shown.position) / np.maximum(total, 1e-300)
    top = random.items[:, 0]
    rank = np.full(random.P, np.inf)  # an item that the ranker never showed is last
    for p in range(random.P):
        pair = number.get((random.queries[random.query[p]], int(random.item_ids[top[p]])))
        if pair is not None:
            rank[p] = mean[pair]
    group = np.zeros(random.P, dtype=np.int64)
    for q in range(random.Q):
        mine = np.flatnonzero(random.query == q)
        items, first = np.unique(top[mine], return_index=True)
        order = np.argsort(rank[mine][first], kind="stable").argsort()
        place = order * RANKERS // max(len(items), 1)
        group[mine] = place[np.searchsorted(items, top[mine])]
    return group


def _judged(found: list[Estimate], parts: list[Patterns], queries: Any, K: int) -> Judged:
    """The values of all rankers, numbered as the queries of the log."""
    place = {query: q for q, query in enumerate(queries)}
    shape = (len(found), len(queries))
    truth, error = np.full(shape, np.nan), np.full(shape, np.nan)
    Q = parts[0].Q
    clicks = [part.clicks[:, :K].sum(axis=1) for part in parts]
    size = np.stack([sum_by(part.query, part.count, Q) for part in parts])
    found_mean = np.stack(
        [mean_clicks(p.query, c, p.count, Q)[0] for p, c in zip(parts, clicks, strict=True)]
    )
    # of one SERP: the same for all rankers of a query, for each has few
    spread = sum(
        sum_by(p.query, p.count * (c - found_mean[r, p.query]) ** 2, Q)
        for r, (p, c) in enumerate(zip(parts, clicks, strict=True))
    ) / np.maximum(size.sum(axis=0) - (size > 0).sum(axis=0), 1.0)
    for r, q in zip(*np.nonzero(size >= RARE), strict=True):
        if (there := place.get(parts[r].queries[q])) is not None:
            truth[r, there] = found_mean[r, q]
            error[r, there] = np.sqrt(spread[q] / size[r, q])
    value = np.stack([each.value[:, 1:] for each in found], axis=1)
    half = np.stack([each.half_widths()[0][:, 1:] for each in found], axis=1)
    return Judged(truth, error, value, half)


def scores(judged: Judged, estimators: Sequence[object], K: int) -> Iterator[dict[str, Any]]:
    """Of each estimator: lists judged, share within the interval; pairs, share in right order.

    An interval has the spread of the truth in it. Pairs are those that the truth tells apart.
    """
    R = len(judged.truth)
    for e, name in enumerate(estimators):
        value, half = judged.value[e], judged.half[e]
        there = np.isfinite(judged.truth) & np.isfinite(value) & np.isfinite(half)
        width = np.hypot(half, NORMAL * judged.truth_error)
        held = np.abs(value - judged.truth) <= width
        right = pairs = 0
        for a, b in combinations(range(R), 2):
            gap = judged.truth[a] - judged.truth[b]
            sure = np.abs(gap) > NORMAL * np.hypot(judged.truth_error[a], judged.truth_error[b])
            both = sure & np.isfinite(value[a]) & np.isfinite(value[b])
            pairs += int(both.sum())
            right += int((np.sign(gap) == np.sign(value[a] - value[b]))[both].sum())
        yield {
            "estimator": str(name),
            "positions": K,
            "lists": int(there.sum()),
            "within": float(held[there].mean()) if there.any() else None,
            "pairs": pairs,
            "order": right / pairs if pairs else None,
        }


RESAMPLES = 2000  # of the parts, for intervals
PARTS = 10  # of the lists in random order


@dataclass(frozen=True)
class Validation(Stored):
    """What ``replay_validate`` gives: rows in the schema ``schemas.VALIDATION``, and choices.

    A choice for each K (``Errors.choice``): the estimator with the smallest error, and what else
    its tests say.
    """

    TABLES: ClassVar = {"table": "validation"}
    KEPT = ("choices", "randomised")

    table: pd.DataFrame
    choices: list[dict[str, Any]]
    manifest: tables.Manifest = field(default_factory=dict)
    # of lists in random order: see ``random_lists``
    randomised: list[dict[str, Any]] | None = None

    def plot(self, ax: Axes | None = None) -> Axes:
        """RMSE against K, with the noise of the truth as floor."""
        from logeval.reports.figures.models import plot_validation

        return plot_validation(self, ax)

    def verdict(self) -> Answer:
        """The answer in words."""
        from logeval.reports.answers.replays import validation_verdict

        return validation_verdict(self)


def validate(asked: ReplayValidate, manifest: tables.Manifest) -> Validation:
    """Every part as the target of the others, at every K and clip."""
    import pandas as pd

    log, chosen = asked.opened, asked.chosen
    part = parts_sql(asked.parts, asked.seed)
    if asked.randomised:
        part = f"CASE WHEN random THEN {parts_sql(asked.parts or PARTS, asked.seed)} ELSE -1 END"
    whole = read_logged(log, queries=asked.wanted, top_queries=asked.top_queries, part=part)
    chosen, _ = with_best_model(chosen, whole, asked.scope, asked.seed)
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
        short = [cut(whole, K) for K in positions]
        for i, number in enumerate(numbers):
            others = whole.part < 0 if asked.randomised else whole.part != number
            rest = whole.patterns.count * others
            models = fit_models(chosen, whole, rest, asked.scope)
            for of_K, logged in zip(errors, short, strict=True):
                known = logged.part < 0 if asked.randomised else logged.part != number
                of_K.leave_out(i, number, logged, known, asked.smoothing, models)
                progress.advance(1)
    table = pd.DataFrame([row for of_K in errors for row in of_K.rows(asked.seed)])
    manifest["log_folder"] = str(log.path)
    if (selected := selected_by_clicks(log)) is not None:
        manifest["selected"] = selected
    judged = errors[0].serps.sum(axis=0) > 0
    shown = whole.patterns.serps[~judged]
    manifest["left_out"] = {"queries": len(shown), "of": len(judged), "serps": int(shown.sum())}
    random = None
    if asked.randomised:
        own = whole.patterns.take(whole.part >= 0)
        random = list(
            against_random(
                log,
                own,
                max(positions),
                chosen,
                asked.scope,
                asked.smoothing,
                asked.seed,
                asked.quiet,
            )
        )
    return Validation(table, [of_K.choice(table) for of_K in errors], manifest, random)


class Errors:
    """Errors at one K: of every estimator, clip, part and query."""

    def __init__(
        self, estimators: list[Estimator], clips: Sequence[float], K: int, F: int, Q: int
    ) -> None:
        self.estimators, self.clips, self.K = estimators, clips, K
        self.error = np.zeros((len(estimators), len(clips), F, Q))
        self.serps, self.noise = np.zeros((F, Q)), np.zeros((F, Q))
        self.support = np.full((len(estimators), F), np.nan)

    def leave_out(
        self, i: int, number: int, logged: Logged, known: Bools, smoothing: float, models: Any
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
        found = Values(log, target, self.estimators, smoothing=smoothing)
        predictions, n = found.predictions(models), log.patterns.serps
        usable = (serps > 0) & (n > 0)
        self.serps[i] = np.where(usable, serps, 0.0)
        self.noise[i] = np.where(usable, np.nan_to_num(variance), 0.0)
        share = self.serps[i] / max(self.serps[i].sum(), 1.0)
        for e, estimator in enumerate(self.estimators):
            if (support := found.support(estimator, predictions)) is not None:  # without a clip
                self.support[e, i] = support.columns(n, share, 0.0)["support"][0]
        for j, clip in enumerate(self.clips):
            found.clip = clip
            for e, value in enumerate(found.values(rest[:, None], predictions).values()):
                self.error[e, j, i] = np.where(usable, value[:, 0] - truth, 0.0)

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

    def rows(self, seed: int) -> list[dict[str, Any]]:
        """The rows of the table."""
        weight = self.serps.sum(axis=1)  # (F,)
        floor = (self.noise * self.serps).sum() / weight.sum()
        squares, chosen = self.squares(), self.chosen()
        room = squares[self.rctr, 0].sum() / weight.sum() - floor
        bias = (self.error * self.serps).sum(axis=(2, 3)) / weight.sum()
        rows = []
        for i, e in enumerate(self.estimators):
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
                        "bias": bias[i, int(squares[i].sum(axis=1).argmin()) if j < 0 else j],
                        "floor": math.sqrt(floor),
                        "skill": 1.0 - (mse - floor) / room if room > 0 else np.nan,
                        "support": self.support[i].mean(),
                    }
                )
        return rows

    def choice(self, table: pd.DataFrame) -> dict[str, Any]:
        """The best estimator at K, and what can be said of it.

        ``ties`` are not told from it: those that its test does not call worse, and those whose RMSE
        is the same as far as it is printed. ``beats_logger``: RCTR is told from it. ``spread`` is
        how far the predictions of the weighted estimators are from RCTR's, at most.
        """
        rows = table[(table["positions"] == self.K) & table["clip"].isna()].reset_index(drop=True)
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
