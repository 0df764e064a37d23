"""Predictive checks: does a fitted model click as the log does, on the lists of the log?

Users of the model are simulated on the held-out lists, many times, and compared with the log in
what ``features.CHECKS`` names: over all queries and by query. The simulations carry what is not
known of the parameters: to each, the effect of a draw of (true - fitted) is added, to first order.
Gelman, Meng, Stern: Posterior predictive assessment of model fitness (Statistica Sinica, 1996).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from logeval import tables
from logeval.clicks.collection import FittedModels, read_models
from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.deviations import FAMILIES, LEVEL, Deviations, Family
from logeval.clicks.quality.features import CHECKS
from logeval.clicks.quality.levels import levels_of
from logeval.clicks.quality.ranker_change import RankerChange, changed_rankers
from logeval.clicks.quality.sample import SERPS, Sample, held_out_sample, plan_of_log
from logeval.clicks.quality.truth import against_truth, check_belongs
from logeval.clicks.quality.verdict import Verdict, verdict_of
from logeval.errors import LogevalError
from logeval.log.log import Log, load
from logeval.log.queries import Query
from logeval.progress import Progress

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SIMULATIONS = 200
FEWEST = int(FAMILIES / LEVEL)  # simulations, below which no p-value is small enough
MOST = 1_000_000
QUICK_SIMULATIONS, QUICK_SERPS = 80, 2_000  # behind the one-line verdict of a fit


@dataclass(frozen=True)
class Checks:
    """Rows by model, check and query (schema ``CHECKS``), the curves behind them, in words.

    ``change`` is there where the models could be fitted again, ``truth`` where one was given.
    """

    table: pd.DataFrame
    curves: pd.DataFrame
    verdicts: dict[str, Verdict]
    notes: list[str] = field(default_factory=list)
    change: RankerChange | None = None
    truth: pd.DataFrame | None = None

    def rows(self) -> dict[str, Any]:
        """Everything as lists of rows, for JSON."""

        def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = json.loads(frame.to_json(orient="records"))
            return found

        return {
            "checks": records(self.table),
            "verdicts": {name: verdict.line for name, verdict in self.verdicts.items()},
            "ranker_change": None if self.change is None else records(self.change.table),
            "truth": None if self.truth is None else records(self.truth),
            "notes": self.notes,
        }

    def plot(self, check: str, models: Iterable[str] | None = None) -> Figure:
        """The figure of a check, one panel per model."""
        from logeval.reports.check_figures import plot_check

        return plot_check(self.curves, check, None if models is None else list(models))

    def write(self, out: Path | str, arguments: dict[str, Any]) -> None:
        """Write ``checks.parquet``, ``curves.parquet`` and their manifest to a folder."""
        import pyarrow as pa

        found = {"checks": self.table, "curves": self.curves}
        with tables.staged(out) as folder:
            for name, frame in found.items():
                schema = tables.TABLES[name]
                rows = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
                tables.write_parquet(rows, folder / f"{name}.parquet")
            more = {key: value for key, value in self.rows().items() if key != "checks"}
            tables.write_manifest(folder, tables.manifest_of("checks", arguments, [], **more))


def check_models(
    models: FittedModels | Path | str,
    log: Log | Path | str,
    *,
    simulations: int = SIMULATIONS,
    serps: int = SERPS,
    ranker_change: bool = True,
    truth: FittedModels | Path | str | None = None,
    out: Path | str | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> Checks:
    """Check fitted models against the clicks of a log.

    If the models were fitted to a part of this log, the held-out part is checked; if to all of
    it, all of it, which is lenient; otherwise all SERPs of the queries they know. Models of this
    log are also fitted again, to see how they bear a change of ranker. ``truth`` are the true
    models of a generated log, as ``generate`` puts them beside it.
    """
    fitted = models if isinstance(models, FittedModels) else read_models(models)
    log = load(log)
    beside = None if truth is None else _beside(fitted, truth, log)
    sample = held_out_sample(fitted, log, serps, seed)
    checks = check_patterns(fitted.fitted.values(), sample, simulations, seed, quiet)
    checks = replace(checks, truth=beside)
    plan = plan_of_log(fitted, log)
    if ranker_change and plan is not None:
        data, _ = replace(plan, holdout=None).patterns(log)
        change = changed_rankers(plan.models, data.in_memory(), plan.fit, seed=seed, quiet=quiet)
        checks = replace(checks, change=change)
    if out is not None:
        arguments = {"log": str(log.path), "simulations": simulations, "serps": serps, "seed": seed}
        checks.write(out, arguments)
    return checks


def _beside(fitted: FittedModels, truth: FittedModels | Path | str, log: Log) -> pd.DataFrame:
    given = isinstance(truth, FittedModels)
    true = truth if isinstance(truth, FittedModels) else read_models(truth)
    check_belongs(true, log, "the truth" if given else str(truth))
    return against_truth(fitted, true)


def quick_checks(
    models: FittedModels, log: Log | Path | str, seed: int = 0, quiet: bool = False
) -> Checks:
    """The checks from fewer SERPs and simulations, and without a change of ranker."""
    sample = held_out_sample(models, load(log), QUICK_SERPS, seed)
    return check_patterns(models.fitted.values(), sample, QUICK_SIMULATIONS, seed, quiet)


def quick_verdicts(
    models: FittedModels, log: Log | Path | str, seed: int = 0, quiet: bool = False
) -> dict[str, str]:
    """The verdict on each model in one line, from ``quick_checks``."""
    verdicts = quick_checks(models, log, seed, quiet).verdicts
    return {name: verdict.line for name, verdict in verdicts.items()}


def check_patterns(
    models: Iterable[FittedModel],
    sample: Sample,
    simulations: int = SIMULATIONS,
    seed: int = 0,
    quiet: bool = False,
) -> Checks:
    """The checks of some models on given SERPs."""
    import pandas as pd

    models = list(models)
    if simulations < FEWEST:
        raise LogevalError(f"simulations={simulations}: fewer than {FEWEST} cannot fault anything")
    if simulations > MOST:
        raise LogevalError(f"simulations={simulations}: is too many; at most {MOST:,}")
    rows: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    verdicts = {}
    with Progress("check", total=len(models), unit="models", quiet=quiet) as progress:
        for fitted in models:
            overall, queries = levels_of(fitted, sample, simulations, seed)
            together = Family.of([overall[1]], simulations + 1)
            apart = Family.of([level for _, level in queries.values()], simulations + 1)
            mine = []
            for query, (serps, level), family in [
                (None, overall, together),
                *((query, found, apart) for query, found in queries.items()),
            ]:
                mine += _rows(fitted.model, query, serps, level, family)
                curves += _curves(fitted.model, query, level, family.critical)
            verdicts[fitted.model] = verdict_of(fitted.model, mine, overall[1], together.critical)
            rows += mine
            progress.advance(1)
    return Checks(pd.DataFrame(rows), pd.DataFrame(curves), verdicts, sample.notes)


def _rows(
    model: str, query: Query | None, serps: int, level: Deviations, family: Family
) -> list[dict[str, Any]]:
    """One row per check."""
    rows = []
    for check in CHECKS:
        judged = level.of(check)
        p, corrected = family.p_values(level, check)
        row: dict[str, Any] = {
            "model": model,
            "check": check,
            "query": None if query is None else str(query),
            "serps": serps,
            "components": int(judged.sum()),
            "error": level.error(check),
            "p_value": p,
            "corrected": corrected,
            "faulted": corrected <= LEVEL,
            "worst": None,
            "observed": None,
            "expected": None,
            "low": None,
            "high": None,
        }
        if judged.any():
            j = int(np.where(judged, np.abs(level.z[0]), -1.0).argmax())
            row["worst"] = level.parts.label[j]
            row |= {
                name: float(getattr(level, name)[j])
                for name in ("observed", "expected", "low", "high")
            }
        rows.append(row)
    return rows


def _curves(
    model: str, query: Query | None, level: Deviations, critical: float
) -> list[dict[str, Any]]:
    """One row per component."""
    return [
        {
            "model": model,
            "check": level.parts.check[j],
            "query": None if query is None else str(query),
            "component": level.parts.label[j],
            "x": float(level.parts.x[j]),
            "observed": float(level.observed[j]),
            "expected": float(level.expected[j]),
            "low": float(level.low[j]),
            "high": float(level.high[j]),
            "z": float(level.z[0, j]),
            "faulted": bool(abs(level.z[0, j]) >= critical),
        }
        for j in range(len(level.parts.check))
        if level.judged[j] or level.weight[j] > 0
    ]
