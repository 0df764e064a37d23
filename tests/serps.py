"""Small serps folders for tests: from Python lists, or from a log in the relpred format."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from logeval.storage import tables


@dataclass
class Serp:
    """One SERP; ``clicks`` are counts per position."""

    query_id: int
    items: list[int]
    clicks: list[int]
    session_id: int = 0
    region_id: int | None = None
    day: int | None = None
    test: bool = False
    serp_id: int = 0
    time: int = field(default=0)
    propensities: list[float] | None = None
    rewards: list[float | None] | None = None
    first: int | None = None


def write_serps(log: Path, serps: Iterable[Serp], parts: int = 1) -> Path:
    """A log folder with ``serps/part-*.parquet`` and a manifest."""
    serps = list(serps)
    folder = log / "serps"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sums = []
    for part in range(parts):
        rows = [
            {
                "session_id": s.session_id,
                "user_id": None,
                "day": s.day,
                "time": s.time,
                "serp_id": s.serp_id,
                "query_id": s.query_id,
                "region_id": s.region_id,
                "test": s.test,
                "items": s.items,
                "domains": None,
                "clicks": s.clicks,
                "click_times": [0 if c else None for c in s.clicks],
                "propensities": s.propensities,
                "rewards": s.rewards,
                "first": s.first,
            }
            for s in serps[part::parts]
        ]
        path = folder / f"part-{part:05d}.parquet"
        tables.write_parquet(pa.Table.from_pylist(rows, schema=tables.SERPS), path)
        sums.append({"path": path.name, "sha256": tables.checksum(path)})
    tables.write_manifest(log, tables.manifest_of("ingest", {}, [], files=sums))
    return log


def read_relpred(path: Path) -> list[Serp]:
    """The SERPs of a relpred log: a click belongs to the latest SERP of its session showing it."""
    serps: list[Serp] = []
    session: list[Serp] = []
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            number = int(fields[0])
            if session and session[-1].session_id != number:
                session = []
            if fields[2] == "Q":
                items = [int(x) for x in fields[5:]]
                serp = Serp(int(fields[3]), items, [0] * len(items), number, int(fields[4]))
                serp.serp_id, serp.time = len(session), int(fields[1])
                session.append(serp)
                serps.append(serp)
            else:
                url = int(fields[3])
                for serp in reversed(session):
                    if url in serp.items:
                        serp.clicks[serp.items.index(url)] += 1
                        break
    return serps


def sampled_serps(
    model: object, lists: np.ndarray, rng: np.random.Generator, query_id: int = 1, first: int = 0
) -> list[Serp]:
    """SERPs of users of ``model`` who are shown the given lists (rows of local indices)."""
    clicks = model.sample(lists, rng.random(lists.shape))  # type: ignore[attr-defined]
    ids = model.items  # type: ignore[attr-defined]
    return [
        Serp(query_id, ids[row].tolist(), c.tolist(), first + i)
        for i, (row, c) in enumerate(zip(lists, clicks, strict=True))
    ]
