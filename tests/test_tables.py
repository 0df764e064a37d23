"""Tables: written whole or not at all, never over what is not ours, and checked when read."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from logeval.errors import LogevalError
from logeval.storage import files, schemas, tables
from logeval.synthetic.generate import generate

GENERATE = {"sessions": 10, "queries": 2, "overwrite": True, "quiet": True}
MODEL = {"model": "DCM", "method": "truth", "scope": "per-query", "parameter": "termination"}
ROWS = [MODEL | {"query_id": q, "value": [q / 10, 0.5]} for q in range(10)]
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
    assert place.lstat().st_mode == kind
    assert content(tmp_path) == before


def test_a_link_in_the_place_of_a_file_of_ours_is_not_replaced(tmp_path):
    write(tmp_path / "out", more=["figures/a.png"])
    for name in (tables.path_of(tmp_path / "out", "models").name, "figures"):
        (tmp_path / "out" / name).rename(tmp_path / name)
        (tmp_path / "out" / name).symlink_to(tmp_path / name)
        with pytest.raises(LogevalError, match=f"{name}: was not written by logeval"):
            write(tmp_path / "out", more=["figures/a.png"])
        (tmp_path / "out" / name).unlink()
        (tmp_path / name).rename(tmp_path / "out" / name)


@pytest.mark.parametrize("name", [".a.txt.partial", ".a.txt.lock"])
def test_a_link_put_in_the_place_of_the_temporary_file_is_not_followed(tmp_path, name):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / name).symlink_to(precious)
    with contextlib.suppress(OSError):
        files.write_text(tmp_path / "a.txt", "x")
    assert precious.read_text() == "precious"


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_uses_is_not(tmp_path):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom logeval.storage import files\n"
        "with files.replacing(Path(sys.argv[1])) as partial:\n    os._exit(9)"
    )
    target = tmp_path / "a.txt"
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    assert {p.name for p in tmp_path.iterdir()} == {".a.txt.partial", ".a.txt.lock"}
    with files.replacing(target) as mine:
        mine.write_text("mine")
        with pytest.raises(LogevalError, match=r"at work here"), files.partial_file(target, 0.1):
            pass
        files.remove_abandoned(tmp_path)
        assert mine.read_text() == "mine"
    assert content(tmp_path) == {"a.txt": b"mine"}
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    files.remove_abandoned(tmp_path)
    assert content(tmp_path) == {"a.txt": b"mine"}


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
        tables.write_manifest(staging, tables.manifest_of("fit-models", {}, []))
        assert not tables.there_is(out)
    assert {p.name for p in out.iterdir()} == {"whole", "manifest.json"}


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


@pytest.mark.parametrize("name", ["models-{crc32}.parquet", "figures/a.png"])
def test_nothing_is_replaced_that_logeval_did_not_write(tmp_path, name):
    tables.write_parquet(MODELS, tmp_path / "ours")
    name = name.format(crc32=files.crc32(tmp_path / "ours"))
    (tmp_path / "ours").unlink()
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
    table = tables.path_of(tmp_path, "models").name
    names = {table, "manifest.json", "figures/c.png", "notes.txt"}
    assert set(content(tmp_path)) == names
    (tmp_path / "figures" / "mine.png").write_text("mine")
    write(tmp_path, rows=MODELS.slice(5), more=["figures/d.png"])
    table = tables.path_of(tmp_path, "models").name
    names = {table, "manifest.json", "figures/d.png", "figures/mine.png", "notes.txt"}
    assert set(content(tmp_path)) == names


def test_a_commit_is_one_rename_of_the_manifest(tmp_path, monkeypatch):
    """Before it there is the old table, after it the new one, whoever is killed where."""
    replace, seen = os.replace, []
    write(tmp_path, more=["figures/old.png"])

    def watched(source, target):
        before = tables.read_table(tmp_path, "models").num_rows
        replace(source, target)
        after = tables.read_table(tmp_path, "models").num_rows
        seen.append((Path(target).name, before, after))

    monkeypatch.setattr(os, "replace", watched)
    write(tmp_path, rows=MODELS.slice(5), more=["figures/new.png"])
    table = tables.path_of(tmp_path, "models").name
    assert seen == [(table, 10, 10), ("manifest.json", 10, 5), ("new.png", 5, 5)]
    assert set(content(tmp_path)) == {table, "manifest.json", "figures/new.png"}


@pytest.mark.parametrize("steps", range(6))
def test_a_writer_that_is_killed_between_any_two_steps(tmp_path, steps):
    """The next one ends what was committed, and takes back what was not."""
    write(tmp_path, more=["figures/old.png", "old/b.txt"])
    before, left = content(tmp_path), steps

    def killed():
        nonlocal left
        left -= 1
        if left < 0:
            os._exit(9)

    if os.fork() == 0:
        sys.addaudithook(lambda event, args: event in ("os.rename", "os.remove") and killed())
        write(tmp_path, rows=MODELS.slice(5), more=["figures/new.png"])
        os._exit(0)
    os.wait()
    rows = tables.read_table(tmp_path, "models")
    tables.recover(tmp_path)
    assert tables.read_table(tmp_path, "models").equals(rows)
    if rows.num_rows == 10:
        assert content(tmp_path) == before
    else:
        table = tables.path_of(tmp_path, "models").name
        assert set(content(tmp_path)) == {table, "manifest.json", "figures/new.png"}


def test_a_folder_of_another_version_is_named_and_left_alone(tmp_path):
    write(tmp_path)
    manifest = tables.read_manifest(tmp_path) | {"version": "0.9"}
    del manifest["format"], manifest["checksum"]
    manifest["checksum"] = tables._own_checksum(manifest)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    before = content(tmp_path)
    message = r"was written by another version of logeval \(0.9\); write it again, into another"
    for use in (tables.read_manifest, lambda out: tables.read_table(out, "models"), write):
        with pytest.raises(LogevalError, match=message):
            use(tmp_path)
    assert "another version" in tables.why(tmp_path, manifest)
    assert content(tmp_path) == before


def test_read_table_checks_the_schema(tmp_path):
    write(tmp_path / "out", rows=pa.table({"model": ["DCM"]}))
    with pytest.raises(LogevalError, match="column 'method' is missing"):
        tables.read_table(tmp_path / "out", "models")


def test_every_flipped_bit_and_every_cut_is_noticed(tmp_path):
    write(tmp_path)
    file = tables.path_of(tmp_path, "models")
    whole = file.read_bytes()
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        file.write_bytes(damaged)
        with pytest.raises(LogevalError, match=r"models-.*parquet: is damaged .*run its stage"):
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
def test_a_damaged_manifest_is_an_error_and_nothing_takes_its_place(tmp_path, text):
    write(tmp_path)
    (tmp_path / "manifest.json").write_text(text)
    before = content(tmp_path)
    for use in (lambda out: tables.read_table(out, "models"), write):
        with pytest.raises(LogevalError, match=r"manifest.json: not a manifest.*move its folder"):
            use(tmp_path)
    assert tables.why(tmp_path, {}) == "its manifest.json cannot be read"
    assert content(tmp_path) == before


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
    """A process may be killed when all is in its place but what it staged and its lock."""
    write(tmp_path / "out")
    (tmp_path / "out" / tables.STAGING).mkdir()
    (tmp_path / "out" / tables.STAGING / "half").write_text("half")
    (tmp_path / "out" / ".lock").touch()
    manifest = tables.manifest_of("fit-models", {}, [])
    with files.holding(tmp_path / "out", "evaluate"):
        assert tables.same_work(tmp_path / "out", manifest)
        assert (tmp_path / "out" / tables.STAGING / "half").exists()
        assert (tmp_path / "out" / ".lock").exists()
    assert tables.same_work(tmp_path / "out", manifest)
    assert set(content(tmp_path / "out")) == {
        "manifest.json",
        tables.path_of(tmp_path / "out", "models").name,
    }


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
