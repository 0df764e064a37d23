"""Files that people give besides tables: what they are, and what to do with them."""

import gzip

import pytest

import logeval
from logeval.errors import LogevalError

HEADER = "search_id,query,item,position,clicked\n"
ROWS = "s1,shoes,a,1,0\ns1,shoes,b,2,1\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 and so on", "is an Excel workbook or a zip archive; save its table as CSV"),
        (b"BZh91AY&SY", "is compressed with bzip2; unpack it"),
        (b"SQLite format 3\0", "is a database; write its table as CSV or Parquet"),
        ((HEADER + ROWS).encode("utf-16"), "is UTF-16; convert it"),
        ((HEADER + "s1,caf\xe9,a,1,0\n").encode("latin-1"), "not UTF-8.*convert it.*iconv"),
        (f"{HEADER}s1,shoes,a,-1,0\n".encode(), r"no whole number from 0 on, '-1'"),
        (b"user,time,query,item,position,clicked\nu,soon,q,a,1,0\n", "time: no times: ISO 8601"),
    ],
)
def test_what_is_no_table_is_named_with_the_remedy(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(LogevalError, match=message):
        logeval.ingest(tmp_path / "a.csv", quiet=True)


@pytest.mark.parametrize("word", ["NaN", "null", "None", "", "NA"])
def test_clicks_that_are_not_known_are_none_and_counted(tmp_path, word):
    (tmp_path / "a.csv").write_bytes(gzip.compress(f"{HEADER}{ROWS}s1,shoes,c,3,{word}\n".encode()))
    log = logeval.ingest(tmp_path / "a.csv", quiet=True)
    assert log.serps("clicks")["clicks"].to_pylist() == [[0, 1, 0]]
    assert log.counts["clicks_empty"] == 1
