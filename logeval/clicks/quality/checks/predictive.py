"""Predictive checks: does a fitted model click as the log does, on the lists of the log?

Users of the model are simulated on the held-out lists, many times, and compared with the log in
what ``features.CHECKS`` names: over all queries and by query. The simulations carry what is not
known of the parameters: their users are those of draws from the posterior.
Gelman, Meng, Stern: Posterior predictive assessment of model fitness (Statistica Sinica, 1996).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from logeval.clicks.drift.change import Change
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.checks.against_log import Checked, against_log
from logeval.clicks.quality.checks.deviations import FALSE_ALARMS, FAMILIES, Family
from logeval.clicks.quality.checks.features import CHECKS
from logeval.clicks.quality.checks.sample import Sample, sample_of
from logeval.clicks.quality.checks.verdict import ModelVerdict, verdict_of
from logeval.clicks.quality.ranker_change import RankerChange
from logeval.errors import LogevalError
from logeval.log.names import Names
from logeval.log.queries import Query
from logeval.running.progress import Progress
from logeval.storage.results import Stored
from logeval.storage.tables import Manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd
    from matplotlib.figure import Figure

    from logeval.reports.answers.answer import Answer

FEWEST = int(FAMILIES / FALSE_ALARMS)  # simulations, below which no p-value is small enough
MOST = 1_000_000
QUICK_SIMULATIONS, QUICK_SERPS = 80, 2_000  # behind the one-line verdict of a fit


@dataclass(frozen=True)
class Checks(Stored):
    """Rows by model, check and query (schema ``CHECKS``), the curves behind them, in words.

    ``change`` is there where the models could be fitted again, ``truth`` where one was given.
    """

    TABLES: ClassVar = {"table": "checks", "curves": "curves"}

    table: pd.DataFrame
    curves: pd.DataFrame
    verdicts: dict[str, ModelVerdict]
    notes: list[str] = field(default_factory=list)
    change: RankerChange | None = None
    truth: pd.DataFrame | None = None
    examination: pd.DataFrame | None = None  # from swaps, beside that of the models
    randomised: pd.DataFrame | None = None  # see ``quality.randomised``
    manifest: Manifest = field(default_factory=dict)

    def kept(self) -> dict[str, Any]:
        """What is no table."""
        return {key: value for key, value in self.rows().items() if key != "checks"}

    def rows(self) -> dict[str, Any]:
        """Everything as lists of rows, for JSON, queries by their names."""

        def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = json.loads(frame.to_json(orient="records"))
            return found

        return {
            "checks": records(Names.of(self.manifest).shown(self.table)),
            "verdicts": {name: verdict.line for name, verdict in self.verdicts.items()},
            "ranker_change": None if self.change is None else records(self.change.table),
            "truth": None if self.truth is None else records(self.truth),
            "examination": None if self.examination is None else records(self.examination),
            "randomised": None if self.randomised is None else records(self.randomised),
            "notes": self.notes,
        }

    def plot(self, check: str, models: Iterable[str] | None = None) -> Figure:
        """One panel per model: the log (dots) and 95% of the model's simulations (band)."""
        from logeval.reports.figures.checks import plot_check

        return plot_check(self, check, models)

    def verdict(self) -> Answer:
        """The answer in words."""
        from logeval.reports.answers.checks import verdict

        return verdict(self)


def quick_records(
    models: dict[str, FittedModel],
    data: FoldedClicks,
    held_out: Patterns | None,
    names: Names,
    seed: int = 0,
    quiet: bool = False,
    change: Change | None = None,
) -> dict[str, dict[str, Any]]:
    """The quick verdict on each model while it is fitted; nothing for data that stay on disk."""
    test = data if held_out is None else held_out
    if not isinstance(test, Patterns):
        return {}
    sample = sample_of(data.queries, test, QUICK_SERPS, seed, held_out is None, names=names)
    checks = check_patterns(models.values(), sample, QUICK_SIMULATIONS, seed, quiet)
    verdicts = {name: v.with_change(change) for name, v in checks.verdicts.items()}
    return {name: v.record(held_out is not None) for name, v in verdicts.items()}


def check_patterns(
    models: Iterable[FittedModel],
    sample: Sample,
    simulations: int = 200,
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
            overall, by_query = against_log(fitted, sample, simulations, seed)
            together = Family.of([overall.deviations], simulations + 1)
            apart = Family.of([found.deviations for found in by_query.values()], simulations + 1)
            mine = _rows(fitted.model, None, overall, together)
            curves += _curves(fitted.model, None, overall, together)
            for query, found in by_query.items():
                mine += _rows(fitted.model, query, found, apart)
                curves += _curves(fitted.model, query, found, apart)
            words = verdict_of(fitted.model, mine, overall.deviations, together.critical)
            verdicts[fitted.model] = words
            rows += mine
            progress.advance(1)
    return Checks(pd.DataFrame(rows), pd.DataFrame(curves), verdicts, sample.notes)


def _rows(model: str, query: Query | None, found: Checked, family: Family) -> list[dict[str, Any]]:
    """One row per check."""
    rows, off = [], found.deviations
    for check in CHECKS:
        judged = off.of(check)
        p, corrected = family.p_values(off, check)
        row: dict[str, Any] = {
            "model": model,
            "check": check,
            "query": None if query is None else str(query),
            "serps": found.serps,
            "components": int(judged.sum()),
            "error": off.error(check),
            "p_value": p,
            "corrected": corrected,
            "faulted": corrected <= FALSE_ALARMS,
            **dict.fromkeys(("worst", "observed", "expected", "low", "high")),
        }
        if judged.any():
            j = int(np.where(judged, np.abs(off.z[0]), -1.0).argmax())
            row |= {"worst": off.parts.label[j], **off.numbers(j)}
        rows.append(row)
    return rows


def _curves(
    model: str, query: Query | None, found: Checked, family: Family
) -> list[dict[str, Any]]:
    """One row per component."""
    off, critical = found.deviations, family.critical
    return [
        {
            "model": model,
            "check": off.parts.check[j],
            "query": None if query is None else str(query),
            "component": off.parts.label[j],
            "x": float(off.parts.x[j]),
            **off.numbers(j),
            "z": float(off.z[0, j]),
            "faulted": bool(abs(off.z[0, j]) >= critical),
        }
        for j in range(len(off.parts.check))
        if off.judged[j] or off.weight[j] > 0
    ]
