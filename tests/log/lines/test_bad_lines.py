"""Lines that are no records are counted, kept aside with their reason, and limited."""

from collections import Counter

import numpy as np
import pytest

import logeval
from logeval.log import rejects
from logeval.log.formats.registry import line_format
from logeval.log.lines.fields import MAX_LINE
from logeval.log.reading.parts import write_parts
from logeval.log.rejects import Reject
from tests.log.helpers import adds_up

GOOD_P = b"1\t0\tQ\t0\t5\t9\t11,1\t12,2"
GOOD_R = b"1\t0\tQ\t5\t0\t11\t12"
MANY = b"\t".join(b"%d" % i for i in range(51))

BAD_PERSONALIZED = [
    (b"", "empty line"),
    (b"1\t0\tQ\t0\t5", "wrong number of fields"),
    (b"1\tM\t3", "wrong number of fields"),
    (b"1\tM\t3\t4\t5", "wrong number of fields"),
    (b"1\t3\tC\t0\t11\t12", "wrong number of fields"),
    (b"1", "wrong number of fields"),
    (b"1\t0\tQ\t0\t5\t9", "empty list of items"),
    (b"1\t0\tQ\t0\t5\t9\t", "empty list of items"),
    (b"1\t0\tQ\t0\t5\t9\t11,1\t", "not a number where one is due"),
    (b"1\t0\tQ\t0\t5\t9\t11,1\t\t12,1", "not a number where one is due"),
    (b"1\t0\tQ\t0\t5\t9\t11", "not a number where one is due"),
    (b"1\t0\tQ\t0\t5\tterm\t11,1", "not a number where one is due"),
    (b"x\t0\tQ\t0\t5\t9\t11,1", "not a number where one is due"),
    (b"1\t-3\tC\t0\t11", "not a number where one is due"),
    (b"1\t3.5\tC\t0\t11", "not a number where one is due"),
    (b"1\t3\tX\t0\t11", "unknown record type"),
    (b"1\t3\tQQ\t0\t5\t9\t11,1", "unknown record type"),
    (b"1\t9223372036854775808\tC\t0\t11", "integer over 2^63 - 1"),
    (b"1\t3\tC\t0\t99999999999999999999999", "integer over 2^63 - 1"),
    (b"1\t3\tC\t0\t1\x001", "NUL byte"),
    (b"1\t3\tC\t0\t\xff\xfe", "not UTF-8"),
    (b"1\t0\tQ\t0\t5\t9\t" + MANY.replace(b"\t", b",1\t") + b",1", "more than 50 items"),
    (b"1\t3\tC\t0\t1" + b"0" * 10_000_000, f"line over {MAX_LINE} bytes"),
]
BAD_RELPRED = [
    (b"1\t0\tQ\t5", "wrong number of fields"),
    (b"1\t0\tQ\t5\t0", "empty list of items"),
    (b"1\t0\tQ\t5\t0\t", "empty list of items"),
    (b"1\t0\tQ\t5\t0x\t11", "not a number where one is due"),
    (b"1\t0\tT\t5\t0\t11", "unknown record type"),
    (b"1\tM\t1\t2", "not a number where one is due"),
    (b"1\t3\tC\t11\t12", "wrong number of fields"),
    (b"1\t0\tQ\t5\t0\t" + MANY, "more than 50 items"),
]
CASES = [("yandex-personalized", GOOD_P, *case) for case in BAD_PERSONALIZED]
CASES += [("yandex-relpred", GOOD_R, *case) for case in BAD_RELPRED]


@pytest.mark.parametrize(
    ("fmt", "good", "bad", "reason"), CASES, ids=[f"{c[0][7:]}-{i}" for i, c in enumerate(CASES)]
)
def test_a_bad_line_is_set_aside_with_its_number_and_reason(tmp_path, fmt, good, bad, reason):
    source = tmp_path / "log.tsv"
    source.write_bytes(b"\n".join([good, bad, good]) + b"\n")
    log = logeval.ingest(source, tmp_path / "out", format=fmt, max_bad=0.5, quiet=True)
    assert log.counts["rejected"] == 1
    assert log.counts["queries"] == 2
    assert adds_up(log.counts)
    header, reject = (tmp_path / "out" / "rejects.tsv").read_text().splitlines()
    assert header == "file\tline\treason\ttext"
    assert reject.split("\t")[:3] == [str(source), "2", reason]
    assert len(reject) < 1000


def test_the_largest_integer_is_read(tmp_path):
    source = tmp_path / "log.tsv"
    source.write_bytes(
        b"9223372036854775807\t0\tQ\t5\t0\t9223372036854775807\t0000000000000000000007\n"
    )
    log = logeval.ingest(source, tmp_path / "out", quiet=True)
    assert log.serps()["items"].to_pylist() == [[2**63 - 1, 7]]


def test_too_many_bad_lines_stop_the_run_and_leave_nothing(tmp_path):
    source = tmp_path / "log.tsv"
    source.write_bytes(GOOD_R + b"\n" + b"1\t3\tC\t11\n" * 97 + b"oops\n" + b"1\t3\tC\tx\n")
    with pytest.raises(logeval.LogevalError, match=r"2 of 100 lines \(2.0%\).*line 99.*max_bad"):
        logeval.ingest(source, tmp_path / "out", quiet=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.tsv"]
    log = logeval.ingest(source, tmp_path / "out", max_bad=0.02, quiet=True)
    assert log.counts["rejected"] == 2


def test_a_long_file_is_given_up_early_but_not_by_its_first_lines(monkeypatch):
    """With the first three bad lines, numbered over blocks."""
    monkeypatch.setattr(rejects, "CHECK_BAD_AFTER", 10)
    counts = rejects.Tally("log.tsv", 0.5)
    bad = [Reject(line, f"reason {line}", "") for line in range(4)]
    assert counts.add(Counter(lines=10, rejected=9), bad[:2]) == 0
    with pytest.raises(logeval.LogevalError) as error:
        counts.add(Counter(lines=5, rejected=4), bad)
    said = "13 of 15 lines (86.7%) are not records, over max_bad = 0.5 "
    assert said + "(line 1: reason 0; line 2: reason 1; line 11: reason 0);" in str(error.value)


def test_line_numbers_count_over_blocks_and_workers(tmp_path):
    good = b"".join(b"%d\t0\tQ\t5\t0\t11\n" % i for i in range(200))
    source = tmp_path / "log.tsv"
    source.write_bytes(good + b"bad\n" + good + b"worse\n")
    logeval.ingest(source, tmp_path / "out", workers=2, block_size=100, quiet=True)
    rows = (tmp_path / "out" / "rejects.tsv").read_text().splitlines()[1:]
    assert [row.split("\t")[1::2] for row in rows] == [["201", "bad"], ["402", "worse"]]


def test_bad_lines_of_a_block_stay_when_the_next_ones_are_parsed(tmp_path):
    texts = [b"bad\n1\t0\tC\t5\n", b"1\t0\tC\t5\nworse\n", b"1\t0\tC\t5\n" * 2 + b"worst\n"]
    blocks = [np.array(list(text), np.uint8) for text in texts]
    parts = (tmp_path / f"{i}.parquet" for i in range(3))
    jobs = line_format("yandex-relpred").jobs(blocks)
    written = list(write_parts(jobs, lambda: next(parts), 1))
    found = [[(bad.line, bad.text) for bad in block.rejects()] for block in written]
    assert found == [[(0, "bad")], [(1, "worse")], [(2, "worst")]]
