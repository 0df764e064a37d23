"""``logeval.replay_estimate``: what rankers would have earned on the traffic that was logged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy.special import stdtrit

from logeval import tables
from logeval.arrays import Bools, Floats
from logeval.clicks.fitted import SCOPES
from logeval.errors import LogevalError, unknown_names
from logeval.log.queries import Query
from logeval.progress import Progress
from logeval.replay.bootstrap import resampled
from logeval.replay.estimation import Estimation, Fits, Settings, fit_models
from logeval.replay.estimators.estimator import Estimator
from logeval.replay.estimators.registry import DEFAULT, parse_estimators
from logeval.replay.logged import Cut, Logged, cut, parts_sql, read_logged
from logeval.replay.propensities import check_logged
from logeval.replay.read_target import TargetSource, bind, read_source
from logeval.replay.support import Support, support_of
from logeval.replay.targets import Target
from logeval.schemas import ESTIMATES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MIN_SUPPORT = 0.8
MAX_POSITIONS = 10  # unless more are asked for
Z = 1.959963984540054
PROPENSITIES = ("estimated", "logged")


@dataclass(frozen=True)
class Estimates:
    """What ``replay_estimate`` gives: rows in the schema ``schemas.ESTIMATES``, and notes."""

    table: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    manifest: tables.Manifest = field(default_factory=dict)

    def overall(self) -> pd.DataFrame:
        """The rows over all queries."""
        return self.table[self.table["query"].isna()].drop(columns="query")

    def rows(self) -> list[dict[str, Any]]:
        """The rows for JSON; what does not apply is None."""
        rows = self.table.astype(object).where(self.table.notna(), None)
        return [{str(k): v for k, v in row.items()} for row in rows.to_dict(orient="records")]

    def plot(self, ax: Axes | None = None) -> Axes:
        """The overall values with their intervals, the logged value and the truth."""
        from logeval.reports.replay_figures import plot_estimates

        return plot_estimates(self.table, ax)

    def write(self, out: Path | str) -> None:
        """Write ``estimates.parquet`` and its manifest."""
        rows = pa.Table.from_pandas(self.table, schema=ESTIMATES, preserve_index=False)
        with tables.staged(out) as folder:
            tables.write_parquet(rows, folder / "estimates.parquet")
            tables.write_manifest(folder, self.manifest)


def replay_estimate(
    log: Any,
    target: str | Path | Sequence[str | Path],
    *,
    estimators: Iterable[str] = DEFAULT,
    positions: int | None = None,
    clip: float | None = None,
    smoothing: float = 0.0,
    cross_fit: int = 1,
    propensities: str = "estimated",
    scope: str = "per-query",
    queries: Iterable[Query | str] | None = None,
    top_queries: int | None = None,
    rounds: int = 1000,
    refits: int = 20,
    min_support: float = MIN_SUPPORT,
    force: bool = False,
    out: Path | str | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> Estimates:
    """Estimate the clicks per SERP of one or more targets from a log.

    ``target`` is a table (see ``target_table``), ``log:FOLDER``, ``day:27``, ``logged``,
    ``random``, ``by-ctr`` or ``best:MODEL``. Several targets are estimated in the same
    resampled logs, so differences between their values are paired. ``clip`` bounds the weights.
    Intervals come from ``rounds`` bootstrap rounds over sessions; estimators with a click model
    fit it again in ``refits`` of them.
    """
    path = Path(getattr(log, "path", log))
    names = [str(t) for t in ([target] if isinstance(target, str | Path) else target)]
    chosen = parse_estimators(estimators)
    _check(names, chosen, clip, smoothing, cross_fit, propensities, scope, rounds, refits)
    arguments = {
        "targets": names,
        "estimators": [str(e) for e in chosen],
        "positions": positions,
        "clip": clip,
        "smoothing": smoothing,
        "cross_fit": cross_fit,
        "propensities": propensities,
        "scope": scope,
        "queries": None if queries is None else [str(q) for q in queries],
        "top_queries": top_queries,
        "rounds": rounds,
        "refits": refits,
        "min_support": min_support,
        "force": force,
        "seed": seed,
    }
    inputs = [{"log": tables.identity(path)}, *(_input(name) for name in names)]
    manifest = tables.manifest_of("replay", arguments, inputs)
    if out is not None and tables.same_work(Path(out), manifest):
        return read_estimates(out)

    sources = [read_source(name, path) for name in names]
    with_models = any(e.model is not None or e.EXAMINATION for e in chosen)
    best = any(s.name.startswith("best:") or s.name == "by-ctr" for s in sources)
    whole, K, notes = _read(
        path, sources, positions, queries, top_queries, cross_fit, propensities, seed,
        whole=with_models or best,
    )  # fmt: skip
    settings = Settings(math.inf if clip is None else clip, smoothing, cross_fit, scope)
    targets = [bind(source, whole, K, scope, seed) for source in sources]
    short = cut(whole, K)
    models = fit_models(chosen, whole, whole.patterns.count, settings)
    reports = []
    for t in targets:
        estimation = Estimation(short.logged, t, chosen, settings)
        reports.append(_Report(estimation, estimation.fits(models), path, min_support, force))
    _bootstrap(reports, short.logged, rounds, seed, quiet)
    if rounds and any(e.model is not None for e in chosen):
        _refit(reports, whole, short, refits, seed, quiet)
    import pandas as pd

    table = pd.concat([r.table() for r in reports], ignore_index=True)
    manifest["notes"] = notes
    manifest["log_folder"] = str(path)
    found = Estimates(table, notes, manifest)
    if out is not None:
        found.write(out)
    return found


def point_and_interval(
    whole: Logged, target: Target, estimators: list[Estimator], settings: Settings, rounds: int,
    seed: int,
) -> dict[Estimator, tuple[float, float]]:  # fmt: skip
    """The overall value of a target and 1.96 standard errors, with the models as they are."""
    logged = cut(whole, target.K).logged
    estimation = Estimation(logged, target, estimators, settings)
    fits = estimation.fits(fit_models(estimators, whole, whole.patterns.count, settings))
    report = _Report(estimation, fits, Path(target.name), 0.0, force=True)
    _bootstrap([report], logged, rounds, seed, quiet=True)
    value, half = report.centre()[:, 0], report.moments.half_width(True)[:, 0]
    return {e: (value[i], half[i]) for i, e in enumerate(estimators)}


def read_estimates(folder: Path | str) -> Estimates:
    """The estimates of a folder that ``replay estimate`` wrote."""
    folder = Path(folder)
    manifest = tables.read_manifest(folder)
    table = tables.read_table(folder, "estimates").to_pandas()
    return Estimates(table, list(manifest.get("notes", [])), manifest)


def _check(
    names: list[str], chosen: list[Estimator], clip: float | None, smoothing: float, cross_fit: int,
    propensities: str, scope: str, rounds: int, refits: int,
) -> None:  # fmt: skip
    if not names:
        raise LogevalError("there is no target; name one with --target")
    if not chosen:
        raise LogevalError("there is no estimator; name one with --estimator")
    if len(set(names)) < len(names):
        raise LogevalError("a target is given twice")
    if clip is not None and not clip > 0:
        raise LogevalError(f"--clip {clip}: the largest weight must be above 0")
    if smoothing < 0:
        raise LogevalError(f"--smoothing {smoothing}: it must be 0 or more SERPs per cell")
    if cross_fit < 1:
        raise LogevalError(f"--cross-fit {cross_fit}: write the number of parts, 2 or more")
    if rounds < 0 or rounds == 1 or refits < 0 or refits == 1:
        raise LogevalError("--rounds and --refits must be 0 (no interval) or at least 2")
    if propensities not in PROPENSITIES:
        raise unknown_names("kind of propensities", [propensities], PROPENSITIES)
    if scope not in SCOPES:
        raise unknown_names("scope", [scope], SCOPES)
    if propensities == "logged":
        wrong = [e for e in chosen if e.NAME not in ("IP", "DR", "DM", "RCTR")]
        if wrong:
            raise LogevalError(
                f"--propensities logged: they are those of an item at a position, and {wrong[0]} "
                "weights something else; use IP or DR"
            )
        if smoothing:
            raise LogevalError("--propensities logged: there is nothing to smooth")


def _input(name: str) -> dict[str, str]:
    kind, _, rest = name.partition(":")
    if kind == "log":
        return {name: tables.identity(rest)}
    return {name: tables.checksum(Path(name)) if Path(name).is_file() else ""}


def _read(
    path: Path, sources: list[TargetSource], positions: int | None,
    queries: Iterable[Query | str] | None, top_queries: int | None, cross_fit: int,
    propensities: str, seed: int, whole: bool,
) -> tuple[Logged, int, list[str]]:  # fmt: skip
    """The log without what is itself a target, K, and what was left out."""
    notes: list[str] = []
    wanted = None
    if queries is not None:
        wanted = [Query.parse(q) if isinstance(q, str) else q for q in queries]
    tabled = [s for s in sources if s.table is not None]
    if tabled and wanted is None and top_queries is None:
        wanted = list(dict.fromkeys(q for s in tabled for q in s.queries or []))
    shortest = min((s.positions for s in sources if s.positions is not None), default=None)
    excluded = " OR ".join(f"({s.excluded})" for s in sources)
    if positions is not None and positions < 1:
        raise LogevalError(f"--positions {positions}: there must be at least one")
    logged = read_logged(
        path, None if whole else positions, queries=wanted, top_queries=top_queries,
        where=f"NOT coalesce({excluded}, false)",
        part=parts_sql(cross_fit, seed) if cross_fit > 1 else "0",
        propensities=propensities == "logged",
    )  # fmt: skip
    longest = logged.patterns.K
    K = positions or min(longest, MAX_POSITIONS, shortest or MAX_POSITIONS)
    if longest < K:
        raise LogevalError(f"--positions {K}: the lists of the log have at most {longest} items")
    if shortest is not None and shortest < K:
        raise LogevalError(
            f"--positions {K}: the target's lists have {shortest} items; ask for {shortest} or "
            "give longer lists"
        )
    if logged.propensities is not None:
        check_logged(logged.propensities, logged.patterns.items >= 0, str(path))
    known = set(logged.patterns.queries)
    for source in sources:
        if source.logged is not None:
            own = source.logged.patterns
            lost = [q for q, query in enumerate(own.queries) if query not in known]
            if lost and wanted is None and top_queries is None:
                share = own.serps[lost].sum() / own.serps.sum()
                notes.append(
                    f"{source.name}: {len(lost)} of its {own.Q} queries ({share:.1%} of its SERPs) "
                    "are not in the rest of the log and are left out"
                )
    return logged, K, notes


class _Moments:
    """Running mean and variance of columns, draw by draw; nan is left out."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.n, self.sum, self.square = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    def add(self, x: Floats) -> None:
        """Draws in the last axis, centred near 0."""
        there = np.isfinite(x)
        x = np.where(there, x, 0.0)
        self.n += there.sum(axis=-1)
        self.sum += x.sum(axis=-1)
        self.square += (x**2).sum(axis=-1)

    def half_width(self, normal: bool) -> Floats:
        """1.96 (or Student's quantile, for few draws) standard deviations; nan without draws."""
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = (self.square - self.sum**2 / self.n) / (self.n - 1)
            quantile = Z if normal else stdtrit(self.n - 1, 0.975)
            return np.where(self.n > 1, quantile * np.sqrt(np.maximum(variance, 0.0)), np.nan)


