"""Pooled fits of a log that is too large for memory: CPU seconds and memory of each step.

    logeval generate big.tsv --sessions 2900000 --queries 20000 --seed 5
    logeval ingest big.tsv --out big
    python -m benchmarks.pooled big DCM,PBM,UBM

Memory is the peak of this process (VmHWM of Linux), which starts with what importing takes. The
click statistics are folded anew unless they are kept beside the log. Run by hand: it takes minutes.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from logeval.clicks.fit import Fit


def peak() -> float:
    """The most memory that this process had so far, in MiB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def main(log: str, models: str) -> None:
    """Fold the log, and fit one model after the other."""
    asked = Fit(log, models.split(","), scope="pooled")
    start, cpu = time.perf_counter(), time.process_time()

    def report(step: str, rest: str = "") -> None:
        nonlocal start, cpu
        seconds, used = time.perf_counter() - start, time.process_time() - cpu
        print(f"{step}: {used:.0f} CPU s, {seconds:.0f} s, peak {peak():.0f} MiB{rest}", flush=True)
        start, cpu = time.perf_counter(), time.process_time()

    report("import")
    data, _ = asked.patterns()
    size = f"; {data.serps.sum():,.0f} SERPs, {data.P:,} patterns, {data.Q:,} queries"
    report("fold", f"{size}, {data.I:,} items")
    for name in asked.models:
        fitted = asked.fit(name, data)
        report(name, f"; {fitted.report['iterations']} steps, {fitted.report['converged']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
