"""A Dask cluster: the same tables as without, and what happens when parts of it die."""

import contextlib
import gzip
import hashlib
import itertools
import logging.handlers
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import logeval
from logeval.clicks.estimation import fold
from logeval.errors import LogevalError
from logeval.evaluation.store import Store
from logeval.log.formats.registry import line_format
from logeval.log.lines import blocks as ranges
from logeval.log.lines.blocks import range_blocks
from logeval.log.reading import cluster
from logeval.running import work
from logeval.storage import schemas, tables
from logeval.storage.tables import path_of
from tests.faults.commands import content
from tests.faults.stages import LONG

distributed = pytest.importorskip("distributed")

GOLDEN = Path(__file__).parent.parent / "golden"
PROBLEM = "B_LB(L=6,K=2,p=0.5,gap=0.4)"
# a process of its own, to be killed; it prints the address of its scheduler
SCHEDULER = """
import time
from distributed import LocalCluster
settings = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "protocol": "tcp"}
with LocalCluster(**settings, dashboard_address=":0") as cluster:
    print(cluster.scheduler_address, flush=True)
    time.sleep(600)
"""


class Slow:
    """A policy that is in no hurry."""

    SECONDS = 0.05

    def __init__(self, setting):
        import numpy as np

        self.A = np.tile(np.arange(setting.K), (len(setting.L), 1))

    def recommend(self, t):
        import time

        time.sleep(self.SECONDS)
        return self.A

    def update(self, t, A, clicks):
        pass


@pytest.fixture(scope="module")
def scheduler():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


def test_ingest_and_statistics_are_the_same_on_a_cluster(scheduler, tmp_path, monkeypatch):
    monkeypatch.setattr(ranges, "RANGE_BLOCKS", 2)
    text = (GOLDEN / "tiny.personalized.tsv").read_text().splitlines(keepends=True)
    cuts = [0, *(i for i, line in enumerate(text) if line.startswith("300\tM")), len(text)]
    logs = []
    for i, (a, b) in enumerate(itertools.pairwise(cuts)):
        logs.append(tmp_path / f"{i}.tsv")
        logs[-1].write_text("".join(text[a:b]) + f"broken {i}\n")
    assert len(logs) == 2
    ends = line_format("yandex-personalized").kernels.ends
    assert min(len(ranges.byte_ranges(log, ends, 20_000)) for log in logs) > 1
    logs.append(tmp_path / "2.tsv.gz")
    logs[-1].write_bytes(gzip.compress(logs[0].read_bytes()))
    here = logeval.ingest(logs, tmp_path / "here", block_size=20_000, quiet=True)
    there = logeval.ingest(
        logs, tmp_path / "there", block_size=20_000, quiet=True, scheduler=scheduler
    )
    assert len(here.files) > 4
    assert content(tmp_path / "here") == content(tmp_path / "there")
    one = logeval.fit_models(here, ["DCM"], holdout=0.3, out=tmp_path / "one", quiet=True)
    two = logeval.fit_models(
        there, ["DCM"], holdout=0.3, out=tmp_path / "two", quiet=True, scheduler=scheduler
    )
    assert one.queries == two.queries
    tables_of = [tables.read_table(tmp_path / name, "models") for name in ("one", "two")]
    assert tables_of[0].equals(tables_of[1])
    statistics = [
        [
            pq.read_table(p).cast(schemas.CLICK_STATISTICS)
            for p in (log.path / "click_statistics").iterdir()
        ]
        for log in (here, there)
    ]
    assert len(statistics[0]) == 1
    assert statistics[0] == statistics[1]


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gz"])
def test_a_worker_that_sees_another_file_under_the_path(
    scheduler, tmp_path, monkeypatch, compressed
):
    """Size and time of the file here are the same all the while."""
    text = (GOLDEN / "tiny.relpred.tsv").read_bytes()
    log, other = tmp_path / "log.tsv", tmp_path / "other.tsv"
    for path, held in ((log, text), (other, text.replace(b"1", b"2"))):
        path.write_bytes(gzip.compress(held) if compressed else held)
    settings = {"scheduler": scheduler, "quiet": True}
    monkeypatch.setattr(ranges, "range_blocks", lambda path, *rest: range_blocks(other, *rest))
    if not compressed:
        with pytest.raises(LogevalError, match=r"log.tsv: was written or replaced while it was"):
            logeval.ingest(log, tmp_path / "out", **settings)
        return
    blocks = ranges.session_blocks
    monkeypatch.setattr(ranges, "session_blocks", lambda s, *rest: blocks(reopened(s), *rest))

    def reopened(source):
        source.close()
        source.__init__(other)
        return source

    found = logeval.ingest(log, tmp_path / "out", **settings)
    sha256 = hashlib.sha256(other.read_bytes()).hexdigest()
    assert [one["sha256"] for one in found.manifest["inputs"]] == [sha256]


