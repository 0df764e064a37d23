"""Tables: written whole or not at all, never over what is not ours, and checked when read."""

import contextlib
import os
import platform
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from logeval.errors import LogevalError
from logeval.storage import files, locks, schemas, tables
from logeval.storage.manifests import MARKER
from logeval.synthetic.generate import generate

GENERATE = {"sessions": 10, "queries": 2, "overwrite": True, "quiet": True}
MODEL = {"model": "DCM", "method": "truth", "scope": "per-query", "parameter": "termination"}
ROWS = [MODEL | {"query_id": 1, "position": k + 1, "value": k / 10} for k in range(10)]
MODELS = pa.Table.from_pylist(ROWS, schema=schemas.MODELS)


def write(out, stage="fit-models", rows=MODELS, more=()):
    with tables.staged(out) as folder:
        tables.write_parquet(rows, folder / "models.parquet")
        for name in more:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(name)
        tables.write_manifest(folder, tables.manifest_of(stage, {}, []))


def content(folder):
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    file = tmp_path / "a.txt"
    files.write_text(file, "old")

    def fail():
        with files.replacing(file) as partial:
            partial.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert content(tmp_path) == {"a.txt": b"old"}
    files.write_text(file, "new")
    assert content(tmp_path) == {"a.txt": b"new"}


def pipe(path, elsewhere):
    os.mkfifo(path)


def link(path, elsewhere):
    elsewhere.write_text("precious")
    path.symlink_to(elsewhere)


def dangling_link(path, elsewhere):
    path.symlink_to(elsewhere)


@pytest.mark.parametrize(
    ("make", "what"),
    [(pipe, "a pipe"), (link, "a symbolic link"), (dangling_link, "a symbolic link")],
)
def test_only_a_regular_file_is_replaced(tmp_path, make, what):
    """As root a rename destroys a device as well."""
    place = tmp_path / "models.parquet"
    make(place, tmp_path / "elsewhere")
    kind = place.lstat().st_mode
    before = content(tmp_path)
    for write_over in (lambda: files.write_text(place, "x"), lambda: generate(place, **GENERATE)):
        with pytest.raises(LogevalError, match=f"models.parquet: is {what}.*name another file"):
            write_over()
    with pytest.raises(LogevalError, match=r"models.parquet: was not written by logeval"):
        write(tmp_path)
    assert place.lstat().st_mode == kind
    assert content(tmp_path) == before


def test_a_link_in_the_place_of_a_file_of_ours_is_not_replaced(tmp_path):
    write(tmp_path / "out", more=["figures/a.png"])
    for name in ("models.parquet", "figures"):
        (tmp_path / "out" / name).rename(tmp_path / name)
        (tmp_path / "out" / name).symlink_to(tmp_path / name)
        with pytest.raises(LogevalError, match=f"{name}: was not written by logeval"):
            write(tmp_path / "out", more=["figures/a.png"])
        (tmp_path / "out" / name).unlink()
        (tmp_path / name).rename(tmp_path / "out" / name)


def test_a_link_put_in_the_place_of_the_temporary_file_is_not_followed(tmp_path, monkeypatch):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    taken = tmp_path / "taken"
    taken.symlink_to(precious)
    monkeypatch.setattr(files, "partial_name", lambda path: taken)
    with pytest.raises(FileExistsError):
        files.write_text(tmp_path / "a.txt", "x")
    assert precious.read_text() == "precious"


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_uses_is_not(tmp_path):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom logeval.storage import files\n"
        "with files.replacing(Path(sys.argv[1])) as partial:\n    os._exit(9)"
    )
    target = tmp_path / "a.txt"
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    with files.replacing(target) as mine:
        assert list(tmp_path.iterdir()) == [mine]
        files.write_text(target, "another writer")
        assert mine.exists()
        mine.write_text("the last one wins")
    assert content(tmp_path) == {"a.txt": b"the last one wins"}


def test_a_staged_folder_appears_whole_or_not_at_all(tmp_path):
    out = tmp_path / "out"

    def fail():
        with tables.staged(out) as staging:
            (staging / "half").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not list(tmp_path.iterdir())
    with tables.staged(out) as staging:
        (staging / "whole").write_text("x")
        assert not out.exists()
    assert [p.name for p in out.iterdir()] == ["whole"]


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "out").write_text("precious")
    with pytest.raises(LogevalError, match="is a file"), tables.staged(tmp_path / "out"):
        pass
    assert (tmp_path / "out").read_text() == "precious"


def test_a_link_to_itself_is_named(tmp_path):
    (tmp_path / "out").symlink_to(tmp_path / "out")
    with pytest.raises(LogevalError, match="cannot be a folder"), tables.staged(tmp_path / "out"):
        pass


def test_the_output_of_another_stage_is_not_replaced(tmp_path):
    write(tmp_path / "out", "ingest")
    with pytest.raises(LogevalError, match="holds the output of ingest"):
        write(tmp_path / "out", "fit-models")
    assert tables.read_manifest(tmp_path / "out")["stage"] == "ingest"


