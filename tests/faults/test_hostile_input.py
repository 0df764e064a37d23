"""Input that is odd, damaged or hostile: a clear error or the right result."""

import gzip
import json
import os
import resource
import signal
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from zstandard import ZstdCompressor

import logeval as le
from logeval import LogevalError
from logeval.log import inputs
from logeval.log.ingest import Ingest
from logeval.log.lines import blocks
from logeval.log.lines.line_format import Scanner
from logeval.log.queries import Query, sql_condition
from logeval.policies.registry import parse_policies
from logeval.storage import tables
from logeval.synthetic.generate import generate
from tests.faults.commands import logeval
from tests.faults.stages import LONG

GOLDEN = Path(__file__).parent.parent / "golden"
TEXT = (GOLDEN / "tiny.personalized.tsv").read_bytes()
MARK = b"\xef\xbb\xbf"


def ingested(tmp_path, content, name="log", **options):
    (tmp_path / name).write_bytes(content)
    return le.ingest(tmp_path / name, tmp_path / f"{name}.out", quiet=True, **options)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return ingested(tmp_path_factory.mktemp("log"), TEXT)


@pytest.mark.parametrize("packed", [bytes, gzip.compress, ZstdCompressor().compress])
def test_a_byte_order_mark_costs_no_record(tmp_path, log, packed):
    found = ingested(tmp_path, packed(MARK + TEXT))
    assert found.counts == log.counts
    assert found.serps().equals(log.serps())


@pytest.mark.parametrize("short", [b"", MARK, MARK[:2], b"\n"])
def test_a_file_with_hardly_a_byte_is_an_error(tmp_path, short):
    with pytest.raises(LogevalError, match=r"empty|not records|recognise"):
        ingested(tmp_path, short)


def test_a_gz_padded_with_zeros_is_read(tmp_path, log):
    """Tapes and some archives pad to whole blocks."""
    found = ingested(tmp_path, gzip.compress(TEXT) + bytes(4096))
    assert found.serps().equals(log.serps())


def test_every_damage_to_a_generated_zst_is_noticed(tmp_path):
    """Without checksums 346 of 1,000 flipped bits were read as other data."""
    generate(tmp_path / "log.tsv.zst", sessions=2000, queries=5, quiet=True)
    generate(tmp_path / "plain.tsv", sessions=2000, queries=5, quiet=True)
    content = (tmp_path / "log.tsv.zst").read_bytes()
    plain = (tmp_path / "plain.tsv").read_bytes()
    assert pa.CompressedInputStream(pa.BufferReader(content), "zstd").read() == plain
    rng = np.random.default_rng(16)
    for place in rng.integers(0, len(content), 1000):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        try:
            read = pa.CompressedInputStream(pa.BufferReader(bytes(damaged)), "zstd").read()
        except OSError:
            continue
        assert read == plain, f"byte {place}"


def test_only_numbers_reach_sql(log):
    evil = "1) OR true; --"
    for query in [(evil, None), (1, evil), (1.5, None), (1, 2, 3), ()]:
        with pytest.raises(LogevalError, match=r"is not a query|must be"):
            log.serps(queries=[query])
        with pytest.raises(LogevalError, match=r"is not a query|must be"):
            le.fit_models(log.path, ["DCM"], queries=[query], quiet=True)
    assert sql_condition([(np.int64(3), None), Query(4, 2)]) == (
        "(query_id = 3) OR (query_id = 4 AND region_id = 2)"
    )


