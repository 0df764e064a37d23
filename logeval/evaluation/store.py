"""The folder of a runs table, filled unit by unit.

``manifest.json`` comes first and says what the folder is for: settings that differ are refused. A
finished unit is a file in ``units/`` that carries its checksum in its name, and is then named by
the journal there: what is not named, or does not agree, is computed again. When all are there they
are merged, sorted, into the table ``runs``, whose bytes therefore do not depend on how the work was
cut or interrupted. One process at a time writes there, and reads what is there once. Runs of a
policy of the user's own always run again, and take the place of those that are there.
"""

from __future__ import annotations

import contextlib
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logeval.errors import LogevalError, visible
from logeval.evaluation.plan import Plan
from logeval.facts import Fact, distinct
from logeval.log.names import Names
from logeval.storage import files, tables
from logeval.storage.schemas import PROBLEMS, RUNS
from logeval.tracks.fitted import Fitted
from logeval.tracks.keys import Panel, ProblemKey, ReplicaKey
from logeval.tracks.meters import TOLERANCE

OURS = ("units", tables.STAGING, files.LOCK)  # what a run killed at its very start left
# of the manifest, by value: these are compared one by one, or may differ
NOT_COMPARED = (
    "arguments", "problems", "inputs", "again", "models_folder", "models_work", "facts",
    "simulators", "names",
)  # fmt: skip
BY_SIMULATOR = ("rewards", "positions")  # settings
UNIT = re.compile(r"unit-([0-9a-f]{8})\.parquet")
TABLES = {"runs": RUNS, "problems": PROBLEMS}


