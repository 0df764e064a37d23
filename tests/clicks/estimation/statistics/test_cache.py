"""Kept click statistics: used again, where the log may be written and where not, and bounded."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import duckdb
import pytest

from logeval.clicks.estimation import fold as click_statistics
from logeval.clicks.estimation import fold as statistics_cache
from logeval.clicks.estimation.fold import fold
from logeval.log.log import load
from logeval.storage import files
from tests.serps import Serp, write_serps

SERPS = [Serp(1, [10, 11], [1, 0], session_id=i) for i in range(3)]


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return load(write_serps(tmp_path / "log", SERPS))


@pytest.fixture
def folded(monkeypatch):
    """The files that were folded, in order."""
    calls = []
    plain = click_statistics._fold

    def counted(log, out, *more):
        calls.append(out)
        plain(log, out, *more)

    monkeypatch.setattr(click_statistics, "_fold", counted)
    return calls


def names(folder):
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


def test_statistics_are_kept_until_the_log_changes(log, folded):
    first = fold(log, top_queries=1)
    assert fold(log, top_queries=1).equals(first)
    assert len(folded) == len(names(log.path / "click_statistics")) == 1
    write_serps(log.path, SERPS[:2])
    assert fold(load(log.path), top_queries=1)["count"].to_pylist() == [2]
    assert len(folded) == 2


def test_a_log_that_cannot_be_written_is_kept_in_the_cache_of_the_user(log, folded, tmp_path):
    (log.path / "click_statistics").write_text("")  # no folder can be made here
    assert fold(log).equals(fold(log))
    assert len(folded) == len(names(tmp_path / "cache" / "logeval" / "click_statistics")) == 1
    assert names(log.path) == ["click_statistics", "manifest.json", "serps"]


def test_where_nothing_can_be_written_every_fit_folds(log, folded, tmp_path):
    (log.path / "click_statistics").write_text("")
    (tmp_path / "cache").write_text("")
    assert fold(log).equals(fold(log))
    assert len(folded) == 2


def test_a_relative_cache_folder_is_ignored_as_the_standard_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert statistics_cache.user_cache() == tmp_path / ".cache" / "logeval"


def test_a_damaged_entry_is_folded_again(log, folded):
    whole = fold(log)
    (entry,) = (log.path / "click_statistics").iterdir()
    entry.write_bytes(entry.read_bytes()[:50])
    assert fold(log).equals(whole)
    assert len(folded) == 2


def test_the_least_recently_used_go_first_and_the_newest_stays(log, monkeypatch):
    folder = log.path / "click_statistics"
    for holdout in ("days:1", "days:2", "days:3"):
        fold(log, holdout=holdout)
        for file in folder.iterdir():  # a clock that is too coarse must not decide
            stat = file.stat()
            os.utime(file, ns=(stat.st_atime_ns - 10**9, stat.st_mtime_ns - 10**9))
    before = set(names(folder))
    size = max(file.stat().st_size for file in folder.iterdir())
    fold(log, holdout="days:1")  # used again
    monkeypatch.setattr(statistics_cache, "LIMIT", 2 * size + size // 2)
    fold(log, holdout="days:4")
    left = set(names(folder))
    assert len(left) == 2
    assert len(left & before) == 1
    monkeypatch.setattr(statistics_cache, "LIMIT", 0)
    fold(log, holdout="days:1")
    assert set(names(folder)) == left  # days:1 was the other one: read, not folded again
    fold(log, holdout="days:5")
    assert len(names(folder)) == 1


def test_what_a_dead_process_left_is_removed(log):
    folder = log.path / "click_statistics"
    folder.mkdir()
    fold(log)
    (entry,) = folder.iterdir()
    name = f".{entry.name[:32]}.parquet"
    entry.unlink()
    for file in (f"{name}.partial", ".0.parquet.partial"):
        (folder / file).write_text("half")
    with files.partial_file(folder / "1.parquet") as used:  # by another process that is alive
        fold(log)
        assert set(folder.iterdir()) == {entry, used, folder / ".1.parquet.lock"}


def test_nothing_but_the_partial_file_is_written(tmp_path):
    """A name that DuckDB makes up would stay when it is killed."""
    columns = "range AS query_id, 0 AS region_id, 0 AS items, 0 AS clicks, hash(range) AS holdout"
    with duckdb.connect() as db, ThreadPoolExecutor(1) as pool:
        (tmp_path / ".partial").touch()
        select = f"SELECT {columns} FROM range(1_000_000)"
        done = pool.submit(click_statistics._write_sorted, db, select, tmp_path / ".partial")
        found = set()
        while not done.done():
            found |= set(os.listdir(tmp_path))
        done.result()
    assert found == {".partial"}


def test_two_fits_at_once_do_not_meet(log, monkeypatch):
    """Both find nothing, both fold, both rename: the second one finds the entry in its place."""
    barrier = Barrier(2, timeout=20)
    plain = click_statistics._fold

    def together(log, out, *more):
        plain(log, out, *more)
        barrier.wait()

    monkeypatch.setattr(click_statistics, "_fold", together)
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(fold, [log, log])
    assert one.equals(two)
    assert len(names(log.path / "click_statistics")) == 1


def test_a_failed_fold_leaves_nothing(log, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("no memory")

    monkeypatch.setattr(click_statistics, "_fold", fail)
    with pytest.raises(RuntimeError, match="no memory"):
        fold(log)
    assert names(log.path / "click_statistics") == []