def test_a_log_that_changes_while_a_cluster_reads_it_is_not_vouched_for(
    scheduler, tmp_path, monkeypatch
):
    log = tmp_path / "log.tsv"
    log.write_bytes((GOLDEN / "tiny.relpred.tsv").read_bytes())
    plain = cluster.ingest_pieces

    def changed_afterwards(*arguments, **options):
        found = plain(*arguments, **options)
        with open(log, "a") as file:
            file.write("1\t0\tQ\t5\t0\t1\t2\n")
        return found

    monkeypatch.setattr(cluster, "ingest_pieces", changed_afterwards)
    with pytest.raises(LogevalError, match="replaced while it was read; run the command again"):
        logeval.ingest(log, tmp_path / "out", quiet=True, scheduler=scheduler)
    assert not (tmp_path / "out").exists()


def test_too_many_bad_lines_are_the_same_error_on_a_cluster(scheduler, tmp_path, monkeypatch):
    monkeypatch.setattr(ranges, "RANGE_BLOCKS", 1)
    text = (GOLDEN / "tiny.relpred.tsv").read_text().splitlines(keepends=True)
    bad = [*text[:2000], "bad 1\n", *text[2000:3000], *("bad\n" for _ in range(60)), *text[3000:]]
    (tmp_path / "log.tsv").write_text("".join(bad))
    said = []
    for where in (None, scheduler):
        with pytest.raises(LogevalError, match=r"line 2001: .* line 3002: ") as error:
            logeval.ingest(
                tmp_path / "log.tsv", tmp_path / "out", block_size=9000, quiet=True, scheduler=where
            )
        said.append(str(error.value))
    assert said[0] == said[1]
    assert [p.name for p in tmp_path.iterdir()] == ["log.tsv"]


def test_progress_on_a_cluster_is_that_of_its_tasks(scheduler, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("logeval.running.progress.SILENT_SECONDS", 0.0)
    log = GOLDEN / "tiny.relpred.tsv"
    logeval.ingest(log, tmp_path / "out", scheduler=scheduler)
    said = [line for line in capfd.readouterr().err.splitlines() if "left" in line]
    assert {line.partition(":")[0] for line in said} == {"ingest", "checksum"}
    assert all(line.endswith("100%, 0 s left") for line in said)


def test_a_stream_or_a_table_is_refused(scheduler, tmp_path):
    (tmp_path / "t.csv").write_text("query_id,items,clicks\n1,1 2,0 1\n")
    with pytest.raises(LogevalError, match="tables are ingested here"):
        logeval.ingest(tmp_path / "t.csv", tmp_path / "out", quiet=True, scheduler=scheduler)
    with pytest.raises(LogevalError, match="cannot read a stream"):
        logeval.ingest("-", tmp_path / "out", quiet=True, scheduler=scheduler)
    assert not (tmp_path / "out").exists()


def test_a_scheduler_that_dies_is_an_error_and_the_rest_is_done_afterwards(tmp_path, monkeypatch):
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", SCHEDULER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": root},
    )
    address = process.stdout.readline().decode().strip()
    settings = {"problem": PROBLEM, "horizon": 20, "runs": 80, "quiet": True}
    out, policies = tmp_path / "out", ["Random", "tests.faults.test_cluster:Slow"]
    add = Store.add

    def kill_after_the_first(self, rows):
        add(self, rows)
        os.kill(process.pid, signal.SIGKILL)

    logged = logging.handlers.BufferingHandler(1000)
    logging.getLogger("distributed.client").addHandler(logged)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "add", kill_after_the_first)
        with pytest.raises(LogevalError, match="went away; start it again, and the same command"):
            logeval.evaluate(**settings, policies=policies, scheduler=address, out=out)
    process.wait()
    process.stdout.close()
    assert logged.buffer == [], "Dask's own tracebacks"
    logging.getLogger("distributed.client").removeHandler(logged)
    assert list((out / "units").iterdir())
    monkeypatch.setattr(Slow, "SECONDS", 0)
    logeval.evaluate(**settings, policies=policies, out=out)
    logeval.evaluate(**settings, policies=policies, out=tmp_path / "whole")
    assert path_of(out, "runs").read_bytes() == path_of(tmp_path / "whole", "runs").read_bytes()