class Store:
    """A folder that holds the runs of one experiment, or the part of them that is done."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.units = self.folder / "units"
        self.journal = self.units / "journal"
        self.manifest: tables.Manifest = {}
        self._staging = self.folder
        self._tables = {name: schema.empty_table() for name, schema in TABLES.items()}
        self._units: dict[Path, pa.Table] = {}  # whole, and not merged
        self._own: frozenset[str] = frozenset()  # policies that are the user's code
        self._fresh: list[pa.Table] = []  # their runs

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from writing to the folder, which is made if need be."""
        with tables.writing(self.folder, "evaluate", seconds=0) as self._staging:
            yield

    def open(
        self,
        plan: Plan,
        models: Fitted,
        facts: Sequence[Fact] = (),
        simulators: Mapping[str, Any] | None = None,
        names: Names | None = None,
    ) -> None:
        """Make the folder, or check that it holds runs with the same settings and problems."""
        problems = plan.problems
        panels = {str(Panel(p.simulator, p.track)): p for p in problems}
        settings: dict[str, Any] = {
            "horizon": plan.checkpoints[-1],
            "seed": plan.seed,
            "rewards": {panel: p.reward for panel, p in panels.items()},
            "positions": {panel: p.positions for panel, p in panels.items()},
            "checkpoints": list(plan.checkpoints),
            **({} if plan.feedback.is_plain else {"feedback": str(plan.feedback)}),
        }
        checksums = {str(p.key): p.checksum() for p in problems}
        again = "logeval evaluate MODELS --out {folder}"
        manifest = tables.manifest_of("evaluate", settings, [], problems=checksums, again=again)
        work = tables.work_of(models.manifest)
        manifest["models_folder"], manifest["models_work"] = models.folder, [work]
        manifest["simulators"] = dict(simulators or {})
        names, found = names or Names(), self._found()
        if found:
            names = Names.of(found) | names
            self._refuse_differences(found, manifest)
            manifest["problems"] = {**found["problems"], **checksums}
            known = [*found.get("models_work", []), work]
            manifest["models_work"] = sorted({work for work in known if work})
            manifest["figures"] = found.get("figures", {})
            manifest["simulators"] = {**found.get("simulators", {}), **manifest["simulators"]}
            facts = distinct([*map(Fact.of, found.get("facts", [])), *facts])
            for key in BY_SIMULATOR:
                manifest["arguments"][key] = {**found["arguments"][key], **settings[key]}
        manifest["facts"], manifest["names"] = [fact.record() for fact in facts], names.kept()
        self.manifest = manifest
        self._own = frozenset(spec.name for spec in plan.policies if not spec.built_in)
        kept = self._read_tables(found) if found else {}
        if found is None:
            self.journal.unlink(missing_ok=True)  # nobody knows of which settings
        tables.write_manifest(self._staging, manifest, kept)
        tables.commit(self.folder)
        self._tables["runs"] = self._without_own(self._tables["runs"])
        self.units.mkdir(exist_ok=True)
        self._units = dict(self._read_units())

    def _without_own(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.invert(pc.is_in(rows["policy"], pa.array(self._own, pa.string()))))

    def _found(self) -> tables.Manifest | None:
        """The manifest that is there, if it is one."""
        if tables.there_is(self.folder):
            return tables.read_manifest(self.folder)
        if any(p.name not in OURS for p in self.folder.iterdir()):
            raise LogevalError(
                f"{self.folder}: holds other files; name a new folder for the output"
            )
        return None

    def _read_tables(self, found: tables.Manifest) -> dict[str, tables.Manifest]:
        """Read the tables; the records of those that are whole. Others are computed again."""
        kept = {}
        for name in TABLES:
            if file := tables.file_of(found, name):
                try:
                    self._tables[name] = tables.table_of(self.folder, found, name)
                    kept[file] = found["files"][file]
                except LogevalError:
                    self._set_aside(self.folder / file)
        return kept

    def _set_aside(self, file: Path) -> None:
        if file.exists():
            aside = file.with_name(f"{file.name}.damaged")
            text = f"{file}: is damaged, kept as {aside.name}; made again"
            print(visible(text), file=sys.stderr)  # a progress bar may have taken the stream
            file.replace(aside)

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
            if key not in NOT_COMPARED and not agree(have.get(key), want[key])
        ]
        differences += [
            f"the model of {name} is not the same"
            for name, checksum in asked["problems"].items()
            if found["problems"].get(name, checksum) != checksum
        ]
        if differences:
            raise LogevalError(
                f"{self.folder}: holds runs with other settings ({'; '.join(differences)}); "
                "name another folder, or delete it"
            )

    def done(self) -> set[ReplicaKey]:
        """The replicas whose rows are here."""
        return {key for rows in self._parts() for key in keys_of(rows)}

    def add(self, rows: pa.Table) -> None:
        """Keep the rows of a finished unit."""
        if rows["policy"][0].as_py() in self._own:
            self._fresh.append(rows)
            return
        sink = pa.BufferOutputStream()
        tables.write_parquet(rows, sink)
        content = sink.getvalue().to_pybytes()
        unit = self.units / f"unit-{zlib.crc32(content):08x}.parquet"
        try:
            unit.write_bytes(content)
            with open(self.journal, "a", encoding="utf-8") as journal:
                journal.write(f"{unit.name}\n")
        except BaseException:  # a full disk: no part of it stays
            unit.unlink(missing_ok=True)
            raise
        self._units[unit] = rows

    def merge(self, problems: pa.Table) -> None:
        """Put all units into the runs table, and add to that of problems, in one commit.

        Units that were read are removed, and no others.
        """
        runs = self._tables["runs"]
        if self._units or self._fresh:
            runs = self._tables["runs"] = _united(self._parts())
        known = [*self._tables["problems"].to_pylist(), *problems.to_pylist()]
        rows = {tuple(row[name] for name in ProblemKey._fields): row for row in known}
        merged = pa.Table.from_pylist([rows[key] for key in sorted(rows)], schema=PROBLEMS)
        tables.write_parquet(runs, self._staging / "runs.parquet")
        tables.write_parquet(merged, self._staging / "problems.parquet")
        tables.write_manifest(self._staging, self.manifest)
        tables.commit(self.folder)
        for unit in (*self._units, self.journal):
            unit.unlink(missing_ok=True)
        self._units, self._fresh = {}, []
        with contextlib.suppress(OSError):  # somebody may have put a file of his own there
            self.units.rmdir()

    def rows(self, asked: Sequence[ReplicaKey]) -> pa.Table:
        """The rows of the replicas asked for, sorted; an error if they are not all there."""
        rows = select(self._tables["runs"], asked)
        if missing := set(asked) - keys_of(rows):
            raise LogevalError(
                f"{self.folder}: {len(missing)} of {len(set(asked))} runs are missing, though they "
                "were made: something else writes there; run the same command again"
            )
        return rows

    def _parts(self) -> list[pa.Table]:
        return [self._tables["runs"], *self._units.values(), *self._fresh]

    def _read_units(self) -> Iterator[tuple[Path, pa.Table]]:
        """The units that the journal names, and that are whole; others are computed again."""
        text = self.journal.read_text(encoding="utf-8") if self.journal.exists() else ""
        named = set(text.split("\n"))
        for unit in sorted(file for file in self.units.iterdir() if UNIT.fullmatch(file.name)):
            content = unit.read_bytes()
            if unit.name in named and f"unit-{zlib.crc32(content):08x}.parquet" == unit.name:
                yield unit, pq.read_table(pa.BufferReader(content))
            else:
                unit.unlink()


