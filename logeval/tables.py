"""The tables that the stages share: their Arrow schemas, manifests, and atomic writing.

Every stage writes a folder with Parquet files and a ``manifest.json``. The manifest is moved
into place last, so a folder without one holds no table; a reader never sees half of one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import logeval
from logeval.errors import LogevalError

MANIFEST = "manifest.json"
Manifest = dict[str, Any]


def _field(name: str, type_: pa.DataType, doc: str, nullable: bool = False) -> pa.Field:
    return pa.field(name, type_, nullable=nullable, metadata={"doc": doc})


SERPS = pa.schema(
    [
        _field("session_id", pa.int64(), "search session"),
        _field("user_id", pa.int64(), "user; null where the log has none", nullable=True),
        _field("day", pa.int64(), "day of the log; null where the log has none", nullable=True),
        _field("time", pa.int64(), "time of the query since the start of the session"),
        _field("serp_id", pa.int64(), "result page within the session"),
        _field("query_id", pa.int64(), "query"),
        _field(
            "region_id",
            pa.int64(),
            "region of the user; a query is (query_id, region_id); null where the log has none",
            nullable=True,
        ),
        _field("test", pa.bool_(), "a test record: its clicks are withheld, never used to fit"),
        _field("items", pa.list_(pa.int64()), "the list shown, from the first position down"),
        _field(
            "domains",
            pa.list_(pa.int64()),
            "domain of each item; null where the log has none",
            nullable=True,
        ),
        _field("clicks", pa.list_(pa.int32()), "number of clicks at each position"),
        _field(
            "click_times",
            pa.list_(pa.int64()),
            "time of the first click at each position; null elements where there is none",
        ),
    ],
    metadata={"doc": "One row per search engine result page (SERP), in the order of the log."},
)

MODELS = pa.schema(
    [
        _field("model", pa.string(), "click model, for instance DCM"),
        _field("method", pa.string(), "how it was estimated: counting, mle, em, or truth"),
        _field("scope", pa.string(), "per-query, or pooled: position parameters are shared"),
        _field("query_id", pa.int64(), "query; null for a shared parameter", nullable=True),
        _field("region_id", pa.int64(), "region of the query", nullable=True),
        _field("parameter", pa.string(), "attraction, termination, examination, ..."),
        _field("item_id", pa.int64(), "item; null where it does not depend on it", nullable=True),
        _field("position", pa.int32(), "position, from 1; null likewise", nullable=True),
        _field(
            "previous",
            pa.int32(),
            "position of the previous click, 0 for none (UBM only)",
            nullable=True,
        ),
        _field("value", pa.float64(), "the value that simulators use"),
        _field("low", pa.float64(), "lower end of the 95% interval", nullable=True),
        _field("high", pa.float64(), "upper end of the 95% interval", nullable=True),
        _field(
            "observations",
            pa.float64(),
            "number of (expected) observations behind the value",
            nullable=True,
        ),
        _field(
            "raw",
            pa.float64(),
            "the plain estimate, where the value was replaced by a convention",
            nullable=True,
        ),
    ],
    metadata={"doc": "One row per parameter of a click model."},
)

RUNS = pa.schema(
    [
        _field("simulator", pa.string(), "click model, or the name of a synthetic problem"),
        _field("track", pa.string(), "ranking: a step shows a list; rank1: an item at a position"),
        _field("policy", pa.string(), "policy with its parameters, for instance dcmKL-UCB"),
        _field("query", pa.string(), "query_id@region_id, query_id, or synthetic"),
        _field("run", pa.int32(), "run, from 0; equal runs of two policies meet the same users"),
        _field("t", pa.int64(), "number of steps so far"),
        _field("regret", pa.float64(), "cumulative expected regret"),
        _field("reward", pa.float64(), "cumulative expected reward of what was shown"),
        _field(
            "optimal_reward", pa.float64(), "cumulative expected reward of the best list or pair"
        ),
        _field("clicks", pa.int64(), "number of clicks"),
        _field("optimal_steps", pa.int64(), "number of steps without regret (below 1e-9)"),
        _field(
            "pair_regret",
            pa.float64(),
            "cumulative expected regret of one pair: in the rank1 track regret itself; in the "
            "ranking track that of the item at the most examined position; null without a PBM",
            nullable=True,
        ),
        _field(
            "pair_optimal_reward",
            pa.float64(),
            "cumulative expected reward of the best pair; null without a PBM",
            nullable=True,
        ),
        _field(
            "rows_left",
            pa.int32(),
            "items not eliminated yet; null for policies that do not eliminate",
            nullable=True,
        ),
        _field("columns_left", pa.int32(), "positions not eliminated yet; likewise", nullable=True),
    ],
    metadata={"doc": "One row per simulator, track, policy, query, run and checkpoint t."},
)

HARDNESS = pa.schema(
    [
        _field("simulator", pa.string(), "as in the runs table"),
        _field("query", pa.string(), "as in the runs table"),
        _field("rows", pa.int32(), "number of items"),
        _field("columns", pa.int32(), "number of positions"),
        _field("mu", pa.float64(), "smaller of the mean row and mean column (rank1elimkl, eq. 3)"),
        _field("p_max", pa.float64(), "largest row or column mean (eq. 4)"),
        _field("gamma", pa.float64(), "max(mu, 1 - p_max) (eq. 5)"),
        _field("n", pa.int64(), "horizon"),
        _field(
            "bound",
            pa.float64(),
            "Theorem 1: upper bound on the regret of Rank1ElimKL after n steps; infinite when "
            "all rows or all columns are equal",
        ),
    ],
    metadata={"doc": "One row per query of the rank1 track: how hard it is."},
)

TABLES: dict[str, pa.Schema] = {
    "serps": SERPS,
    "models": MODELS,
    "runs": RUNS,
    "hardness": HARDNESS,
}


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write one Parquet file (zstd), statistics on, one row group per 128 Ki rows."""
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=1,
        row_group_size=1 << 17,
        use_dictionary=False,
        write_page_index=False,
    )


