"""Replay estimates against a loop over SERPs, and the memory that a large log needs.

A log of 1 M SERPs (20 queries, sessions of one or two SERPs) is estimated by IP and Prefix with
1,000 bootstrap rounds. The baseline goes through the SERPs one by one in plain Python; it does one
round on a part of the SERPs, and its time is scaled to all rounds and SERPs. CPU seconds.

python -m benchmarks.replay memory 10000000    peak memory of a whole estimate of that many SERPs
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent))

from logeval.replay.stages import replay_estimate
from logeval.running import seeds
from logeval.storage import tables
from logeval.storage.schemas import SERPS

QUERIES, L, K = 20, 30, 10
POSITIONS, ROUNDS, PLAIN = 3, 1000, 20_000


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


def plain_round(rows: list[tuple[int, list[int], list[int], int]], h: Any, seed: int) -> Any:
    """One bootstrap round of IP and Prefix, SERP by SERP: frequencies, then the weighted clicks."""
    rng = seeds.generator(seed, "plain")
    weight: dict[int, int] = {}
    ip, prefix, n = Counter(), Counter(), Counter()
    for q, items, _, s in rows:
        w = weight.setdefault(s, int(rng.poisson(1.0)))
        n[q] += w
        for k in range(POSITIONS):
            ip[q, items[k], k] += w
            prefix[q, tuple(items[: k + 1])] += w
    total = np.zeros(2)
    for q, items, clicks, s in rows:
        for k in range(POSITIONS):
            w = weight[s]
            if w and clicks[k]:
                a, b = (q, items[k], k), (q, tuple(items[: k + 1]))
                total[0] += w * h[0].get(a, 0.0) * n[q] / ip[a]
                total[1] += w * h[1].get(b, 0.0) * n[q] / prefix[b]
    return total


def rows(serps: int = 1_000_000) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        log = write_log(Path(folder) / "log", serps)
        part = block(0, 250_000).slice(0, PLAIN)
        plain = list(
            zip(
                part["query_id"].to_pylist(), part["items"].to_pylist(),
                part["clicks"].to_pylist(), part["session_id"].to_pylist(), strict=True,
            )
        )  # fmt: skip
        h: tuple[dict[Any, float], dict[Any, float]] = ({}, {})
        for q, items, _, _ in plain[:5000]:
            for k in range(POSITIONS):
                h[0][q, items[k], k] = h[1][q, tuple(items[: k + 1])] = 0.1
        replay_estimate(
            log, "logged", estimators=["IP"], positions=1, rounds=2, quiet=True
        )  # compile
        start = time.process_time()
        plain_round(plain, h, 0)
        baseline = (time.process_time() - start) * serps / PLAIN * ROUNDS
        out = []
        for target in ("logged", "by-ctr"):
            wall, start = time.perf_counter(), time.process_time()
            replay_estimate(
                log, target, estimators=["IP", "Prefix"], positions=POSITIONS, rounds=ROUNDS,
                force=True, quiet=True,
            )  # fmt: skip
            ours = time.process_time() - start
            out.append(
                {
                    "name": f"{target}, {serps:,} SERPs, {ROUNDS} rounds",
                    "baseline": "plain Python, SERP by SERP",
                    "baseline_cpu_seconds": baseline,
                    "cpu_seconds": ours,
                    "seconds": time.perf_counter() - wall,
                    "ratio": baseline / ours,
                }
            )
        return out


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
    if sys.argv[1:2] == ["memory"]:
        memory(int(sys.argv[2]))
    else:
        for row in rows():
            print(row)
