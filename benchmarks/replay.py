"""Peak memory and time of a replay estimate: python -m benchmarks.replay 10000000 (SERPs).

The log has 20 queries, and sessions of one or two SERPs.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa

from logeval.replay.stages import replay_estimate
from logeval.running import seeds
from logeval.storage import tables
from logeval.storage.schemas import SERPS

QUERIES, L, K = 20, 30, 10


def block(number: int, n: int) -> pa.Table:
    """SERPs of a logger with a few hundred lists per query, in sessions of one or two SERPs."""
    rng = seeds.generator(0, "benchmark", "replay", number)
    share = 1.0 / np.arange(1, QUERIES + 1)
    query = rng.choice(QUERIES, n, p=share / share.sum())
    of_query = seeds.generator(0, "benchmark", "replay lists")
    lists = np.argsort(np.arange(L) + of_query.gumbel(0, 2.0, (QUERIES, 300, L)), axis=2)[:, :, :K]
    items = lists[query, np.minimum(rng.geometric(0.03, n) - 1, 299)]
    clicks = (rng.random((n, K)) < 0.5 / (1 + items) / np.arange(1, K + 1) ** 0.3).astype(np.int32)
    session = number * n + np.cumsum(rng.random(n) < 0.7)
    offsets = pa.array(np.arange(0, n * K + 1, K, dtype=np.int32))

    def as_lists(values: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(offsets, values)

    columns = {
        "session_id": session,
        "day": pa.array(session % 28),
        "time": np.zeros(n, np.int64),
        "serp_id": np.zeros(n, np.int64),
        "query_id": query,
        "test": np.zeros(n, bool),
        "items": as_lists(pa.array(items.ravel())),
        "clicks": as_lists(pa.array(clicks.ravel())),
        "click_times": as_lists(pa.nulls(n * K, pa.int64())),
    }
    return pa.table(
        [
            pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(n, f.type)
            for f in SERPS
        ],
        schema=SERPS,
    )


def write_log(folder: Path, serps: int, size: int = 250_000) -> Path:
    (folder / "serps").mkdir(parents=True)
    for number in range(serps // size):
        path = folder / "serps" / f"part-{number:05d}.parquet"
        tables.write_parquet(block(number, size), path)
    tables.write_manifest(folder, tables.manifest_of("ingest", {}, []))
    return folder


def memory(serps: int) -> None:
    """Peak memory of an estimate; the log is written by a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
            other.submit(write_log, log, serps).result()
        start = time.perf_counter()
        replay_estimate(
            log, "logged", estimators=["IP", "Prefix", "PBM"], positions=K, rounds=100, quiet=True
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{serps:,} SERPs, K = {K}, IP, Prefix and PBM, 100 rounds: peak {peak:,.0f} MiB, "
            f"{time.perf_counter() - start:.0f} s"
        )


if __name__ == "__main__":
    memory(int(sys.argv[1]))