def read_table(path: Path, name: str) -> pa.Table:
    """Read the table ``name`` from its folder, checked against its schema."""
    schema = TABLES[name]
    read_manifest(path)
    file = Path(path) / f"{name}.parquet"
    if not file.exists():
        raise LogevalError(f"{path}: there is no {name}.parquet here; is it a {name} folder?")
    table = pq.read_table(file)
    missing = [n for n in schema.names if n not in table.column_names]
    if missing:
        raise LogevalError(f"{file}: column {missing[0]!r} is missing; write it again")
    return table.select(schema.names).cast(schema)


def read_manifest(path: Path | str) -> Manifest:
    """The manifest of a folder that a stage wrote."""
    file = Path(path) / MANIFEST
    if not file.exists():
        remedy = "run the stage that makes it" if Path(path).exists() else "check the path"
        raise LogevalError(f"{path}: there is no {MANIFEST} here; {remedy}")
    try:
        manifest: Manifest = json.loads(file.read_text())
    except ValueError as error:
        raise LogevalError(f"{file}: not a manifest ({error}); write the table again") from None
    return manifest


def manifest_of(
    stage: str, arguments: Manifest, inputs: Iterable[Manifest], **more: Any
) -> Manifest:
    """A manifest: what made the table, from what, with which arguments."""
    return {
        "stage": stage,
        "version": logeval.__version__,
        "arguments": arguments,
        "inputs": list(inputs),
        **more,
    }


def same_work(path: Path, manifest: Manifest) -> bool:
    """Whether ``path`` already holds what this manifest asks for."""
    with contextlib.suppress(LogevalError):
        found = read_manifest(path)
        keys = ("stage", "version", "arguments", "inputs")
        return all(found.get(key) == manifest[key] for key in keys)
    return False


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def staged(out: Path | str) -> Iterator[Path]:
    """A folder to write into; its content appears in ``out`` by rename, or not at all.

    Whatever else is in ``out`` (say, ``models/`` below a log) stays. The manifest is taken
    away first and put in place last, so it vouches for the rest.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise LogevalError(f"{out}: is a file; name a folder for the output")
    out.parent.mkdir(parents=True, exist_ok=True)
    staging = out.parent / f".{out.name}.partial"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    try:
        yield staging
        if not out.exists():
            staging.rename(out)
        else:
            _replace_entries(staging, out)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _replace_entries(staging: Path, out: Path) -> None:
    (out / MANIFEST).unlink(missing_ok=True)
    names = sorted((p.name for p in staging.iterdir()), key=lambda name: name == MANIFEST)
    old = staging / ".old"
    old.mkdir()
    for name in names:
        if (out / name).exists():
            (out / name).rename(old / name)
        (staging / name).rename(out / name)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder."""
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