def _united(parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of several tables, sorted, each replica once."""
    kept, seen = [RUNS.empty_table()], set[ReplicaKey]()
    for part in parts:
        keys = keys_of(part)
        # a unit that was merged before may have been left behind by a crash
        kept.append((part if not keys & seen else select(part, list(keys - seen))).cast(RUNS))
        seen |= keys
    return against_best_known(sorted_rows(pa.concat_tables(kept)))


def agree(have: Any, want: Any) -> bool:
    """Equal; settings by simulator agree when they do on the simulators that both have."""
    if isinstance(have, dict) and isinstance(want, dict):
        return all(have[key] == want[key] for key in have.keys() & want.keys())
    return bool(have == want)


def against_best_known(rows: pa.Table) -> pa.Table:
    """Regret against the best list known of each problem whose best list is not proven.

    That is the best of the list found and of all that a policy of the table showed, so the result
    depends on which rows there are, and not on how they were made or merged before.
    """
    if rows["best_known"].null_count == len(rows):
        return rows
    of = list(ProblemKey._fields)
    names = ["t", "regret", "reward", "optimal_reward", "optimal_steps", "best_known"]
    table = rows.select([*of, *names]).to_pandas()
    best = table.groupby(of)["best_known"].transform("max")
    optimal = best * table["t"]
    raised = best.notna() & (optimal != table["optimal_reward"])
    regret = np.maximum(optimal - table["reward"], 0.0)
    found = {
        "regret": table["regret"].mask(raised, regret),
        "optimal_reward": table["optimal_reward"].mask(raised, optimal),
        "optimal_steps": table["optimal_steps"].mask(table["best_known"] < best - TOLERANCE, 0),
        "best_known": best,
    }
    for name, values in found.items():
        i, column = rows.schema.get_field_index(name), RUNS.field(name)
        rows = rows.set_column(i, column, pa.array(values, column.type, from_pandas=True))
    return rows


def sorted_rows(rows: pa.Table) -> pa.Table:
    """Rows in the order of the runs table."""
    return rows.sort_by(
        [(name, "ascending") for name in (*ReplicaKey._fields, "t")]
    ).combine_chunks()


def select(rows: pa.Table, keys: Sequence[ReplicaKey]) -> pa.Table:
    """The rows of some replicas."""
    wanted = set(keys)
    columns = [rows[name].to_pylist() for name in ReplicaKey._fields]
    return rows.filter(pa.array([key in wanted for key in zip(*columns, strict=True)], pa.bool_()))


def keys_of(rows: pa.Table) -> set[ReplicaKey]:
    """The replicas that a table has rows of."""
    fields = ReplicaKey._fields
    keys = rows.group_by(list(fields)).aggregate([])
    columns = [keys[name].to_pylist() for name in fields]
    return {ReplicaKey(*key) for key in zip(*columns, strict=True)}


def horizon_of(rows: pa.Table) -> int:
    """The last step of a runs table."""
    last = pc.max(rows["t"]).as_py()
    if last is None:
        raise LogevalError("the runs table is empty")
    return int(last)
