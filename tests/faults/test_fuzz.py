"""Readers of other people's files, fed with damaged ones: an error of ours, or a result.

What was read is compared with an independent reader where there is one. ``make faults`` takes
over a million cases, ``make test`` a seeded few thousand.
"""

import functools
import gzip
import json
import random
import warnings
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard

import logeval as le
from logeval.clicks.collection import models_of_json, read_models
from logeval.errors import LogevalError
from logeval.features.table import read_features
from logeval.log.formats.registry import FORMATS, line_format
from logeval.log.lines.blocks import session_blocks
from logeval.log.lines.line_format import LineFormat, Scanner
from logeval.log.lines.scan import LINES
from logeval.log.reading.source import Source
from logeval.pipeline import check_together, read_recipe, records
from logeval.replay.target_tables import read_target_table
from tests.faults.stages import LONG
from tests.log.helpers import batches
from tests.log.slow_parser import parse

GOLDEN = Path(__file__).parent.parent / "golden"
LINE_FORMATS = [name for name, format in FORMATS.items() if isinstance(format, LineFormat)]
TOKENS = [
    b"\t", b"\n", b"\r\n", b",", b"0", b"-1", b"9" * 19, b"9" * 30, b"1e9", b"nan", b"inf", b"null",
    b"[]", b"{}", b'"', b"'", b"\\", b"\0", b"\xff", b"\xef\xbb\xbf", b"Q", b"C", b"T", b"M", b"$",
    b"=", b"true", b"1.5", b" ", b"#", b"[", b"]", b"--", b";", b"\xc3\xa9", b"../", b"a" * 300,
]  # fmt: skip


def cases(few, many):
    return many if LONG else few


def damaged(content, rng):
    """A few changes anywhere: bytes, tokens, pieces moved, cut or doubled."""
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        if not content:
            break
        a = rng.randrange(len(content))
        b = min(a + rng.choice([1, 2, 5, 20, 200]), len(content))
        match rng.randrange(6):
            case 0:
                content[a] ^= 1 << rng.randrange(8)
            case 1:
                content[a:b] = rng.choice(TOKENS)
            case 2:
                content[a:a] = rng.choice(TOKENS)
            case 3:
                del content[a:b]
            case 4:
                content[a:a] = content[a:b]
            case 5:
                del content[a : len(content) if rng.random() < 0.2 else b]
    return bytes(content)


@functools.cache
def golden_lines(fmt):
    return (GOLDEN / f"tiny.{fmt.removeprefix('yandex-')}.tsv").read_bytes().split(b"\n")


def excerpt(fmt, rng, lines=40):
    text = golden_lines(fmt)
    start = rng.randrange(len(text) - lines)
    return b"\n".join(text[start : start + lines]) + b"\n"


@pytest.mark.parametrize("fmt", LINE_FORMATS)
def test_logs_are_read_as_the_slow_parser_reads_them(fmt, tmp_path):
    rng = random.Random(fmt)
    format = line_format(fmt)
    scanner = Scanner(format)
    file = tmp_path / "log"
    for case in range(cases(80, 300_000)):
        text = damaged(excerpt(fmt, rng, rng.choice([2, 5, 40])), rng)
        if text.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
            continue
        file.write_bytes(text)
        source = Source(file)
        serps, lines, size = [], 0, rng.choice([100, 1000, 10**6])
        for block in session_blocks(source, format.kernels.ends, size):
            lines += int(scanner.scan(block)[LINES])
            serps += scanner.table().to_pylist()  # the scanner uses its memory again
        source.close()
        expected, expected_counts = parse(text.removeprefix(b"\xef\xbb\xbf"), fmt)
        assert serps == expected, f"case {case}: {text!r}"
        assert lines == expected_counts["lines"], f"case {case}: {text!r}"


def zstd(text):
    return zstandard.ZstdCompressor(write_checksum=True).compress(text)


def packed(kind, text):
    return gzip.compress(text, 1) if kind == "gz" else zstd(text)


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_compressed_files_are_read_whole_or_not_at_all(kind, tmp_path):
    rng = random.Random(kind)
    file = tmp_path / "log"
    texts = [excerpt(LINE_FORMATS[0], rng) for _ in range(50)]
    whole = [(text, packed(kind, text)) for text in texts]
    for case in range(cases(250, 300_000)):
        text, content = rng.choice(whole)
        content = damaged(content, rng)
        file.write_bytes(content)
        read, expected = _decompressed(file), _independently(kind, content)
        if content[:2] == b"\x1f\x8b" or content[:4] == b"\x28\xb5\x2f\xfd":
            assert read == expected or (read is not None and text.startswith(read) and not read), (
                f"case {case}: {content!r}"
            )
            assert read in (None, text, b"", *([expected] if expected else [])), f"case {case}"


def _decompressed(file):
    buffer = np.empty(1 << 20, np.uint8)
    try:
        with closing(Source(file)) as source:
            return buffer[: source.readinto(buffer)].tobytes()
    except LogevalError:
        return None