@pytest.fixture
def small_sessions(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_SESSION", 1 << 16)
    return {"block_size": 1 << 14, "max_bad": 1.0}


def test_many_invalid_lines_are_no_session(tmp_path, log, small_sessions):
    bad = b"this is no record\n" * 20_000
    found = ingested(tmp_path, bad + TEXT, format="yandex-personalized", **small_sessions)
    assert found.serps().equals(log.serps())
    assert found.counts["rejected"] == log.counts["rejected"] + 20_000
    options = small_sessions | {"max_bad": 0.01}
    with pytest.raises(LogevalError, match="are not records, over max_bad"):
        ingested(tmp_path, bad + TEXT, "again", format="yandex-personalized", **options)


def test_invalid_lines_within_a_session_are_named(tmp_path, small_sessions):
    bad = b"this is no record\n" * 20_000
    with pytest.raises(LogevalError, match=r"followed by 0 MiB of lines that are not records"):
        ingested(tmp_path, TEXT[:500] + b"\n" + bad, format="yandex-personalized", **small_sessions)


def test_the_same_file_twice_is_refused(tmp_path):
    (tmp_path / "a.tsv").write_bytes(TEXT)
    (tmp_path / "b.tsv").symlink_to(tmp_path / "a.tsv")
    os.link(tmp_path / "a.tsv", tmp_path / "c.tsv")
    for other in ("a.tsv", "b.tsv", "c.tsv", "./a.tsv"):
        with pytest.raises(LogevalError, match=r"is the same file as .*a.tsv"):
            le.ingest([tmp_path / "a.tsv", f"{tmp_path}/{other}"], tmp_path / "out", quiet=True)


def test_the_entropy_of_lists_has_the_same_digits_every_time(log):
    found = [log.describe(5).top_queries["list_entropy"].tolist() for _ in range(5)]
    assert all(one == found[0] for one in found)


def test_a_module_in_the_current_folder_hides_no_installed_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != ""])
    before = list(sys.path)
    parse_policies(["Random"])
    assert sys.path == before
    body = "class P:\n    def recommend(self, t): pass\n    def update(self, t, A, clicks): pass\n"
    (tmp_path / "a_policy_here.py").write_text(body)
    (tmp_path / "colorsys.py").write_text(body)
    parse_policies(["a_policy_here:P"])
    assert sys.path == [*before, ""]
    with pytest.raises(LogevalError, match="there is no P in colorsys"):
        parse_policies(["colorsys:P"])


def test_models_with_lists_beyond_all_lists_are_refused(tmp_path):
    common = {"model": "PBM", "query_id": 1}
    rows = [
        common | {"parameter": "attraction", "items": [1], "value": [0.5]},
        common | {"parameter": "examination", "value": [0.5] * 100_000},
    ]
    (tmp_path / "m.json").write_text(json.dumps(rows))
    end = logeval("import-models", tmp_path / "m.json", "--out", tmp_path / "out")
    assert end.code == 2
    assert "lists have at least 1 and at most 1,000 positions" in end.said


@pytest.mark.parametrize(
    "command",
    [
        ["generate", "OUT/log.tsv", "--sessions", "10"],
        ["ingest", "LOG", "--out", "OUT"],
        ["fit-models", "MADE", "-m", "dcm", "--out", "OUT"],
        [
            "evaluate",
            "--problem",
            "B_LB(L=4,K=2,p=0.2,gap=0.1)",
            "--policy",
            "Random",
            "--out",
            "OUT",
        ],
    ],
)
def test_a_link_to_itself_as_out_is_an_error(tmp_path, log, command):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    names = {"LOG": str(GOLDEN / "tiny.personalized.tsv"), "MADE": str(log.path)}
    command = [names.get(c, c.replace("OUT", str(loop))) for c in command]
    end = logeval(*command)
    assert end.code == 2
    assert end.is_clear(), end.said
    assert loop.is_symlink()


@pytest.mark.parametrize("name", [r"$\frac$", "$", "$x$", "a$b$c", r"\$", "$\\undefined{$"])
def test_dollars_in_a_name_are_drawn_as_they_are(tmp_path, name):
    from logeval.reports.figures.canvas import new_axes, save_figure

    ax = new_axes()
    ax.plot([1, 10], [1, 10], label=name)
    ax.set_title(f"{name} on {name}")
    ax.set_xscale("log")
    ax.legend()
    save_figure(ax.figure, tmp_path / "a.svg")


