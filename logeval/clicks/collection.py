"""A collection of fitted click models: what ``fit_models`` returns and simulators read.

On disk it is a folder with ``models.parquet`` (a row of arrays per
parameter and query), ``queries.parquet`` (one
row per model and query) and a manifest. The same rows can be written as JSON, and read from there,
so that parameters from elsewhere can be used. Nothing is ever pickled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logeval.clicks.disk import arrays_of, fitted_of, listings, query_rows
from logeval.clicks.fitted import FittedModel
from logeval.clicks.lists import Lists
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.registry import MODELS as MODELS_BY_NAME
from logeval.clicks.models.registry import model_names, model_of
from logeval.errors import LogevalError
from logeval.log.names import Names
from logeval.log.queries import GivenQueries, GivenQuery, Query, among
from logeval.running.arrays import Ints
from logeval.running.words import joined
from logeval.storage import files, tables
from logeval.storage.results import Shown
from logeval.storage.schemas import MODELS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SUMMARY = ["model", "method", "queries", "items", "dropped_items", "serps"]
SUMMARY += ["log_likelihood", "perplexity", "conditional_perplexity"]
SUMMARY += ["iterations", "converged", "seconds", "cpu_seconds", "patterns"]


@dataclass(frozen=True)
class FittedModels(Shown):
    """Fitted models by name; iterating gives (name, query, model of that query)."""

    fitted: dict[str, FittedModel]
    manifest: tables.Manifest = field(default_factory=dict)
    lists: Lists | None = None  # that the log showed; None: it is not known
    periods: tuple[FittedModels, ...] = ()  # by period of the log, where they were fitted so
    names: Names = field(default_factory=Names)  # of their queries and items

    def __iter__(self) -> Iterator[tuple[str, Query, ClickModel]]:
        for name, fitted in self.fitted.items():
            for query in fitted.queries:
                yield name, query, fitted.of(query)

    def __len__(self) -> int:
        return sum(len(fitted.queries) for fitted in self.fitted.values())

    @overload
    def __getitem__(self, key: str) -> FittedModel: ...

    @overload
    def __getitem__(self, key: tuple[str, GivenQuery]) -> ClickModel: ...

    def __getitem__(self, key: Any) -> FittedModel | ClickModel:
        """``models["DCM"]``, fitted to all queries, or ``models["DCM", 9982]``, that of a query."""
        if isinstance(key, str):
            return self.named(key)
        if not isinstance(key, tuple) or len(key) != 2 or not isinstance(key[0], str):
            raise LogevalError(f'[{key!r}]: write ["DCM"], or ["DCM", 9982] for one query')
        fitted = self.named(key[0])
        return fitted.of(self.the_query(fitted, key[1]))

    def the_query(self, fitted: FittedModel, query: GivenQuery) -> Query:
        """The query that is meant; its region may be left out where there is only one."""
        found = among(self.names.meant(query), fitted.queries)
        if len(found) == 1:
            return found[0]
        if found:
            raise LogevalError(f"query {query} has several regions: {self._few(found)}; name one")
        known = self._few(fitted.queries)
        raise LogevalError(f"{fitted.model} was not fitted for query {query}; it was for {known}")

    def _few(self, queries: Sequence[Query]) -> str:
        more = f", ... ({len(queries)} in all)" if len(queries) > 5 else ""
        return ", ".join(map(self.names.query, queries[:5])) + more

    def named(self, name: str | None = None) -> FittedModel:
        """The fitted model of that name, or the only one of that kind; without one, the first."""
        name = model_names([name])[0] if name else next(iter(self.fitted))
        if name in self.fitted:
            return self.fitted[name]
        kind = [other for other in self.fitted if model_of(other)[0] == name]
        if len(kind) > 1:
            raise LogevalError(f"there are several {name} here: {joined(kind)}; name one")
        if not kind:
            raise LogevalError(f"there is no {name} here; there are {', '.join(self.fitted)}")
        return self.fitted[kind[0]]

    def base_order(self, name: str, query: Query) -> Ints | None:
        """The items (L,) in the order of the list shown most often; None where it is unknown.

        Items of that list that the model does not have are left out, and items that are not on it
        follow, the most shown first.
        """
        fitted = self.fitted[name]
        q = fitted.index[query]
        base = [] if fitted.base is None else fitted.base[q].tolist()
        if not base:
            return None
        items = fitted.item_ids[fitted.span(q)]
        place = {item: k for k, item in reversed(list(enumerate(base)))}
        return np.argsort([place.get(item, len(base)) for item in items.tolist()], kind="stable")

    @property
    def queries(self) -> list[Query]:
        """The queries of all models, the most frequent first."""
        return list(dict.fromkeys(q for f in self.fitted.values() for q in f.queries))

    def arrow(self) -> pa.Table:
        """The parameters of all models, one row per value."""
        from logeval.clicks.rows import rows_of  # which takes its time

        return pa.concat_tables([rows_of(f) for f in self.fitted.values()])

    def query_table(self) -> pa.Table:
        """The queries of all models, as in ``queries.parquet``."""
        return pa.concat_tables([query_rows(f) for f in self.fitted.values()])

    def table(self) -> pd.DataFrame:
        """One row per parameter, with its interval."""
        integers = ["query_id", "region_id", "item_id", "position", "previous"]
        rows = self.arrow().drop_columns(["draws"])
        table: pd.DataFrame = rows.to_pandas(integer_object_nulls=True)
        return table.astype(dict.fromkeys(integers, "Int64"))

    def summary(self) -> pd.DataFrame:
        """One row per model: queries, items, SERPs, iterations, convergence, quality."""
        import pandas as pd

        rows = [{"model": name, **f.report} for name, f in self.fitted.items()]
        given = list(dict.fromkeys(key for row in rows for key in row))
        # in one order, whether just fitted or read from a manifest
        first = [key for key in SUMMARY if key in given]
        return pd.DataFrame(rows, columns=[*first, *sorted(set(given) - set(first))])

    def __repr__(self) -> str:
        parts = [
            f"{name} ({f.method}, {len(f.queries)} queries)" for name, f in self.fitted.items()
        ]
        return f"FittedModels: {', '.join(parts)}"

    def _repr_html_(self) -> str:
        apart = ["notes", "priors", "checks", "identified", "drift"]
        shown = self.summary().drop(columns=apart, errors="ignore")
        table: str = shown.dropna(axis=1, how="all").to_html(
            index=False, float_format="{:.4g}".format
        )
        return f"<p>Fitted click models</p>{table}"

    def write(self, out: Path | str, overwrite: bool = False) -> None:
        """Write the folder; models that are there stay, and it is an error, unless overwritten."""
        if not overwrite:
            refuse_to_replace(out)
        with tables.staged(out, overwrite=True) as folder:
            self.write_tables(folder)
            tables.write_manifest(folder, self.manifest or _manifest_of(self))

    def write_tables(self, folder: Path) -> None:
        """Write the tables into a folder that is being staged."""
        arrays = pa.concat_tables([arrays_of(f) for f in self.fitted.values()])
        tables.write_parquet(arrays.select(MODELS.names), folder / "models.parquet")
        tables.write_parquet(self.query_table(), folder / "queries.parquet")
        if self.lists is not None:
            tables.write_parquet(self.lists.table(), folder / "lists.parquet")
        self.names.write(folder)
        if self.periods:
            arrays = [
                arrays_of(fitted, period)
                for period, models in enumerate(self.periods, 1)
                for fitted in models.fitted.values()
            ]
            tables.write_parquet(pa.concat_tables(arrays), folder / "periods.parquet")

    def to_json(self) -> str:
        """The rows of both tables as JSON, nulls left out, and the names of their ids."""
        arrays = pa.concat_tables([arrays_of(f) for f in self.fitted.values()])
        tables = {"rows": arrays.select(MODELS.names), "queries": self.query_table()}
        plain = {"table": "models"} | {name: _pylist(table) for name, table in tables.items()}
        names = self.names.kept()
        return json.dumps(plain | ({"names": names} if names else {}))

    def plot(
        self,
        what: str,
        model: str | None = None,
        queries: GivenQueries = None,
        ax: Axes | None = None,
    ) -> Axes:
        """The termination, attraction or examination of a model, with intervals.

        By default of the first model and its most frequent queries.
        """
        from logeval.reports.figures.models import plot_parameters

        return plot_parameters(self, what, model, queries, ax)


def opened_models(models: FittedModels | Path | str) -> FittedModels:
    """Models, or those of a folder."""
    return models if isinstance(models, FittedModels) else read_models(models)


def refuse_to_replace(out: Path | str) -> None:
    """Raise if there are models in a folder already, or whatever else logeval wrote."""
    files.check_name(out)
    if (Path(out) / tables.MANIFEST).exists():
        raise LogevalError(
            f"{out}: holds other models already; choose another folder, or "
            "replace them with overwrite=True"
        )


def read_models(folder: Path | str) -> FittedModels:
    """The models of a folder that ``fit-models`` or ``import-models`` wrote.

    >>> sorted(logeval.read_models("data/models").fitted)
    ['DCM', 'PBM']
    """
    files.check_name(folder)
    folder = Path(folder)
    return tables.consistent(folder, lambda manifest: _models_of(folder, manifest))


def _models_of(folder: Path, manifest: tables.Manifest) -> FittedModels:
    for name, report in manifest.get("models", {}).items():
        if name not in MODELS_BY_NAME and (cls := report.get("class")):
            raise LogevalError(
                f"{folder}: {name} is not a built-in click model; import its class first, with "
                f"`logeval --import {cls} COMMAND`, or in Python with logeval.register"
            )
    read = partial(tables.table_of, folder, manifest)
    arrays, listed = read("models"), listings(read("queries"))
    lists = Lists.read(read("lists")) if tables.file_of(manifest, "lists") else None
    names = Names.read(folder, manifest)
    by_period = read("periods") if tables.file_of(manifest, "periods") else None
    fitted = fitted_of(arrays, listed, f"{folder}: models")
    for name, report in manifest.get("models", {}).items():
        if name in fitted:
            fitted[name].report.update(report)
    periods: list[FittedModels] = []
    if by_period is not None:
        for j in range(1, 1 + pc.max(by_period["period"]).as_py()):
            of_period = by_period.filter(pc.equal(by_period["period"], j))
            periods.append(FittedModels(fitted_of(of_period, listed, f"{folder}: periods")))
    return FittedModels(fitted, manifest, lists, tuple(periods), names)


def models_of_json(text: str, source: str = "the JSON") -> FittedModels:
    """Models from rows of the table ``models`` as ``to_json`` writes them.

    Needed in each row: model, parameter, value, and query_id and items where they apply. Method and
    scope default to ``truth`` and ``per-query``. Without ``queries``, a query has the items and
    positions that its rows speak of. ``names`` are those of ids: {"query": {"0": "running shoes"}}.
    """
    from logeval.clicks.rows import read_rows

    fitted, names = read_rows(text, source)
    try:
        found = FittedModels(fitted, names=Names.of({"names": names}))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LogevalError(f"{source}: names are not those of ids ({error})") from None
    made_from = {"json": hashlib.sha256(text.encode()).hexdigest()}
    return replace(found, manifest=_manifest_of(found, [made_from]))


def _pylist(table: pa.Table) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]


def _manifest_of(models: FittedModels, inputs: Sequence[tables.Manifest] = ()) -> tables.Manifest:
    reports = {name: f.report for name, f in models.fitted.items()}
    again = "logeval import-models FILE --out {folder} --overwrite"
    return tables.manifest_of("models", {}, inputs, models=reports, again=again)
