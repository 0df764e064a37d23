"""``ingest --overwrite`` while a log is read: one log or the other, or an error; never both."""

import pytest

import logeval
from logeval import LogevalError
from logeval.clicks.estimation.fold import fold
from logeval.log.log import Log
from logeval.storage import tables
from logeval.synthetic.generate import generate
from tests.faults.commands import Command

SETTINGS = {"queries": 3, "quiet": True}
INGEST = {"block_size": 9000, "overwrite": True, "quiet": True}
REPLACED = "another log took its place while it was read; run the command again"


@pytest.fixture
def raw(tmp_path):
    """Two logs whose files have the same numbers."""
    for seed in (1, 2):
        generate(tmp_path / f"{seed}.tsv", sessions=300, seed=seed, **SETTINGS)
    return [tmp_path / "1.tsv", tmp_path / "2.tsv"]


def replaced_after_the_check(monkeypatch, replace):
    """Call ``replace`` once, when the files of a log have just been checked."""
    check, calls = tables.check_files, []

    def checked_and_replaced(*arguments):
        check(*arguments)
        if not calls:
            calls.append(1)
            replace()

    monkeypatch.setattr(tables, "check_files", checked_and_replaced)


def test_a_log_that_is_replaced_after_its_check_is_not_read(raw, tmp_path, monkeypatch):
    out = tmp_path / "log"
    log = logeval.ingest(raw[0], out, **INGEST)
    replaced_after_the_check(monkeypatch, lambda: logeval.ingest(raw[1], out, **INGEST))
    with pytest.raises(LogevalError, match=REPLACED):
        logeval.fit_models(log, "DCM", quiet=True)
    assert not list((out / "click_statistics").iterdir())
    found = fold(logeval.load(out))
    assert found.equals(fold(logeval.ingest(raw[1], tmp_path / "other", **INGEST)))


def test_statistics_are_kept_under_the_name_of_what_was_read(raw, tmp_path):
    """The files of the first log are among those of the second, so they can still be read."""
    out = tmp_path / "log"
    log = logeval.ingest(raw[0], out, **INGEST)
    assert log.files  # checked now
    logeval.ingest(raw, out, **INGEST)
    first = fold(log)
    both = fold(logeval.load(out))
    assert sum(both["count"].to_pylist()) > sum(first["count"].to_pylist())
    assert len(list((out / "click_statistics").iterdir())) == 2


def test_models_vouch_for_the_log_that_they_were_fitted_to(raw, tmp_path, monkeypatch):
    out = tmp_path / "log"
    first = logeval.ingest(raw[0], out, **INGEST)
    identity = first.identity
    replaced_after_the_check(monkeypatch, lambda: logeval.ingest(raw, out, **INGEST))
    models = logeval.fit_models(first, "DCM", quiet=True)
    assert models.manifest["inputs"] == [{"log": identity}] != [{"log": tables.identity(out)}]


def test_the_same_log_put_there_again_is_another_one(raw, tmp_path, monkeypatch):
    """A file was missing while two others were ingested in turn; the first is back by now."""
    out = tmp_path / "log"
    log = logeval.ingest(raw[0], out, **INGEST)

    def missing(*given):
        for path in (raw[1], raw[0]):
            logeval.ingest(path, out, **INGEST)
        raise LogevalError("part: is missing")

    monkeypatch.setattr("logeval.log.log.tables.check_files", missing)
    with pytest.raises(LogevalError, match=REPLACED):
        log.serps()
    monkeypatch.undo()
    (out / next(name for name in log.manifest["files"] if name.startswith("serps/"))).unlink()
    with pytest.raises(LogevalError, match="is missing; make it again"):
        logeval.load(out).serps()


def test_readers_and_a_writer_at_once(raw, tmp_path):
    """Before the names held a checksum, 4 of 92 such readers got a mixture."""
    out, whole = tmp_path / "log", []
    for path in raw:
        whole.append(logeval.ingest(path, out, **INGEST).serps())

    def write():
        for i in range(30):
            logeval.ingest(raw[i % 2], out, **INGEST)

    def read():
        for _ in range(60):
            try:
                assert Log(out, tables.read_manifest(out)).serps() in whole
            except LogevalError as error:
                if REPLACED not in str(error):
                    raise

    writer, reader = Command(call=write), Command(call=read)
    for ended in (writer.wait(), reader.wait()):
        assert ended.code == 0, ended.said
