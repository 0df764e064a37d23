"""Which estimator to trust on this log: leave one part out, and predict its clicks.

The lists of the part are the target, its clicks the truth, and the other parts the log. The
error is compared with the noise of the truth itself (no estimate can be better than that) and
with RCTR, the logger's own value. The clip M of a part may be chosen on the other parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from logeval.clicks.fitted import SCOPES
from logeval.errors import LogevalError, unknown_names
from logeval.evaluation.statistics import t_quantile
from logeval.log.log import load
from logeval.log.queries import Query
from logeval.replay.estimation import Estimation, Settings, fit_models
from logeval.replay.estimators.estimator import Estimator
from logeval.replay.estimators.registry import parse_estimators
from logeval.replay.logged import Logged, cut, parts_sql, read_logged
from logeval.replay.plan import MOST_PARTS, check_clip, check_smoothing
from logeval.replay.read_target import mean_clicks
from logeval.replay.support import support_of
from logeval.replay.targets import ListTarget
from logeval.running import seeds
from logeval.running.arrays import Floats, sum_by
from logeval.running.progress import Progress
from logeval.storage import tables
from logeval.storage.schemas import VALIDATION

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ESTIMATORS = (
    "List", "Prefix", "IP", "PBM", "INTERPOL(window=1)", "Item", "RCTR", "DM", "DR", "Cascade-DR",
)  # fmt: skip
CLIPS = (1.0, 10.0, 100.0, 1000.0)
RESAMPLES = 2000  # of the parts, for intervals


@dataclass(frozen=True)
class Validation:
    """What ``replay_validate`` gives: rows in the schema ``schemas.VALIDATION``, and a verdict."""

    table: pd.DataFrame
    verdict: list[str]
    manifest: tables.Manifest = field(default_factory=dict)

    def plot(self, ax: Axes | None = None) -> Axes:
        """RMSE against K with the clip chosen on other parts, and the floor."""
        from logeval.reports.replay_figures import plot_validation

        return plot_validation(self.table, ax)

    def write(self, out: Path | str) -> None:
        """Write ``validation.parquet`` and its manifest."""
        rows = pa.Table.from_pandas(self.table, schema=VALIDATION, preserve_index=False)
        with tables.staged(out) as folder:
            tables.write_parquet(rows, folder / "validation.parquet")
            tables.write_manifest(folder, self.manifest)


def replay_validate(
    log: Any,
    *,
    positions: Sequence[int],
    estimators: Iterable[str] = ESTIMATORS,
    clips: Sequence[float] = CLIPS,
    parts: int | None = None,
    smoothing: float = 0.0,
    scope: str = "per-query",
    queries: Iterable[Query | str] | None = None,
    top_queries: int | None = None,
    out: Path | str | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> Validation:
    """Leave out one day at a time, or one of ``parts`` equal shares of the sessions."""
    log = load(log)
    chosen = parse_estimators(estimators)
    if not any(e.NAME == "RCTR" for e in chosen):
        chosen += parse_estimators(["RCTR"])
    if not positions or min(positions) < 1:
        raise LogevalError("positions must be one or more numbers from 1 on, as 1,3,5 or 1..10")
    if not clips:
        raise LogevalError("there is no clip; name one, as 10, or inf for none")
    for clip in clips:
        check_clip(clip)
    check_smoothing(smoothing)
    if scope not in SCOPES:
        raise unknown_names("scope", [scope], SCOPES)
    if parts is not None and not 2 <= parts <= MOST_PARTS:
        raise LogevalError(f"parts={parts}: there must be 2 to {MOST_PARTS:,}")
    arguments = {
        "positions": list(positions),
        "estimators": [str(e) for e in chosen],
        "clips": list(clips),
        "parts": parts,
        "smoothing": smoothing,
        "scope": scope,
        "queries": None if queries is None else [str(q) for q in queries],
        "top_queries": top_queries,
        "seed": seed,
    }
    inputs = [{"log": log.identity}]
    manifest = tables.manifest_of("replay validate", arguments, inputs)
    if out is not None and tables.same_work(Path(out), manifest):
        return read_validation(out)
    wanted = None
    if queries is not None:
        wanted = [Query.parse(q) if isinstance(q, str) else q for q in queries]
    whole = read_logged(log, queries=wanted, top_queries=top_queries, part=parts_sql(parts, seed))
    numbers = np.unique(whole.part)
    if len(numbers) < 2:
        raise LogevalError(
            f"{log.path}: the log has one day only (or none); leave out parts instead, as parts=10"
        )
    if max(positions) > whole.patterns.K:
        raise LogevalError(
            f"positions={max(positions)}: the lists of the log have at most {whole.patterns.K} "
            "items"
        )
    settings = Settings(smoothing=smoothing, scope=scope)
    errors = {
        K: _Errors(len(chosen), len(clips), len(numbers), whole.patterns.Q) for K in positions
    }
    with Progress("validate", len(numbers) * len(positions), "estimates", quiet) as progress:
        short = {K: cut(whole, K).logged for K in positions}
        for i, number in enumerate(numbers):
            rest = whole.patterns.count * (whole.part != number)
            models = fit_models(chosen, whole, rest, settings)
            for K in positions:
                _leave_out(errors[K], i, number, short[K], K, chosen, clips, settings, models)
                progress.advance(1)
    import pandas as pd

    table = pd.DataFrame([row for K in positions for row in errors[K].rows(chosen, clips, K, seed)])
    verdict = [line for K in positions for line in _verdict(table, errors[K], chosen, K)]
    manifest["verdict"] = verdict
    manifest["log_folder"] = str(log.path)
    found = Validation(table, verdict, manifest)
    if out is not None:
        found.write(out)
    return found


def read_validation(folder: Path | str) -> Validation:
    """The validation of a folder that ``replay validate`` wrote."""
    manifest = tables.read_manifest(folder)
    table = tables.read_table(Path(folder), "validation").to_pandas()
    return Validation(table, list(manifest.get("verdict", [])), manifest)


def _leave_out(
    errors: _Errors, i: int, number: int, logged: Logged, K: int, chosen: list[Estimator],
    clips: Sequence[float], settings: Settings, models: Any,
) -> None:  # fmt: skip
    """Part ``number`` as target and truth, the rest as the log."""
    patterns = logged.patterns
    mine = logged.part == number
    own = patterns.take(mine)
    serps = sum_by(own.query, own.count, patterns.Q)
    truth, variance = mean_clicks(own.query, own.clicks.sum(axis=1), own.count, patterns.Q)
    target = ListTarget(
        f"part {number}", patterns.Q, K, patterns.item_query, patterns.item_ids, own.query,
        own.items, own.count / serps[own.query],
    )  # fmt: skip
    rest = patterns.count * ~mine
    log = replace(logged, patterns=replace(patterns, count=rest))
    estimation = Estimation(log, target, chosen, settings)
    fits = estimation.fits(models)
    n = log.patterns.serps
    usable = (serps > 0) & (n > 0)
    errors.serps[i] = np.where(usable, serps, 0.0)
    errors.noise[i] = np.where(usable, np.nan_to_num(variance), 0.0)
    share = errors.serps[i] / max(errors.serps[i].sum(), 1.0)
    for j, clip in enumerate(clips):
        estimation.settings = replace(settings, clip=clip)
        for e, value in estimation.values(rest[:, None], fits).items():
            errors.error[chosen.index(e), j, i] = np.where(usable, value[:, 0] - truth, 0.0)
    estimation.settings = replace(settings, clip=math.inf)
    for e in chosen:
        figures = estimation.figures(e, fits)
        if figures is not None:
            errors.support[chosen.index(e), i] = support_of(figures, n, share, 0.0).overall[
                "support"
            ]


class _Errors:
    """Errors at one K: of every estimator, clip, part and query."""

    def __init__(self, E: int, M: int, F: int, Q: int) -> None:
        self.error = np.zeros((E, M, F, Q))
        self.serps, self.noise = np.zeros((F, Q)), np.zeros((F, Q))
        self.support = np.full((E, F), np.nan)

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

    def rows(
        self, estimators: list[Estimator], clips: Sequence[float], K: int, seed: int
    ) -> list[dict[str, Any]]:
        """The rows of the table."""
        weight = self.serps.sum(axis=1)  # (F,)
        floor = (self.noise * self.serps).sum() / weight.sum()
        squares, chosen = self.squares(), self.chosen()
        rctr = next(i for i, e in enumerate(estimators) if e.NAME == "RCTR")
        room = squares[rctr, 0].sum() / weight.sum() - floor
        bias = (self.error * self.serps).sum(axis=(2, 3)) / weight.sum()
        rows = []
        for i, e in enumerate(estimators):
            for j in range(-1, len(clips)):
                s = chosen[i] if j < 0 else squares[i, j]
                mse = s.sum() / weight.sum()
                low, high = np.sqrt(_interval(s, weight, seed))
                rows.append(
                    {
                        "estimator": str(e),
                        "positions": K,
                        "clip": np.nan if j < 0 else float(clips[j]),
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


def _verdict(
    table: pd.DataFrame, errors: _Errors, estimators: list[Estimator], K: int
) -> list[str]:
    """The recommendation at K, in words.

    Not told from the best are those that its test does not call worse, and those whose RMSE is the
    same as far as it is printed.
    """
    rows = table[(table["positions"] == K) & table["clip"].isna()].reset_index(drop=True)
    chosen, weight = errors.chosen(), errors.serps.sum(axis=1)
    best = int(rows["rmse"].argmin())
    b = rows.iloc[best]
    ties, worse = [], []
    for i, e in enumerate(estimators):
        mine = rows.iloc[i]
        if i == best:
            continue
        alike = _shown(mine["rmse"]) == _shown(b["rmse"])
        if alike or not is_larger(chosen[i] - chosen[best], weight):
            ties.append(str(e))
        if mine["skill"] < -1e-9 and e.NAME != "RCTR":
            support = mine["support"]  # the models alone have none
            worse.append(f"{e} (support {support:.0%})" if support == support else str(e))
    floor, skill = b["floor"], b["skill"]
    text = f"K = {K}: use {b['estimator']}: RMSE {_shown(b['rmse'])} clicks per SERP, "
    text += f"noise {_shown(floor)}"
    text += f", skill {skill:.2f}." if skill == skill else "."
    if ties:
        text += f" Not told from it on these parts: {', '.join(ties)}."
    if worse:
        text += f" Worse than the logger's own value: {', '.join(worse)}."
    return [text]
