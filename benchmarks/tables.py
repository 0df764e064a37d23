"""Long CSV: ingest against DuckDB reading and grouping the same file; text ids against integers.

The baseline reads the file and makes a list of items and clicks of every search, written as
Parquet: what ingest does at least. Each runs in a process of its own with two threads, and must
find all searches; CPU seconds are of the process, the largest memory is that of its program, not
of the one that started it. Everything is done twice, in turn, and the quickest counts. ``ROWS`` of
the environment is another size.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

ROWS = int(os.environ.get("ROWS", 10_000_000))
TIMES = 2
KINDS = {
    "integers": ("query", "item"),
    "text": ("'query number ' || query", "'https://shop.example/products/' || item"),
}
CALLS = {
    "ingest": """
import logeval
pages = logeval.ingest(log, out, workers=2, quiet=True).counts["queries"]
""",
    "duckdb": """
import duckdb
db = duckdb.connect(config={"threads": 2})
db.execute("SET enable_progress_bar = false")
lists = "list(item ORDER BY position) AS items, list(clicked ORDER BY position) AS clicks"
db.execute(f"COPY (SELECT search_id, any_value(query) AS query, {lists} FROM read_csv('{log}') "
           f"GROUP BY search_id) TO '{out}.parquet'")
((pages,),) = db.execute(f"SELECT count(*) FROM '{out}.parquet'").fetchall()
""",
}
MEASURED = """
import json, resource, sys
log, out = sys.argv[1:]
{call}
used = resource.getrusage(resource.RUSAGE_SELF)
memory = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")][0]
print(json.dumps([used.ru_utime + used.ru_stime, int(memory) / 1024, pages]))
"""


def rows():
    """Rows of the benchmark table: what, CPU seconds, MiB, ratio to the baseline."""
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for kind in KINDS:
            log = Path(folder) / f"{kind}.csv"
            _write(log, *KINDS[kind])
            for what in CALLS:
                ended = [_measured(what, log, Path(folder) / f"{i}") for i in range(TIMES)]
                found[kind, what] = min(ended)
            megabytes = log.stat().st_size / 1e6
            log.unlink()
        table = []
        for (kind, what), (cpu, memory) in found.items():
            ratio = cpu / found[kind, "duckdb"][0]
            table.append(
                {
                    "what": f"{what}, {ROWS:,} rows, {kind}",
                    "CPU s": round(cpu, 1),
                    "MiB": round(memory),
                    "times DuckDB": round(ratio, 2),
                }
            )
        text, numbers = (found[kind, "ingest"][0] for kind in ("text", "integers"))
        table.append(
            {
                "what": f"text over integers ({megabytes:,.0f} MB of text)",
                "CPU s": f"{text / numbers:.2f} times",
            }
        )
        return table


def _write(log, query, item):
    """Searches of ten results each, of 20,000 queries and a million items."""
    duckdb.execute("SET enable_progress_bar = false")
    duckdb.execute(
        f"""COPY (SELECT search_id, {query} AS query, {item} AS item, position, clicked FROM (
            SELECT i // 10 AS search_id, hash(i // 10) % 20000 AS query,
                hash(i) % 1000000 AS item, i % 10 + 1 AS position,
                (hash(i + 7) % 100 < 20 - 2 * (i % 10))::INTEGER AS clicked
            FROM range({ROWS}) AS r(i)) ORDER BY search_id, position) TO '{log}'"""
    )


def _measured(what, log, out):
    program = MEASURED.format(call=CALLS[what])
    target = f"{out}-{what}-{log.stem}"
    ended = subprocess.run(
        [sys.executable, "-c", program, str(log), target],
        check=True,
        capture_output=True,
        text=True,
    )
    cpu, memory, pages = json.loads(ended.stdout)
    assert pages == ROWS // 10, f"{what} read {pages:,} searches"
    return cpu, memory