@pytest.fixture
def certificates(tmp_path):
    """An authority, and one certificate for all, made as docs/cluster.md says."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    for line in page.splitlines():
        if line.startswith("openssl "):
            subprocess.run(line.split(), cwd=tmp_path, check=True, capture_output=True)
    place = "distributed.comm.tls"
    found = {f"{place}.ca-file": str(tmp_path / "ca.pem")}
    for role in ("client", "scheduler", "worker"):
        found[f"{place}.{role}.cert"] = str(tmp_path / "own.pem")
        found[f"{place}.{role}.key"] = str(tmp_path / "own.key")
    return found


def test_a_cluster_with_certificates(certificates):
    import dask

    with (
        dask.config.set(certificates),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None,
            protocol="tls://", security=distributed.Security(),
        ) as cluster,
    ):  # fmt: skip
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        settings = {"horizon": 5, "runs": 2, "scheduler": address, "quiet": True}
        runs = logeval.evaluate(problem=PROBLEM, policies=["Random"], **settings)
        assert len(runs.rows)
    with pytest.raises(LogevalError, match=r"tls://.*: needs certificates; give them to Dask"):
        logeval.evaluate(problem=PROBLEM, policies=["Random"], **settings)


def test_a_cluster_without_workers_is_waited_for_and_said_to_be(tmp_path, capfd):
    said = ""
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        with ThreadPoolExecutor(1) as pool:
            settings = {"horizon": 5, "runs": 2, "scheduler": address, "quiet": True}
            done = pool.submit(logeval.evaluate, problem=PROBLEM, policies=["Random"], **settings)
            while "workers" not in said and not done.done():
                time.sleep(0.05)
                said += capfd.readouterr().err
            cluster.scale(1)
            assert len(done.result(timeout=60).rows)
    assert said == f"logeval: {address} has no workers; waiting for: dask worker {address}\n"


@pytest.fixture(scope="module")
def processes():
    """A cluster of two workers in processes of their own."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        yield cluster


def kill_a_worker(cluster):
    """One that is at work; its nanny starts another, and the work goes to those that are left."""
    busy = {address for address, w in cluster.scheduler.workers.items() if w.processing}
    pids = [nanny.pid for nanny in cluster.workers.values() if nanny.worker_address in busy]
    for pid in pids[:1]:
        os.kill(pid, signal.SIGKILL)
    return pids[:1]


def test_workers_killed_during_ingest_and_statistics_change_nothing(processes, tmp_path):
    logs = [tmp_path / name for name in ("1.tsv.gz", "2.tsv")]
    for log, sessions in zip(logs, (300, 40_000), strict=True):
        logeval.generate(log, sessions=sessions, queries=5, seed=sessions, quiet=True)
    killed, progress_of = [], work.progress_of

    @contextlib.contextmanager
    def killing(*arguments):
        with progress_of(*arguments) as advance:

            def kill_once(title, size):  # when the first task is done, and the next one has begun
                advance(title, size)
                if title != "checksum" and title not in killed:
                    killed.extend([title, *kill_a_worker(processes)])

            yield kill_once

    settings = {"block_size": 200_000, "quiet": True}
    options = {"top_queries": 3, "holdout": 0.3, "quiet": True}
    address = processes.scheduler_address
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "progress_of", killing)
        patch.setattr(fold, "SHARD_FILES", 2)
        patch.setattr(ranges, "RANGE_BLOCKS", 20)
        there = logeval.ingest(logs, tmp_path / "there", **settings, scheduler=address)
        logeval.fit_models(there, "dcm", out=tmp_path / "two", **options, scheduler=address)
    assert len(there.files) > 4
    assert killed[::2] == ["ingest", "fold"]
    assert len(killed) == 4
    here = logeval.ingest(logs, tmp_path / "here", **settings)
    logeval.fit_models(here, "dcm", out=tmp_path / "one", **options)
    (tmp_path / "there" / "click_statistics").rename(tmp_path / "statistics")
    assert len(list((tmp_path / "statistics").iterdir())) == 1
    assert content(tmp_path / "there") == {
        name: data
        for name, data in content(tmp_path / "here").items()
        if not name.startswith("click_statistics")
    }
    models = [tables.read_table(tmp_path / name, "models") for name in ("one", "two")]
    assert models[0].equals(models[1])


@pytest.mark.parametrize("every_time", [False, *([True] if LONG else [])])
def test_workers_killed_in_the_middle_of_their_units_change_nothing(
    processes, tmp_path, every_time, monkeypatch
):
    """Their nannies start others, and the units begin anew; killed too often, a resume does it."""
    settings = {"problem": PROBLEM, "horizon": 20, "runs": 80, "quiet": True}
    settings["policies"] = ["Random", "tests.faults.test_cluster:Slow"]
    out, killed, add = tmp_path / "out", [], Store.add

    def kill_one(self, rows):
        add(self, rows)
        if every_time or not killed:
            killed.extend(kill_a_worker(processes))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "add", kill_one)
        for _ in range(20 if every_time else 1):
            refused = None
            try:
                logeval.evaluate(**settings, scheduler=processes.scheduler_address, out=out)
                break
            except LogevalError as error:
                refused = str(error)
            assert "died over the same unit" in refused
    assert refused is None
    assert len(killed) >= (3 if every_time else 1)
    monkeypatch.setattr(Slow, "SECONDS", 0)
    logeval.evaluate(**settings, out=tmp_path / "whole")
    assert path_of(out, "runs").read_bytes() == path_of(tmp_path / "whole", "runs").read_bytes()
