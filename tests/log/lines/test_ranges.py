"""Ranges of a plain file give the blocks that reading it from its start gives."""

import random

import pytest

from logeval.log import inputs
from logeval.log.formats.registry import line_format
from logeval.log.lines import blocks as ranges
from logeval.log.lines.blocks import session_blocks
from logeval.log.reading.source import Source
from tests.faults.test_fuzz import LINE_FORMATS, damaged, excerpt


def from_the_start(file, ends, size):
    source = Source(file)
    try:
        return [block.tobytes() for block in session_blocks(source, ends, size)]
    finally:
        source.close()


def by_ranges(file, ends, size):
    parts = ranges.byte_ranges(file, ends, size)
    blocks = [
        block.tobytes() for part in parts for block in ranges.range_blocks(file, part, ends, size)
    ]
    return parts, blocks


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "byte order mark"])
@pytest.mark.parametrize("name", LINE_FORMATS)
def test_ranges_have_the_blocks_of_the_whole_file(name, mark, tmp_path, monkeypatch):
    rng = random.Random(name)
    file, ends = tmp_path / "log.tsv", line_format(name).kernels.ends
    several = 0
    for case in range(150):
        text = damaged(excerpt(name, rng, rng.choice([40, 200])), rng)
        if text.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf")):
            continue
        file.write_bytes(mark + text)
        monkeypatch.setattr(ranges, "RANGE_BLOCKS", rng.choice([1, 2, 4]))
        size = rng.choice([300, 600, 2000])
        parts, blocks = by_ranges(file, ends, size)
        assert blocks == from_the_start(file, ends, size), f"case {case}, {size}: {text!r}"
        assert sum(part.bytes(file.stat().st_size) for part in parts) == len(text)
        several += len(parts) > 1
    assert several > 75


def test_lines_that_are_no_records_or_too_long_are_not_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(ranges, "RANGE_BLOCKS", 1)
    monkeypatch.setattr("logeval.log.lines.blocks.MAX_LINE", 500)
    rng, name, several = random.Random(1), LINE_FORMATS[0], 0
    ends = line_format(name).kernels.ends
    for case in range(30):
        pieces = [excerpt(name, rng, 8), b"no record\n" * 60, b"x" * rng.randrange(3000)]
        text = b"\n".join(rng.choice(pieces) for _ in range(20))
        (tmp_path / "log.tsv").write_bytes(text)
        size = rng.choice([200, 700])
        parts, blocks = by_ranges(tmp_path / "log.tsv", ends, size)
        assert blocks == from_the_start(tmp_path / "log.tsv", ends, size), f"case {case}"
        assert len(parts) < len(text) // size
        several += len(parts) > 1
    assert several > 15


def test_the_checksums_of_ranges_are_those_of_what_is_read(tmp_path, monkeypatch):
    rng = random.Random(5)
    file, ends = tmp_path / "log.tsv", line_format("yandex-relpred").kernels.ends
    file.write_bytes(b"\xef\xbb\xbf" + excerpt("yandex-relpred", rng, 200))
    monkeypatch.setattr(ranges, "RANGE_BLOCKS", 1)
    parts = ranges.byte_ranges(file, ends, 300)
    assert len(parts) > 5
    read = [crc32_of(ranges.range_blocks(file, part, ends, 300)) for part in parts]
    for chunk in (7, 250, 1000, 1 << 20):
        monkeypatch.setattr(ranges, "CHUNK", chunk)
        assert ranges.checksums(file, parts) == (inputs.identity(file), read)


def crc32_of(blocks):
    while True:
        try:
            next(blocks)
        except StopIteration as end:
            return end.value