@pytest.mark.parametrize("name", ["models.parquet", "figures/mine.png", "manifest.json"])
def test_nothing_is_replaced_that_logeval_did_not_write(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("precious")
    before = content(tmp_path)
    with pytest.raises(LogevalError, match=f"{name}: was not written by logeval"):
        write(tmp_path, more=["figures/a.png"])
    assert content(tmp_path) == before


def test_what_lies_beside_the_output_stays_and_old_files_of_ours_go(tmp_path):
    write(tmp_path, more=["figures/a.png", "old/b.txt"])
    (tmp_path / "notes.txt").write_text("mine")
    write(tmp_path, more=["figures/c.png"])
    names = {"models.parquet", "manifest.json", MARKER, "figures/c.png", "notes.txt"}
    assert set(content(tmp_path)) == names
    (tmp_path / "figures" / "mine.png").write_text("mine")
    with pytest.raises(LogevalError, match=r"mine.png: was not written by logeval"):
        write(tmp_path, more=["figures/c.png"])
    assert (tmp_path / "figures" / "mine.png").read_text() == "mine"


def test_a_writer_that_is_killed_between_any_two_renames_leaves_the_old_table(
    tmp_path, monkeypatch
):
    """Killed: neither the clean-up nor the way back runs, and its process is no more."""
    rename, left = Path.rename, 0

    def counted(self, target):
        nonlocal left
        left -= 1
        if left < 0:
            raise SystemExit
        return rename(self, target)

    for steps in range(10):
        out = tmp_path / f"{steps}"
        write(out, more=["figures/old.png", "old/b.txt"])
        before = content(out)
        left = steps
        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", counted)
            patch.setattr(files, "remove", lambda path: None)
            patch.setattr(tables, "_roll_back", lambda staging, out: None)
            patch.setattr(os, "getpid", lambda: 1 << 30)
            with contextlib.suppress(SystemExit):
                write(out, rows=MODELS.slice(5), more=["figures/new.png"])
        assert content(out) != before
        with pytest.raises(ZeroDivisionError), tables.staged(out):
            raise ZeroDivisionError
        if steps < 9:
            assert content(out) == before, f"killed after {steps} renames"
    assert tables.read_table(out, "models").num_rows == 5, "five entries went, and four came"
    assert "old/b.txt" not in content(out)


def test_read_table_checks_the_schema(tmp_path):
    write(tmp_path / "out", rows=pa.table({"model": ["DCM"]}))
    with pytest.raises(LogevalError, match="column 'method' is missing"):
        tables.read_table(tmp_path / "out", "models")


def test_every_flipped_bit_and_every_cut_is_noticed(tmp_path):
    write(tmp_path)
    file = tmp_path / "models.parquet"
    whole = file.read_bytes()
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        file.write_bytes(damaged)
        with pytest.raises(LogevalError, match=r"models.parquet: is damaged .*run its stage"):
            tables.read_table(tmp_path, "models")
    for size in (0, 4, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(LogevalError, match="is damaged"):
            tables.read_table(tmp_path, "models")
    file.unlink()
    with pytest.raises(LogevalError, match="is missing"):
        tables.read_table(tmp_path, "models")
    assert tables.why(tmp_path, tables.manifest_of("fit-models", {}, [])) == f"{file}: is missing"
    write(tmp_path)
    assert tables.read_table(tmp_path, "models").equals(MODELS)


@pytest.mark.parametrize("text", ["[]", "", "{", "null", '{"stage": "fit-models"}', "\0"])
def test_a_damaged_manifest_is_an_error_and_can_be_written_again(tmp_path, text):
    write(tmp_path)
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(LogevalError, match=r"manifest.json: not a manifest"):
        tables.read_table(tmp_path, "models")
    assert tables.why(tmp_path, {}) == "its manifest.json cannot be read"
    write(tmp_path)
    assert tables.read_table(tmp_path, "models").equals(MODELS)


def test_the_same_work_is_recognised_and_other_work_is_explained(tmp_path):
    def manifest(**changes):
        return tables.manifest_of("fit-models", {"seed": 1}, [{"log": "a"}]) | changes

    with tables.staged(tmp_path) as folder:
        tables.write_manifest(folder, manifest(cpu_seconds=1.5))
    assert tables.same_work(tmp_path, manifest())
    assert tables.why(tmp_path, manifest(arguments={"seed": 2})) == "seed was 1, and is 2"
    assert tables.why(tmp_path, manifest(inputs=[])) == "its input has changed"
    assert tables.why(tmp_path, manifest(version="9")).startswith("it was made by logeval ")
    assert tables.why(tmp_path / "new", manifest()) == "there is no output yet"
    first = tables.identity(tmp_path)
    with tables.staged(tmp_path) as folder:
        tables.write_manifest(folder, manifest(cpu_seconds=2.5))
    assert tables.identity(tmp_path) == first


def test_work_that_is_done_is_tidied_up(tmp_path):
    """A process may be killed when all is in its place but the old table and its lock."""
    write(tmp_path / "out")
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = tmp_path / "out" / f".out.partial-{platform.node()}-{dead.pid}-1"
    (left / ".old").mkdir(parents=True)
    (left / ".old" / "models.parquet").write_text("old")
    half = tmp_path / "out" / f".manifest.json.partial-{platform.node()}-{dead.pid}-2"
    half.write_text("half")
    lock = tmp_path / "out" / ".lock"
    lock.write_text(f"{platform.node()}\n{dead.pid}\nevaluate\n")
    with files.partial_file(tmp_path / "out" / "manifest.json") as used:
        assert tables.same_work(tmp_path / "out", tables.manifest_of("fit-models", {}, []))
        assert used.exists()
    assert not left.exists()
    assert not half.exists()
    assert not lock.exists()


def test_a_lock_that_is_held_stays(tmp_path):
    write(tmp_path / "out")
    with locks.holding(tmp_path / "out", "evaluate"):
        tables.recover(tmp_path / "out")
        assert (tmp_path / "out" / ".lock").exists()


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    import resource

    file = tmp_path / "a.bin"
    file.write_bytes(b"old")
    pid = os.fork()
    if pid == 0:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            with files.replacing(file) as partial:
                partial.write_bytes(b"x" * 5000)
        except OSError:
            os._exit(3)
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    assert content(tmp_path) == {"a.bin": b"old"}
