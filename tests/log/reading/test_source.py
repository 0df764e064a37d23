"""Plain, .gz, .zst and standard input give the same table; damaged files are errors."""

import gzip
import io
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import logeval

GOLDEN = Path(__file__).parents[2] / "golden"
TEXT = (GOLDEN / "tiny.personalized.tsv").read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    return logeval.ingest(GOLDEN / "tiny.personalized.tsv", folder / "out", quiet=True).serps()


def compressed(tmp_path, kind):
    path = tmp_path / f"log.{kind}"
    if kind == "gz":
        path.write_bytes(gzip.compress(TEXT))
    elif kind == "two-members.gz":
        path.write_bytes(gzip.compress(TEXT[:50_000]) + gzip.compress(TEXT[50_000:]))
    elif kind == "zst":
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(TEXT)
    return path


@pytest.mark.parametrize("kind", ["gz", "two-members.gz", "zst"])
def test_compressed_files_give_the_same_table(tmp_path, kind, expected):
    path = compressed(tmp_path, kind)
    log = logeval.ingest(path, tmp_path / "out", block_size=10_000, quiet=True)
    assert log.serps().equals(expected)
    assert log.manifest["inputs"][0]["bytes"] == path.stat().st_size


def test_standard_input_gives_the_same_table(tmp_path, expected, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(gzip.compress(TEXT))

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert logeval.ingest("-", tmp_path / "out", quiet=True).serps().equals(expected)


@pytest.mark.parametrize(
    "damage",
    [
        lambda gz: gz[:-3000],
        lambda gz: gz[:-2],
        lambda gz: gz[:5],
        lambda gz: gz[:9000] + b"\x00\x01\x02\x03" * 20 + gz[9080:],
        lambda gz: gz + b"something else",
    ],
    ids=["truncated", "no checksum", "header only", "corrupt", "trailing bytes"],
)
def test_a_damaged_gz_is_an_error_with_its_offset_and_leaves_nothing(tmp_path, damage):
    path = tmp_path / "log.gz"
    path.write_bytes(damage(gzip.compress(TEXT)))
    with pytest.raises(logeval.LogevalError, match=r"log.gz: damaged gzip data before offset \d"):
        logeval.ingest(path, tmp_path / "out", quiet=True)
    assert [p.name for p in tmp_path.iterdir()] == ["log.gz"]


def test_a_truncated_zst_is_an_error(tmp_path):
    path = compressed(tmp_path, "zst")
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(logeval.LogevalError, match="damaged zstd data"):
        logeval.ingest(path, tmp_path / "out", quiet=True)


@pytest.mark.parametrize("content", [b"", gzip.compress(b"")], ids=["plain", "gz"])
def test_an_empty_file_is_an_error(tmp_path, content):
    path = tmp_path / "log.tsv"
    path.write_bytes(content)
    with pytest.raises(logeval.LogevalError, match="is empty"):
        logeval.ingest(path, tmp_path / "out", format="yandex-relpred", quiet=True)