def small_disk():
    """No file may grow beyond 4 kB from here on."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


@pytest.mark.parametrize(
    "stage",
    ["generate", "ingest", "fit-models", "evaluate", "plot", *(["report"] if LONG else [])],
)
def test_a_full_disk_is_an_error_and_leaves_nothing_half_written(tmp_path, log, stage):
    runs = tmp_path / "runs"
    problem = ["--problem", "B_LB(L=6,K=2,p=0.5,gap=0.4)", "--horizon", "2000", "--runs", "20"]
    evaluate = ["evaluate", *problem, "--policy", "Random", "--policy", "Oracle", "--quiet"]
    if stage in ("plot", "report"):
        assert logeval(*evaluate, "--out", runs).code == 0
    folder = tmp_path / "full"
    folder.mkdir()
    command = {
        "generate": ["generate", folder / "log.tsv", "--sessions", "2000"],
        "ingest": ["ingest", GOLDEN / "tiny.personalized.tsv", "--out", folder / "log"],
        "fit-models": [
            "fit-models",
            log.path,
            "-m",
            "dcm",
            "--top-queries",
            "5",
            "--out",
            folder / "models",
        ],
        "evaluate": [*evaluate, "--out", folder / "runs"],
        "plot": ["plot", runs, "--out", folder / "a.pdf"],
        "report": ["report", runs, "--out", folder / "report"],
    }[stage]
    end = logeval(*command, before=small_disk)
    assert end.code == 2, end.said
    assert end.is_clear(), end.said
    left = [p for p in folder.rglob("*") if p.is_file()]
    units = [p for p in left if p.parent.name == "units"]  # finished ones, which are whole
    assert all(len(pq.read_table(p)) for p in units if p.suffix == ".parquet")
    assert all(p.name == "manifest.json" or p in units for p in left), left
    assert logeval(*command).code == 0


def test_out_of_memory_says_so(tmp_path, log, monkeypatch):
    def too_much(*arguments, **options):
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    def arrange():
        Scanner.table = too_much

    command = ["ingest", GOLDEN / "tiny.personalized.tsv", "--out", tmp_path / "out"]
    end = logeval(*command, before=arrange)
    assert end.code == 2
    assert "out of memory (malloc of size 64 failed); use fewer --workers" in end.said
    assert not (tmp_path / "out").exists()
    limits = "SET memory_limit = '1MB'; SET max_temp_directory_size = '0KB';"
    with pytest.raises(LogevalError, match="of memory are not enough"), log.connect() as db:
        db.execute(f"{limits} SELECT list(i) FROM range(10000000) AS t(i)").fetchall()
    with pytest.raises(KeyboardInterrupt), log.connect():
        raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")


def test_the_checksum_of_an_unchanged_log_is_not_taken_again(tmp_path, monkeypatch):
    raw = tmp_path / "log.tsv"
    raw.write_bytes(TEXT)
    asked = Ingest(raw, tmp_path / "out")
    le.ingest(raw, tmp_path / "out", quiet=True)
    taken = []
    identity = inputs.identity
    monkeypatch.setattr(inputs, "identity", lambda path: taken.append(path) or identity(path))
    assert asked.why() is None
    assert not taken
    os.utime(raw)  # touched, and the same
    assert asked.why() is None
    assert len(taken) == 1
    raw.write_bytes(TEXT[:-2] + b"9\n")
    assert asked.why() == "its input has changed"
    assert len(taken) == 2


def test_the_checksum_of_an_unchanged_generated_log_is_not_taken_again(tmp_path, monkeypatch):
    from logeval.synthetic.generate import Generate

    settings = {"sessions": 20, "queries": 2, "seed": 0, "model": "DCM"}
    generate(tmp_path / "log.tsv", **settings, quiet=True)
    asked = Generate(tmp_path / "log.tsv", **settings)
    with monkeypatch.context() as patch:
        patch.delattr(tables, "record")
        assert asked.why() is None
    os.utime(tmp_path / "log.tsv")
    assert asked.why() is None
    (tmp_path / "log.tsv").write_text("mine")
    assert asked.why().endswith("is not the log that was written")


def test_a_recipe_may_begin_with_a_byte_order_mark(tmp_path):
    from logeval.pipeline import read_recipe

    text = b'out = "x"\n[generate]\n[fit-models]\nmodels = ["dcm"]\n'
    text += b'[evaluate]\npolicies = ["Random"]\n'
    (tmp_path / "r.toml").write_bytes(MARK + text)
    assert str(read_recipe(tmp_path / "r.toml").out) == "x"
