"""The folder of a runs table, filled unit by unit.

``manifest.json`` comes first and says what the folder is for: settings that differ are refused.
Finished units are moved into ``units/`` whole; the name of a unit holds the checksum of its bytes
and of the settings that it was made with, and one that does not agree is computed again. When all
are there they are merged, sorted, into ``runs.parquet``, whose bytes therefore do not depend on
how the work was cut or interrupted. One process at a time writes there, and reads what is there
once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
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
from logeval.evaluation.running.plan import Plan
from logeval.log.names import Names
from logeval.policies.registry import own_sources
from logeval.running.own_code import UNKNOWN
from logeval.storage import files, locks, manifests, tables
from logeval.storage.schemas import PROBLEMS, RUNS
from logeval.tracks.fitted import Fitted
from logeval.tracks.keys import Panel, ProblemKey, ReplicaKey
from logeval.tracks.meters import TOLERANCE

# what a run that was killed at its very start leaves behind
OURS = ("units", manifests.MARKER, locks.LOCK)
# of the manifest, by value: these are compared one by one, or may differ
NOT_COMPARED = (
    "arguments", "problems", "inputs", "again", "models_folder", "models_work", "own_policies",
    "notes", "simulators", "names",
)  # fmt: skip
BY_SIMULATOR = ("rewards", "positions")  # settings
UNIT = re.compile(r"(?P<settings>[0-9a-f]{16})-(?P<crc>[0-9a-f]{8})\.parquet")
TABLES = ("runs.parquet", "problems.parquet")


class Store:
    """A folder that holds the runs of one experiment, or the part of them that is done."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.units = self.folder / "units"
        self.manifest: tables.Manifest = {}
        self._merged = RUNS.empty_table()
        self._units: dict[Path, pa.Table] = {}  # whole, of these settings, and not merged

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from writing to the folder, which is made if need be."""
        tables.output_folder(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        with locks.holding(self.folder, "evaluate"):
            yield

    def open(
        self,
        plan: Plan,
        models: Fitted,
        notes: Sequence[str] = (),
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
        work = manifests.work_of(models.manifest)
        manifest["models_folder"], manifest["models_work"] = models.folder, [work]
        sources = own_sources(plan.policies)
        manifest["own_policies"] = sources  # checksums of their code
        manifest["notes"], manifest["simulators"] = list(notes), dict(simulators or {})
        names, found = names or Names(), self._found()
        if found:
            names = Names.of(found) | names
            self._refuse_differences(found, manifest)
            manifest["problems"] = {**found["problems"], **checksums}
            manifest["own_policies"] = {**found.get("own_policies", {}), **sources}
            known = [*found.get("models_work", []), work]
            manifest["models_work"] = sorted({work for work in known if work})
            manifest["figures"] = found.get("figures", {})
            manifest["simulators"] = {**found.get("simulators", {}), **manifest["simulators"]}
            manifest["notes"] = list(dict.fromkeys([*found.get("notes", []), *notes]))
            for key in BY_SIMULATOR:
                manifest["arguments"][key] = {**found["arguments"][key], **settings[key]}
        manifest["names"] = names.kept()
        self.units.mkdir(parents=True, exist_ok=True)
        for left in self.units.glob(f".*{files.PARTIAL}*"):  # of killed ones: the folder is ours
            files.remove(left)
        self.manifest = manifest
        self._vouch(self._whole_tables(found))
        if (runs := self.folder / "runs.parquet").exists():
            self._merged = pq.read_table(runs)
        self._units = dict(self._read_units())

    def _found(self) -> tables.Manifest | None:
        """The manifest that is there; a damaged one is set aside with the table it vouched for."""
        if not (self.folder / tables.MANIFEST).exists():
            others = self.folder.iterdir() if self.folder.exists() else []
            if any(p.name not in OURS and files.PARTIAL not in p.name for p in others):
                raise LogevalError(
                    f"{self.folder}: holds other files; name a new folder for the output"
                )
            return None
        try:
            return tables.read_manifest(self.folder)
        except LogevalError:
            if not manifests.written_here(self.folder):
                raise
            for name in (tables.MANIFEST, *TABLES):
                self._set_aside(self.folder / name)
            return None

    def _whole_tables(self, found: tables.Manifest | None) -> dict[str, tables.Manifest]:
        """The records of the merged tables; a damaged one is set aside, and computed again."""
        if found is None:
            return {}
        records = {}
        for name in TABLES:
            file = self.folder / name
            if not file.exists():
                continue
            record = _record(file)
            known = [found.get(key, {}).get(name) for key in ("files", "replaced")]
            if record in known:
                records[name] = record
            else:
                self._set_aside(file)
        return records

    def _set_aside(self, file: Path) -> None:
        if file.exists():
            aside = file.with_name(f"{file.name}.damaged")
            text = f"{file}: is damaged, kept as {aside.name}; made again"
            print(visible(text), file=sys.stderr)  # a progress bar may have taken the stream
            file.replace(aside)

    def _vouch(self, records: dict[str, tables.Manifest], **replaced: tables.Manifest) -> None:
        """Write the manifest; until a new table is in place, the old one counts as well."""
        self.manifest = {**self.manifest, "files": records, "replaced": replaced}
        manifests.write_records(self.folder, self.manifest)

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
        differences += edited(found, asked["own_policies"])
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
        sink = pa.BufferOutputStream()
        tables.write_parquet(rows, sink)
        content = sink.getvalue().to_pybytes()
        unit = self.units / f"{self._settings_of(rows)}-{zlib.crc32(content):08x}.parquet"
        with files.replacing(unit) as partial:
            partial.write_bytes(content)
        self._units[unit] = rows

    def merge(self) -> None:
        """Move all units into the runs table; those that were read are removed, and no others."""
        if self._units:
            self._merged = _united(self._parts())
            self._replace("runs.parquet", self._merged)
        for unit in self._units:
            unit.unlink(missing_ok=True)
        self._units = {}
        with contextlib.suppress(OSError):  # somebody may have put a file of his own there
            self.units.rmdir()

    def add_problems(self, problems: pa.Table) -> None:
        """Add to the table of problems."""
        file = self.folder / "problems.parquet"
        old = pq.read_table(file).to_pylist() if file.exists() else []
        rows = {
            tuple(row[name] for name in ProblemKey._fields): row
            for row in [*old, *problems.to_pylist()]
        }
        merged = pa.Table.from_pylist([rows[key] for key in sorted(rows)], schema=PROBLEMS)
        self._replace(file.name, merged)

    def _replace(self, name: str, rows: pa.Table) -> None:
        """Put a merged table in place; the manifest vouches for the old one until then."""
        with files.replacing(self.folder / name) as partial:
            tables.write_parquet(rows, partial)
            records = dict(self.manifest["files"])
            old = {name: records[name]} if name in records else {}
            record = {**manifests.record(partial), "rows": rows.num_rows}
            self._vouch({**records, name: record}, **old)
        self._vouch({**records, name: record})

    def rows(self, asked: Sequence[ReplicaKey]) -> pa.Table:
        """The rows of the replicas asked for, sorted; an error if they are not all there."""
        rows = select(self._merged, asked)
        if missing := set(asked) - keys_of(rows):
            raise LogevalError(
                f"{self.folder}: {len(missing)} of {len(set(asked))} runs are missing, though they "
                "were made: something else writes there; run the same command again"
            )
        return rows

    def _parts(self) -> list[pa.Table]:
        return [self._merged, *self._units.values()]

    def _read_units(self) -> Iterator[tuple[Path, pa.Table]]:
        """The units that are whole and belong to these settings."""
        for unit in sorted(self.units.glob("*.parquet")):
            name = UNIT.fullmatch(unit.name)
            if not name:
                continue  # not ours
            content = unit.read_bytes()
            if f"{zlib.crc32(content):08x}" != name["crc"]:
                unit.unlink()  # cut short by a crash of the machine, or damaged: computed again
                continue
            rows = pq.read_table(pa.BufferReader(content))
            if self._settings_of(rows) == name["settings"]:
                yield unit, rows

    def _settings_of(self, rows: pa.Table) -> str:
        """What a unit was made with (replicas, settings, models, code of the policy), hashed."""
        keys = sorted(keys_of(rows))
        names = {str(key.problem) for key in keys}
        panels = {str(Panel(key.simulator, key.track)) for key in keys}
        arguments, policies = self.manifest["arguments"], {key.policy for key in keys}
        made_with = [
            self.manifest["version"],
            [arguments[key] for key in ("horizon", "seed", "checkpoints")],
            [[arguments[key].get(name) for name in sorted(panels)] for key in BY_SIMULATOR],
            [self.manifest["problems"].get(name) for name in sorted(names)],
            [self.manifest["own_policies"].get(name) for name in sorted(policies)],
            keys,
        ]
        return hashlib.sha256(json.dumps(made_with).encode()).hexdigest()[:16]


def edited(found: tables.Manifest, sources: dict[str, str]) -> list[str]:
    """Which policies have runs that were made by other code, as far as can be known."""
    there = found.get("own_policies", {})
    return [
        f"the code of policy {name} cannot be compared, keep the class in a file of its own"
        if UNKNOWN in (there[name] + checksum)
        else f"the code of policy {name} is not the same, or of a file that it imports"
        for name, checksum in sources.items()
        if there.get(name, checksum) != checksum
    ]


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


def _record(file: Path) -> tables.Manifest:
    """What the manifest says of a merged table; a damaged one has no rows."""
    try:
        return manifests.record(file)
    except (pa.ArrowException, OSError):
        return {}


def horizon_of(rows: pa.Table) -> int:
    """The last step of a runs table."""
    last = pc.max(rows["t"]).as_py()
    if last is None:
        raise LogevalError("the runs table is empty")
    return int(last)