def _independently(kind, content):
    try:
        if kind == "gz":
            return gzip.decompress(content).removeprefix(b"\xef\xbb\xbf")
        # not read(), which loses its memory if it fails: after 300,000 cases fork() finds no more
        buffer, n = memoryview(bytearray(1 << 20)), 0
        stream = pa.CompressedInputStream(pa.BufferReader(content), "zstd")
        while read := stream.readinto(buffer[n:]):
            n += read
        return bytes(buffer[:n])
    except (OSError, EOFError, zlib.error):
        return None


def serps_csv():
    frame = pd.DataFrame(
        {
            "query_id": [1, 1, 2], "items": ["1 2 3", "2 1 3", "7 8 9"],
            "clicks": ["0 1 0", "0 0 0", "1 1 0"], "session_id": [1, 2, 3], "day": [1, 2, 3],
        }
    )  # fmt: skip
    return frame.to_csv(index=False).encode()


def serps_parquet(tmp_path):
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.concat_tables(batches(_written(tmp_path, serps_csv()))), sink)
    return sink.getvalue().to_pybytes()


def _written(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    return tmp_path / "file"


MODEL_ROWS = [
    {"model": "PBM", "query_id": 1, "parameter": "attraction", "items": [1, 2, 3, 4],
     "value": [0.1, 0.2, 0.3, 0.4]},
    {"model": "PBM", "query_id": 1, "parameter": "examination", "value": [1.0, 0.5, 0.3]},
]  # fmt: skip
RECIPE = """out = "x"
seed = 3
title = "t"
[generate]
sessions = 300
queries = 3
[ingest]
max_bad = 0.01
[fit-models]
models = ["DCM", "PBM"]
top_queries = 2
[evaluate]
policies = ["Random", "dcmKL-UCB", "RankedExp3(gamma=0.1)"]
horizon = 10
runs = 2
[report]
style = "paper"
"""
TARGET = "query,rank,item,probability\n" + "".join(
    f"7,{rank},{item},0.5\n" for rank in (1, 2) for item in (1, 2)
)


def read_and_check_recipe(file):
    check_together(records(read_recipe(file)))


READERS = {
    "table.csv": (lambda tmp: serps_csv(), batches, 200),
    "table.parquet": (serps_parquet, batches, 1200),
    "models.json": (
        lambda tmp: json.dumps({"rows": MODEL_ROWS}).encode(),
        lambda file: models_of_json(file.read_bytes().decode(errors="replace"), str(file)),
        200,
    ),
    "recipe.toml": (lambda tmp: RECIPE.encode(), read_and_check_recipe, 200),
    "target.csv": (lambda tmp: TARGET.encode(), read_target_table, 200),
}


@pytest.mark.parametrize("name", list(READERS))
def test_a_reader_raises_nothing_but_our_error(name, tmp_path):
    content, read, few = READERS[name]
    whole = content(tmp_path)
    read(_written(tmp_path, whole))
    rng = random.Random(name)
    refused = []
    for case in range(cases(few, 100_000)):
        changed = damaged(whole, rng)
        file = _written(tmp_path, changed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(file)
        except LogevalError as error:
            refused.append(str(error).strip())
        except Exception as error:
            raise AssertionError(f"case {case}: {error!r} from {changed!r}") from error
    assert refused
    assert not [text for text in refused if "\n" in text]


def test_features_with_a_wrong_manifest_raise_nothing_but_our_error(tmp_path):
    """The tables are protected by their checksums; the manifest is text that people edit."""
    from logeval.synthetic.generate import generate

    generate(tmp_path / "log.tsv", sessions=200, queries=2, taste=1.0, users=20, quiet=True)
    log = le.ingest(tmp_path / "log.tsv", tmp_path / "log", quiet=True)
    le.make_features(log, top_queries=2, dim=2, out=tmp_path / "features", quiet=True)
    manifest = tmp_path / "features" / "manifest.json"
    whole, rng = manifest.read_bytes(), random.Random("features")
    for case in range(cases(100, 50_000)):
        manifest.write_bytes(damaged(whole, rng))
        try:
            features = read_features(tmp_path / "features")
            assert features.items.num_rows
        except LogevalError:
            continue
        except Exception as error:
            raise AssertionError(f"case {case}: {error!r}") from error


def test_models_with_a_wrong_manifest_raise_nothing_but_our_error(tmp_path):
    models_of_json(json.dumps({"rows": MODEL_ROWS})).write(tmp_path / "models")
    manifest = tmp_path / "models" / "manifest.json"
    whole, rng = manifest.read_bytes(), random.Random("models")
    for case in range(cases(100, 50_000)):
        manifest.write_bytes(damaged(whole, rng))
        try:
            read_models(tmp_path / "models")
        except LogevalError:
            continue
        except Exception as error:
            raise AssertionError(f"case {case}: {error!r}") from error
