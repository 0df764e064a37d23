"""Ingest a piece of text, get the SERPs back as plain dicts; read a table."""

import tempfile
from contextlib import closing
from pathlib import Path

import logeval
from logeval.errors import LogevalError
from logeval.log.formats.format import Read, Reading
from logeval.log.reading.source import Source
from logeval.log.tables import formats as table


def ingest(data, fmt="auto", **options):
    """(SERPs as dicts, the log's counts) of a log given as text or bytes."""
    data = data.encode() if isinstance(data, str) else data
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "log.tsv"
        source.write_bytes(data)
        options = {"max_bad": 1.0, "quiet": True} | options
        log = logeval.ingest(source, Path(folder) / "out", format=fmt, **options)
        return log.serps().to_pylist(), log.counts


def lines(*records):
    """Lines from records whose fields are separated by blanks."""
    return "".join(record.replace(" ", "\t") + "\n" for record in records)


def adds_up(counts):
    parts = ["metadata", "queries", "clicks_matched", "clicks_repeat", "clicks_orphan", "rejected"]
    return counts["lines"] == sum(counts[part] for part in parts)


def batches(path):
    """What is read from a table, in the SERP schema; a row that is rejected is an error."""
    with tempfile.TemporaryDirectory() as folder, closing(Source(path)) as source:
        reading = Reading([source], block_size=0, folder=Path(folder))
        found = [job if isinstance(job, Read) else job() for job in table.TABLE.read(reading)]
        for read in found:
            for reject in read.rejects() if isinstance(read, Read) else ():
                raise LogevalError(f"row {reject.line + 1}: {reject.reason}")
        return [each[0] for each in found if not isinstance(each, Read)]
