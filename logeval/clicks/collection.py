"""A collection of fitted click models: what ``fit_models`` returns and simulators read.

On disk it is a folder with ``models.parquet`` (schema ``tables.MODELS``) and a manifest; the
same rows can be written as JSON, and read from there, so that parameters from elsewhere can
be used. Nothing is ever pickled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from logeval import tables
from logeval.clicks.fitted import FittedModel
from logeval.clicks.model_rows import fitted_of_rows
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.registry import model_names
from logeval.errors import LogevalError
from logeval.log.queries import Query

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class FittedModels:
    """Fitted models by name; iterating gives (name, query, model of that query)."""

    fitted: dict[str, FittedModel]
    manifest: tables.Manifest = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[str, Query, ClickModel]]:
        for name, fitted in self.fitted.items():
            for query in fitted.queries:
                yield name, query, fitted.of(query)

    def __len__(self) -> int:
        return sum(len(fitted.queries) for fitted in self.fitted.values())

    def __getitem__(self, key: tuple[str, Query | str]) -> ClickModel:
        name, query = key
        fitted = self.named(name)
        query = Query.parse(query) if isinstance(query, str) else query
        if query not in fitted.index:
            known = ", ".join(str(q) for q in fitted.queries[:5])
            raise LogevalError(f"{name} was not fitted for query {query}; it was for {known}, ...")
        return fitted.of(query)

    def named(self, name: str | None = None) -> FittedModel:
        """The fitted model of that name; without one, the first."""
        name = model_names([name])[0] if name else next(iter(self.fitted))
        if name not in self.fitted:
            raise LogevalError(f"there is no {name} here; there are {', '.join(self.fitted)}")
        return self.fitted[name]

    @property
    def queries(self) -> list[Query]:
        """The queries of all models, the most frequent first."""
        return list(dict.fromkeys(q for f in self.fitted.values() for q in f.queries))

    def arrow(self) -> pa.Table:
        """The rows of all models."""
        return pa.concat_tables([f.rows() for f in self.fitted.values()])

    def table(self) -> pd.DataFrame:
        """One row per parameter, with its interval."""
        integers = ["query_id", "region_id", "item_id", "position", "previous"]
        table: pd.DataFrame = self.arrow().to_pandas(integer_object_nulls=True)
        return table.astype(dict.fromkeys(integers, "Int64"))

    def summary(self) -> pd.DataFrame:
        """One row per model: queries, items, SERPs, iterations, convergence, quality."""
        import pandas as pd

        return pd.DataFrame([{"model": name, **f.report} for name, f in self.fitted.items()])

    def plot(
        self,
        what: str,
        model: str | None = None,
        queries: Iterable[Query | str] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """The termination, attraction or examination of a model, with intervals.

        By default of the first model and its most frequent queries.
        """
        from logeval.reports.model_figures import plot_parameters

        chosen = None
        if queries is not None:
            chosen = [Query.parse(q) if isinstance(q, str) else q for q in queries]
        return plot_parameters(self.named(model), what, chosen, ax)

    def write(self, out: Path | str) -> None:
        """Write the folder."""
        with tables.staged(out) as folder:
            tables.write_parquet(self.arrow(), folder / "models.parquet")
            tables.write_manifest(folder, self.manifest or _manifest_of(self))

    def to_json(self) -> str:
        """The rows as JSON; nulls are left out."""
        rows = [{k: v for k, v in row.items() if v is not None} for row in self.arrow().to_pylist()]
        return json.dumps({"table": "models", "rows": rows})


def read_models(folder: Path | str) -> FittedModels:
    """The models of a folder that ``fit-models`` or ``models import`` wrote."""
    folder = Path(folder)
    manifest = tables.read_manifest(folder)
    reports = manifest.get("models", {})
    fitted = fitted_of_rows(tables.read_table(folder, "models"), str(folder / "models.parquet"))
    return FittedModels(
        {n: _with_report(f, reports.get(n, {})) for n, f in fitted.items()}, manifest
    )


def models_of_json(text: str, source: str = "the JSON") -> FittedModels:
    """Models from rows as ``to_json`` writes them.

    Needed in each row: model, parameter, value, and of query_id, region_id, item_id, position
    and previous those that apply. Method and scope default to ``truth`` and ``per-query``.
    """
    try:
        rows = json.loads(text)
        rows = rows["rows"] if isinstance(rows, dict) else rows
        names = set(tables.MODELS.names)
        unknown = {key for row in rows for key in row} - names
        rows = [{"method": "truth", "scope": "per-query", **row} for row in rows]
        table = pa.Table.from_pylist(rows, schema=tables.MODELS)
    except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise LogevalError(
            f"{source}: not rows of the models table ({error}); write "
            '{"rows": [{"model": "DCM", "query_id": 1, "parameter": "termination", '
            '"position": 1, "value": 0.5}, ...]}'
        ) from None
    if unknown:
        raise LogevalError(
            f"{source}: unknown columns {', '.join(sorted(unknown))}; there are "
            f"{', '.join(tables.MODELS.names)}"
        )
    return FittedModels(fitted_of_rows(table, source))


def _with_report(fitted: FittedModel, report: dict[str, Any]) -> FittedModel:
    fitted.report.update(report)
    return fitted


def _manifest_of(models: FittedModels) -> tables.Manifest:
    reports = {name: f.report for name, f in models.fitted.items()}
    return tables.manifest_of("models", {}, [], models=reports)