class _Report:
    """One target: its values, and what the rounds add to them."""

    def __init__(
        self, estimation: Estimation, fits: Fits, log: Path, min_support: float, force: bool
    ) -> None:
        self.estimation, self.fits = estimation, fits
        target, patterns = estimation.target, estimation.logged.patterns
        W = patterns.count[:, None]
        self.n = patterns.serps
        self.fixed = target.serps  # (Q,) of a target that is a log
        used = target.mass().sum(axis=1) > 0
        self.used: Bools = used
        self.weight = np.where(used, self.n if self.fixed is None else self.fixed, 0.0)
        self.share = self.weight / self.weight.sum()
        self.value = {e: v[:, 0] for e, v in estimation.values(W, fits).items()}
        self.logged = _logged_clicks(estimation, W)[:, 0]
        figures = {e: estimation.figures(e, fits) for e in estimation.estimators}
        lists = any(e.LEVEL == "list" for e in figures)
        prefixes = estimation.prefix_support() if lists else None
        self.support = {
            e: None
            if f is None
            else support_of(
                f, self.n, self.share, min_support, prefixes if e.LEVEL == "list" else None
            )
            for e, f in figures.items()
        }
        if not force:
            self._refuse(log, min_support)
        shape = (len(self.value), estimation.Q + 1)
        self.moments, self.paired = _Moments(shape), _Moments(shape)
        self.refit, self.refit_paired = _Moments(shape), _Moments(shape)

    def _refuse(self, log: Path, enough: float) -> None:
        low = [(e, s) for e, s in self.support.items() if s and s.overall["support"] < enough]
        if not low:
            return
        queries = self.estimation.logged.patterns.queries
        _, s = min(low, key=lambda pair: pair[1].overall["support"])
        lacking = [q for q in np.argsort(-self.share) if self.used[q] and s.support[q] < enough]
        where = ", ".join(f"{queries[q]} up to K = {s.positions[q]}" for q in lacking[:8])
        more = f" and {len(lacking) - 8} more" if len(lacking) > 8 else ""
        figures = ", ".join(f"{e} {s.overall['support']:.0%}" for e, s in low)
        raise LogevalError(
            f"{log}: too little of the target {self.estimation.target.name} was ever shown: "
            f"support {figures}, below {enough:.0%}; queries without it, and up to which K they "
            f"have it: {where}{more}; use fewer --positions, another --estimator, or --force"
        )

    def all_and_overall(self, values: Floats, n: Floats) -> Floats:
        """(Q, B) values with the overall value in front, (Q + 1, B)."""
        weight = np.where(self.used[:, None], n if self.fixed is None else self.weight[:, None], 0)
        weight = np.where(np.isfinite(values), weight, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            overall = (weight * np.nan_to_num(values)).sum(axis=0) / weight.sum(axis=0)
        return np.concatenate([overall[None], values])

    def add(self, W: Floats, fits: Fits, refit: bool) -> None:
        """Resampled logs W (P, B)."""
        n = self.estimation.serps(W)
        values = self.estimation.values(W, fits)
        logged = self.all_and_overall(_logged_clicks(self.estimation, W), n)
        at = self.logged_overall()
        moments, paired = (self.refit, self.refit_paired) if refit else (self.moments, self.paired)
        draws = np.stack([self.all_and_overall(v, n) for v in values.values()])
        centre = self.centre()
        moments.add(draws - centre[:, :, None])
        paired.add(draws - logged - (centre - at)[:, :, None])

    def centre(self) -> Floats:
        """The values themselves, (E, Q + 1)."""
        n = self.n[:, None]
        return np.stack([self.all_and_overall(v[:, None], n)[:, 0] for v in self.value.values()])

    def logged_overall(self) -> Floats:
        """The logged values, (Q + 1,)."""
        return self.all_and_overall(self.logged[:, None], self.n[:, None])[:, 0]

    def table(self) -> pd.DataFrame:
        """The rows: overall first, then the queries, the most frequent first."""
        import pandas as pd

        target, queries = self.estimation.target, self.estimation.logged.patterns.queries
        centre, logged = self.centre(), self.logged_overall()
        truth = np.full(len(logged), np.nan)
        if target.clicks is not None:
            clicks = np.where(self.share > 0, target.clicks, np.nan)
            truth = self.all_and_overall(clicks[:, None], self.n[:, None])[:, 0]
        half, paired = self.moments.half_width(True), self.paired.half_width(True)
        modelled = [i for i, e in enumerate(self.value) if e.model is not None]
        if self.refit.n.any():
            half[modelled] = self.refit.half_width(False)[modelled]
            paired[modelled] = self.refit_paired.half_width(False)[modelled]
        else:  # a direct method without a refit has no interval
            fixed = [i for i, e in enumerate(self.value) if e.LEVEL is None]
            half[fixed] = paired[fixed] = np.nan
        order = [0, *(1 + np.flatnonzero(self.used)).tolist()]
        rows = []
        for row in order:
            for i, e in enumerate(self.value):
                difference = centre[i, row] - logged[row]
                rows.append(
                    {
                        "target": target.name,
                        "query": None if row == 0 else str(queries[row - 1]),
                        "estimator": str(e),
                        "positions": target.K,
                        "value": centre[i, row],
                        "low": centre[i, row] - half[i, row],
                        "high": centre[i, row] + half[i, row],
                        "truth": truth[row],
                        "logged": logged[row],
                        "difference": difference,
                        "difference_low": difference - paired[i, row],
                        "difference_high": difference + paired[i, row],
                        "serps": int(self.weight.sum() if row == 0 else self.weight[row - 1]),
                        **_figures(self.support[e], row),
                    }
                )
        return pd.DataFrame(rows).astype({"supported_positions": "Int32", "query": object})


def _figures(s: Support | None, row: int) -> dict[str, Any]:
    if s is None:
        names = ["support", "effective_serps", "clipped", "largest_weight"]
        return dict.fromkeys(names, np.nan) | {"supported_positions": None}
    if row == 0:
        return s.overall
    q = row - 1
    return {
        "support": s.support[q],
        "effective_serps": s.effective_serps[q],
        "clipped": s.clipped[q],
        "largest_weight": s.largest_weight[q],
        "supported_positions": int(s.positions[q]),
    }


def _logged_clicks(estimation: Estimation, W: Floats) -> Floats:
    """Clicks per SERP at the first K positions, (Q, B): what the logger earned."""
    patterns = estimation.logged.patterns
    clicks = patterns.clicks[:, : estimation.target.K].sum(axis=1)
    n = estimation.serps(W)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = estimation.serps(W * clicks[:, None].astype(np.float32)) / n
    return mean


def _bootstrap(reports: list[_Report], logged: Logged, rounds: int, seed: int, quiet: bool) -> None:
    with Progress("bootstrap", rounds, "rounds", quiet) as progress:
        for W in resampled(logged, rounds, seed):
            for report in reports:
                report.add(W, report.fits, refit=False)
            progress.advance(W.shape[1])


def _refit(
    reports: list[_Report], whole: Logged, short: Cut, refits: int, seed: int, quiet: bool
) -> None:
    """A few rounds in which the click models are fitted again, to whole lists."""
    with Progress("fit again", refits, "rounds", quiet) as progress:
        for W in resampled(whole, refits, seed):
            for b in range(W.shape[1]):
                weight = W[:, b].astype(np.float64)
                of = reports[0].estimation
                models = fit_models(of.estimators, whole, weight, of.settings)
                for report in reports:
                    fits = report.estimation.fits(models)
                    report.add(short.fold @ weight[:, None], fits, refit=True)
                progress.advance(1)
