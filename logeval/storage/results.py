"""What results share: a notebook shows them, and they can be on disk.

On disk, frames are tables of a folder; what else belongs to them is in its manifest.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from logeval.facts import Fact
from logeval.storage import schemas, tables

if TYPE_CHECKING:
    from collections.abc import Mapping


class Shown:
    """A result that a notebook shows as a table, with what it says in words."""

    def _repr_html_(self) -> str:
        from logeval.reports.notebook import html_of

        return html_of(self)


class Stored(Shown):
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
        found = {name: getattr(self, name) for name in self.KEPT}
        if "facts" in found:
            found["facts"] = [fact.record() for fact in found["facts"]]
        return found

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """The result that a folder holds."""
        return tables.consistent(folder, lambda manifest: cls._of(folder, manifest))

    @classmethod
    def _of(cls, folder: Path | str, manifest: tables.Manifest) -> Self:
        values: dict[str, Any] = {name: manifest.get(name) for name in cls.KEPT}
        if "facts" in values:
            values["facts"] = [Fact.of(record) for record in values["facts"] or ()]
        for field, name in cls.TABLES.items():
            values[field] = tables.table_of(folder, manifest, name).to_pandas()
        return cls(**values, manifest=manifest)  # type: ignore[call-arg]
