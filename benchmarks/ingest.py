"""Ingestion: generate a log of 100 MB, then parse it in plain Python, in the kernel, end to end.

The last row is the same log as a .gz, its ratio that to the plain log. CPU seconds are of the whole
process, all threads. Everything is done twice, in turn, and the quickest counts: other
programs can only make it slower.
"""

import gzip
import shutil
import tempfile
import time
from itertools import islice
from pathlib import Path

import logeval
from logeval.log.formats import yandex_personalized
from logeval.log.lines.blocks import session_blocks
from logeval.log.lines.line_format import Scanner
from logeval.log.reading.source import Source
from logeval.synthetic.generate import generate

SESSIONS = 300_000
TIMES = 2
LINES_AT_ONCE = 100_000  # so that the baseline does not pay for memory


def rows():
    """Rows of the benchmark table: what, speed, ratio to the baseline."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.tsv"
        generate(log, sessions=1000, quiet=True)  # compile
        logeval.ingest(log, Path(folder) / "warm", quiet=True)
        start = time.perf_counter()
        generate(log, sessions=SESSIONS, seed=1, overwrite=True, quiet=True)
        generating = time.perf_counter() - start
        megabytes = log.stat().st_size / 1e6

        packed = log.with_suffix(".tsv.gz")
        with open(log, "rb") as raw, gzip.open(packed, "wb", 6) as file:
            shutil.copyfileobj(raw, file, 1 << 20)
        found = {"plain": [], "kernel": [], "whole": [], "gz": []}
        for i in range(TIMES):
            found["plain"].append(_plain(log))
            found["kernel"].append(_kernel(log))
            found["whole"].append(_whole(log, Path(folder) / f"out-{i}"))
            found["gz"].append(_whole(packed, Path(folder) / f"of-gz-{i}"))
        assert len({n for each in found.values() for n, *_ in each}) == 1, "the parsers disagree"
        baseline, kernel, whole, of_gz = (min(x[1] for x in each) for each in found.values())
        cpu, cpu_gz = (min(x[2] for x in found[name]) for name in ("whole", "gz"))
        return [
            _row("generate a log", f"{SESSIONS / generating:,.0f} sessions/s", None),
            _row(f"plain Python parser, {megabytes:,.0f} MB", _speed(megabytes, baseline), 1.0),
            _row("scan kernel, one core", _speed(megabytes, kernel), baseline / kernel),
            _row("ingest into Parquet, all cores", _speed(megabytes, whole), baseline / whole),
            _row(f"  CPU: {cpu:.1f} s", _speed(megabytes, cpu), baseline / cpu),
            _row("the same from .gz, against plain", _speed(megabytes, of_gz), whole / of_gz),
            _row(f"  CPU: {cpu_gz:.1f} s", _speed(megabytes, cpu_gz), cpu / cpu_gz),
        ]


def _plain(log):
    """CPU seconds of the parsing alone: reading lines is not counted."""
    n, seconds = 0, 0.0
    with open(log, "rb") as file:
        while lines := list(islice(file, LINES_AT_ONCE)):
            start = time.thread_time()
            serps = parse(lines)
            seconds += time.thread_time() - start
            n += sum(len(serp[7]) for serp in serps)
    return n, seconds


def _kernel(log):
    """CPU seconds of the parsing alone: reading and cutting blocks is not counted."""
    format = yandex_personalized.FORMAT
    n, seconds, scanner = 0, 0.0, Scanner(format)
    for block in session_blocks(Source(log), format.kernels.ends):
        start = time.thread_time()
        scanner.scan(block)
        seconds += time.thread_time() - start
        n += len(scanner.table()["items"].combine_chunks().values)
    return n, seconds


def _whole(log, out):
    """What the ingest wrote, its wall time and CPU time: counting what it wrote is not in them."""
    start, cpu = time.perf_counter(), time.process_time()
    written = logeval.ingest(log, out, quiet=True)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    with written.connect() as connection:
        n = connection.execute("SELECT sum(len(items)) FROM serps").fetchone()[0]
    return int(n), seconds, cpu


def parse(lines):
    """The baseline: the SERPs as tuples; dictionaries match the clicks, and nothing is checked."""
    serps = []
    session = None
    for line in lines:
        fields = line.rstrip(b"\n").split(b"\t")
        if fields[0] != session:
            session, by_id, user, day = fields[0], {}, None, None
        if fields[1] == b"M":
            day, user = int(fields[2]), int(fields[3])
        elif fields[2] == b"C":
            serp = by_id.get(fields[3])
            url = int(fields[4])
            if serp and url in serp[7]:
                k = serp[7].index(url)
                serp[9][k] += 1
                if serp[10][k] is None:
                    serp[10][k] = int(fields[1])
        else:
            items, domains = [], []
            for pair in fields[6:]:
                url, domain = pair.split(b",")
                items.append(int(url))
                domains.append(int(domain))
            serp = (
                int(session), user, day, int(fields[1]), int(fields[3]), int(fields[4]),
                fields[2] == b"T", items, domains, [0] * len(items), [None] * len(items),
            )  # fmt: skip
            by_id[fields[3]] = serp
            serps.append(serp)
    return serps


def _speed(megabytes, seconds):
    return f"{megabytes / seconds:,.0f} MB/s"


def _row(what, speed, ratio):
    return {"what": what, "speed": speed, "ratio": "" if ratio is None else f"{ratio:.1f}x"}
