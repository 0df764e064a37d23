"""The folder of a runs table, filled unit by unit.

``manifest.json`` comes first and says what the folder is for: settings that differ are refused.
Finished units are moved into ``units/`` whole. When all are there they are merged, sorted, into
``runs.parquet``, whose bytes therefore do not depend on how the work was cut or interrupted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logeval import tables
from logeval.errors import LogevalError
from logeval.evaluation.experiment import Key
from logeval.evaluation.hardness import united
from logeval.tables import RUNS
from logeval.tracks.track import Problem

OURS = ("units", ".manifest")  # what a run that was killed at its very start leaves behind
# of the manifest, by value: these are compared one by one, or may differ
NOT_COMPARED = ("arguments", "problems", "inputs", "models_folder", "own_policies", "notes")
KEY = ("simulator", "track", "policy", "query", "run")


class Store:
    """A folder that holds the runs of one experiment, or the part of them that is done."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.units = self.folder / "units"
        self.file = self.folder / "runs.parquet"

    def open(
        self,
        settings: dict[str, Any],
        problems: Sequence[Problem],
        models_folder: str | None = None,
        sources: dict[str, str] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Make the folder, or check that it holds runs with the same settings and problems."""
        if self.folder.exists() and not self.folder.is_dir():
            raise LogevalError(f"{self.folder}: is a file; name a folder for the output")
        checksums = {f"{p.simulator} {p.query} ({p.track})": p.checksum() for p in problems}
        manifest = tables.manifest_of("evaluate", settings, [], problems=checksums)
        manifest["models_folder"] = models_folder
        manifest["own_policies"] = sources or {}  # checksums of their source
        manifest["notes"] = list(notes)
        if (self.folder / tables.MANIFEST).exists():
            found = tables.read_manifest(self.folder)
            self._refuse_differences(found, manifest)
            manifest["problems"] = {**found["problems"], **checksums}
            manifest["own_policies"] = {**found.get("own_policies", {}), **(sources or {})}
            manifest["notes"] = list(dict.fromkeys([*found.get("notes", []), *notes]))
            for key in ("rewards", "positions"):
                manifest["arguments"][key] = {**found["arguments"][key], **settings[key]}
        elif self.folder.exists() and any(p.name not in OURS for p in self.folder.iterdir()):
            raise LogevalError(
                f"{self.folder}: holds other files; name a new folder for the output"
            )
        self.units.mkdir(parents=True, exist_ok=True)
        for partial in self.folder.glob("**/*.partial"):
            partial.unlink()
        staging = self.folder / ".manifest"
        staging.mkdir(exist_ok=True)
        tables.write_manifest(staging, manifest)
        os.replace(staging / tables.MANIFEST, self.folder / tables.MANIFEST)
        staging.rmdir()

    def _refuse_differences(self, found: dict[str, Any], asked: dict[str, Any]) -> None:
        if found.get("stage") != "evaluate":
            raise LogevalError(
                f"{self.folder}: was made by {found.get('stage')}; name another folder"
            )
        differences = [
            f"{key} differ"
            if key == "checkpoints"
            else f"{key} is {have.get(key)} there and {want[key]} here"
            for have, want in ((found, asked), (found["arguments"], asked["arguments"]))
            for key in want
            if key not in NOT_COMPARED and not _agree(have.get(key), want[key])
        ]
        differences += [
            f"the model of {name} is not the same"
            for name, checksum in asked["problems"].items()
            if found["problems"].get(name, checksum) != checksum
        ]
        differences += [
            f"the code of policy {name} is not the same"
            for name, checksum in asked["own_policies"].items()
            if found.get("own_policies", {}).get(name, checksum) != checksum
        ]
        if differences:
            raise LogevalError(
                f"{self.folder}: holds runs with other settings ({'; '.join(differences)}); "
                "name another folder, or delete it"
            )

    def done(self) -> set[Key]:
        """The replicas whose rows are here."""
        done: set[Key] = set()
        for file in self._files():
            done |= _keys(pq.read_table(file, columns=list(KEY)))
        return done

    def add(self, rows: pa.Table) -> None:
        """Keep the rows of a finished unit."""
        digest = hashlib.sha256(str(sorted(_keys(rows))).encode()).hexdigest()[:16]
        _write(rows, self.units / f"{digest}.parquet")

    def merge(self) -> None:
        """Move all units into the runs table."""
        if any(self.units.glob("*.parquet")):
            _write(self.rows(), self.file)
        for unit in self.units.glob("*.parquet"):
            unit.unlink()
        with contextlib.suppress(OSError):  # another process may be adding to it
            self.units.rmdir()

    def add_hardness(self, hardness: pa.Table) -> None:
        """Add to the hardness table, which is there if there are queries of the rank-1 track."""
        file = self.folder / "hardness.parquet"
        old = pq.read_table(file) if file.exists() else hardness.slice(0, 0)
        if hardness.num_rows:
            _write(united(old, hardness), file)

    def rows(self) -> pa.Table:
        """All rows, sorted."""
        parts, seen = [RUNS.empty_table()], set[Key]()
        for file in self._files():
            part = pq.read_table(file)
            keys = _keys(part)
            # a unit that was merged before may have been left behind by a crash
            parts.append((part if not keys & seen else select(part, list(keys - seen))).cast(RUNS))
            seen |= keys
        return sorted_rows(pa.concat_tables(parts))

    def _files(self) -> list[Path]:
        merged = [self.file] if self.file.exists() else []
        return merged + [unit for unit in sorted(self.units.glob("*.parquet")) if _whole(unit)]


def _agree(have: Any, want: Any) -> bool:
    """Equal; settings by simulator agree when they do on the simulators that both have."""
    if isinstance(have, dict) and isinstance(want, dict):
        return all(have[key] == want[key] for key in have.keys() & want.keys())
    return bool(have == want)


def sorted_rows(rows: pa.Table) -> pa.Table:
    """Rows in the order of the runs table."""
    return rows.sort_by([(name, "ascending") for name in (*KEY, "t")]).combine_chunks()


def select(rows: pa.Table, keys: Sequence[Key]) -> pa.Table:
    """The rows of some replicas."""
    wanted = set(keys)
    columns = [rows[name].to_pylist() for name in KEY]
    return rows.filter(pa.array([key in wanted for key in zip(*columns, strict=True)], pa.bool_()))


def _keys(rows: pa.Table) -> set[Key]:
    keys = rows.group_by(list(KEY)).aggregate([])
    return set(zip(*(keys[name].to_pylist() for name in KEY), strict=True))


def _write(rows: pa.Table, file: Path) -> None:
    partial = file.with_suffix(".partial")
    tables.write_parquet(rows, partial)
    with open(partial, "rb") as written:
        os.fsync(written.fileno())
    os.replace(partial, file)


def _whole(unit: Path) -> bool:
    """Whether a unit can be read; one that a crash of the machine cut short is computed again."""
    try:
        pq.read_metadata(unit)
    except (pa.ArrowInvalid, OSError):
        unit.unlink(missing_ok=True)
        return False
    return True


def horizon_of(rows: pa.Table) -> int:
    """The last step of a runs table."""
    last = pc.max(rows["t"]).as_py()
    if last is None:
        raise LogevalError("the runs table is empty")
    return int(last)
