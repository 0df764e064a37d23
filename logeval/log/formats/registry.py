"""Log formats by name, one line each, and which of them a file has."""

from __future__ import annotations

from collections.abc import Mapping

from logeval.errors import LogevalError, printable, unknown_names
from logeval.log.formats import yandex_personalized, yandex_relpred
from logeval.log.formats.format import Format
from logeval.log.lines.line_format import LineFormat
from logeval.log.reading.source import Source
from logeval.log.tables import formats, records
from logeval.log.tables.frame import Frame, open_table
from logeval.log.tables.roles import NAME_THEM, check_almost
from logeval.running.own_code import extend

FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        yandex_personalized.FORMAT,
        yandex_relpred.FORMAT,
        formats.LONG,
        formats.TABLE,
        formats.COUNTS,
        formats.PLACEMENTS,
        records.UBI,
        records.METARANK,
        formats.EXPEDIA,
        formats.BAIDU,
        formats.BAIDU_RAW,
    )
}


def _take(name: str, format: Format) -> None:
    if not isinstance(format, Format):
        raise LogevalError(f"{name} is no format; make it a logeval.log.formats.format.Format")
    FORMATS.setdefault(format.name, format)


extend("logeval.formats", _take)
GENERATED = {name: format.writer for name, format in FORMATS.items() if format.writer is not None}
AUTO = "auto"


def check_format(name: str) -> None:
    """Raise for an unknown format name."""
    known = (AUTO, *FORMATS)
    if name not in known:
        raise unknown_names("format", [name], known)


def line_format(name: str) -> LineFormat:
    """The format of lines of that name."""
    format = FORMATS[name]
    assert isinstance(format, LineFormat)
    return format


def format_of(
    source: Source | Frame, name: str = AUTO, columns: Mapping[str, str] | None = None
) -> Format:
    """The format of that name, or the one that a file looks like most; raises for an empty file.

    ``columns`` are those that the user has named.
    """
    named = isinstance(source, Frame) or name != AUTO  # else only blanks are nothing, too
    if not (source.head if named else source.head.strip()):
        raise LogevalError(f"{source.name}: is empty; there is nothing to ingest")
    if name != AUTO:
        return FORMATS[name]
    columns = columns or {}
    tables = bool(columns) or isinstance(source, Frame)
    best, most = None, 0.0
    for format in FORMATS.values():
        if (format.columns or not tables) and most < 1:
            likeness = format.likeness(source, columns)
            best, most = (format, likeness) if likeness > most else (best, most)
    if best is not None:
        return best
    table = open_table(source)
    table.sample()  # raises for a file that is damaged
    check_almost(table, columns)
    raise LogevalError(
        f"{source.name}: the format is not recognised from its first line "
        f"({printable(table.names)[:80]!r}); name the format: {', '.join(FORMATS)}; or, if it has "
        f"columns, {NAME_THEM}"
    )
