"""Scanned blocks -> Arrow tables in the SERP schema."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from logeval.log.lines.scan import (
    S_DAY,
    S_ITEMS,
    S_QUERY,
    S_REGION,
    S_SERP,
    S_SESSION,
    S_TEST,
    S_TIME,
    S_USER,
)
from logeval.log.lines.scanner import Scanned
from logeval.running.arrays import Bools, Ints
from logeval.storage import tables


def serps_table(block: Scanned, has_domains: bool) -> pa.Table:
    """The SERPs of a block; what the log does not have is null."""
    serps = block.serps[:, :-1]
    offsets = pa.array(block.serps[S_ITEMS].astype(np.int32))

    def lists(values: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(offsets, values)

    n = serps.shape[1]
    columns = [
        pa.array(serps[S_SESSION]),
        _nullable(serps[S_USER]),
        _nullable(serps[S_DAY]),
        pa.array(serps[S_TIME]),
        pa.array(serps[S_SERP]),
        pa.array(serps[S_QUERY]),
        _nullable(serps[S_REGION]),
        pa.array(serps[S_TEST] > 0),
        lists(pa.array(block.items)),
        lists(pa.array(block.domains)) if has_domains else pa.nulls(n, pa.list_(pa.int64())),
        lists(pa.array(block.clicks)),
        lists(_nullable(block.click_times)),
        pa.nulls(n, pa.list_(pa.float64())),  # propensities: no raw format has them
    ]
    return pa.Table.from_arrays(columns, schema=tables.SERPS)


def _nullable(values: Ints) -> pa.Array:
    missing: Bools = values < 0
    return pa.array(values, mask=missing)
