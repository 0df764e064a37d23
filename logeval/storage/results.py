"""What results share: methods that draw them come from the reports, and they can be on disk.

On disk, frames are tables of a folder; what else belongs to them is in its manifest.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from logeval.kinds import checked
from logeval.storage import schemas, tables

if TYPE_CHECKING:
    from collections.abc import Mapping


# by name: imports point the other way
DRAWING, NOTEBOOK = "logeval.reports.drawing", "logeval.reports.notebook"


class Drawn:
    """A result whose methods that draw it are defined in the reports (see ``DRAWING``).

    They are found when they are called, so that neither figures nor pages are imported before.
    """

    def __init_subclass__(cls) -> None:
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(cls, name, checked(method))

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("plot", "report", "verdict")):
            function = importlib.import_module(DRAWING).method_of(type(self), name)
            if function is not None:
                return MethodType(checked(function), self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _repr_html_(self) -> str:
        text: str = importlib.import_module(NOTEBOOK).html_of(self)
        return text

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *importlib.import_module(DRAWING).names_of(type(self))]


class Stored(Drawn):
    """A dataclass that can be written to a folder and read back.

    ``TABLES`` names the table of each field that is a frame, ``KEPT`` the fields that the manifest
    keeps.
    """

    TABLES: ClassVar[Mapping[str, str]] = {}
    KEPT: ClassVar[tuple[str, ...]] = ()
    manifest: tables.Manifest

    def write(self, out: Path | str) -> None:
        """Write the folder."""
        with tables.staged(out) as folder:
            for field, name in self.TABLES.items():
                schema = schemas.TABLES[name]
                rows = pa.Table.from_pandas(getattr(self, field), schema, preserve_index=False)
                tables.write_parquet(rows, folder / f"{name}.parquet")
            tables.write_manifest(folder, {**self.manifest, **self.kept()})

    def kept(self) -> Mapping[str, Any]:
        """What the manifest keeps."""
        return {name: getattr(self, name) for name in self.KEPT}

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """The result that a folder holds."""
        return tables.consistent(folder, lambda manifest: cls._of(folder, manifest))

    @classmethod
    def _of(cls, folder: Path | str, manifest: tables.Manifest) -> Self:
        values: dict[str, Any] = {name: manifest.get(name) for name in cls.KEPT}
        for field, name in cls.TABLES.items():
            values[field] = tables.table_of(folder, manifest, name).to_pandas()
        return cls(**values, manifest=manifest)  # type: ignore[call-arg]
