"""Compare click models: fit on one part of a log and score on the other, or on another log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from logeval.clicks.collection import FittedModels, read_models
from logeval.clicks.estimation.click_statistics import fold
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fit import FitPlan
from logeval.clicks.quality.score_table import quality_table
from logeval.clicks.quality.scores import MEASURES, Score, score_model
from logeval.errors import LogevalError
from logeval.log.log import Log, load
from logeval.log.queries import GivenQueries
from logeval.running.progress import Progress
from logeval.storage import tables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

HELD_OUT = "held-out SERPs"


@dataclass(frozen=True)
class Comparison:
    """Qualities (schema ``tables.QUALITY``), and what was unseen or impossible by model."""

    table: pd.DataFrame
    coverage: pd.DataFrame
    scored_on: str = HELD_OUT  # which SERPs

    def overall(self) -> pd.DataFrame:
        """One row per model: each measure over everything, the best log-likelihood first."""
        table = self.table
        rows = table[table["baseline"].isna() & table["rank"].isna() & table["frequency"].isna()]
        wide = rows.pivot_table(index="model", columns="measure", values=["value", "low", "high"])
        wide = wide.sort_values(("value", MEASURES[0]), ascending=False)
        return wide[[(v, m) for m in MEASURES for v in ("value", "low", "high")]]

    def by_frequency(self, measure: str = MEASURES[0]) -> pd.DataFrame:
        """One row per model, one column per band of query frequency."""
        rows = self.table[self.table["frequency"].notna() & (self.table["measure"] == measure)]
        return rows.pivot_table(index="model", columns="frequency", values="value", sort=False)

    def plot(self, measure: str = "perplexity", ax: Axes | None = None) -> Axes:
        """A measure by rank of each model, with its intervals; or conditional-perplexity."""
        from logeval.reports.model_figures import plot_perplexity

        return plot_perplexity(self.table, measure, ax)

    def plot_differences(self, measure: str = "log-likelihood", ax: Axes | None = None) -> Axes:
        """How far each model is from the best one, with paired intervals."""
        from logeval.reports.model_figures import plot_differences

        return plot_differences(self.table, measure, ax)

    def write(self, out: Path | str, arguments: dict[str, Any]) -> None:
        """Write ``quality.parquet`` and its manifest to a folder."""
        rows = pa.Table.from_pandas(self.table, schema=tables.QUALITY, preserve_index=False)
        coverage = self.coverage.to_dict(orient="records")
        with tables.staged(out) as folder:
            tables.write_parquet(rows, folder / "quality.parquet")
            manifest = tables.manifest_of("quality", arguments, [], coverage=coverage)
            tables.write_manifest(folder, manifest)


def compare_models(
    log: Log | Path | str,
    models: str | Iterable[str],
    *,
    holdout: str | float = 0.1,
    method: str | None = None,
    scope: str | None = None,
    smoothing: str = "empirical-bayes",
    top_queries: int | None = None,
    queries: GivenQueries = None,
    min_impressions: int = 0,
    iterations: int = Options.iterations,
    tolerance: float = Options.tolerance,
    out: Path | str | None = None,
    seed: int = 0,
    quiet: bool = False,
    **options: str,
) -> Comparison:
    """Fit models on the training part of a log and score them on the held-out part.

    The arguments are those of ``fit_models``; so are ``options``, which single models declare.
    With ``out`` the table of qualities is written there.
    """
    plan = FitPlan.of(
        models,
        holdout=holdout,
        method=method,
        scope=scope,
        smoothing=smoothing,
        top_queries=top_queries,
        queries=queries,
        min_impressions=min_impressions,
        iterations=iterations,
        tolerance=tolerance,
        seed=seed,
        **options,
    )
    data, held_out = plan.patterns(load(log))
    assert held_out is not None  # patterns() refuses an empty one
    scores = {}
    with Progress("fit", total=len(plan.models), unit="models", quiet=quiet) as progress:
        for name in plan.models:
            scores[name] = score_model(plan.fit(name, data), held_out)
            progress.advance(1)
    comparison = _comparison(scores, seed)
    if out is not None:
        comparison.write(out, plan.arguments())
    return comparison


def score(
    models: FittedModels | Path | str,
    log: Log | Path | str,
    *,
    known_queries: bool = False,
    out: Path | str | None = None,
    seed: int = 0,
) -> Comparison:
    """Score fitted models on all SERPs of a log.

    Items and queries the models have never seen get the prior's values; ``known_queries``
    leaves out SERPs of other queries.
    """
    fitted = models if isinstance(models, FittedModels) else read_models(models)
    log = load(log)
    data = patterns_of(fold(log))
    if known_queries:
        data = data.only(set(fitted.queries))
    if not len(data.count):
        raise LogevalError(f"{log.path}: there are no SERPs to score")
    scores = {n: score_model(f, data) for n, f in fitted.fitted.items()}
    comparison = _comparison(scores, seed, _scored_on(fitted, log))
    if out is not None:
        comparison.write(out, {"log": str(log.path), "known_queries": known_queries, "seed": seed})
    return comparison


def _comparison(scores: dict[str, Score], seed: int, scored_on: str = HELD_OUT) -> Comparison:
    import pandas as pd

    coverage = [
        {
            "model": name,
            "serps": int(s.count.sum()),
            "unseen_items": s.unseen_items,
            "unseen_queries": s.unseen_queries,
            "impossible": s.impossible,
        }
        for name, s in scores.items()
    ]
    return Comparison(quality_table(scores, seed), pd.DataFrame(coverage), scored_on)


def _scored_on(models: FittedModels, log: Log) -> str:
    """Whether the models have seen the log before."""
    if models.manifest.get("inputs") == [{"log": log.identity}]:
        part = "partly " if models.manifest["arguments"].get("holdout") else ""
        return f"the log that the models were {part}fitted to, not held out"
    return f"all SERPs of {log.path}"
