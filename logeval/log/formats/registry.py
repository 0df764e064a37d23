"""Log formats by name, one line each, and which of them a file has."""

from __future__ import annotations

from logeval.errors import LogevalError, unknown_names
from logeval.log.formats import table, yandex_personalized, yandex_relpred
from logeval.log.formats.format import Format
from logeval.log.lines.line_format import LineFormat
from logeval.log.reading.source import Source

FORMATS: dict[str, Format] = {
    yandex_personalized.FORMAT.name: yandex_personalized.FORMAT,
    yandex_relpred.FORMAT.name: yandex_relpred.FORMAT,
    table.FORMAT.name: table.FORMAT,
}
GENERATED = {name: format.writer for name, format in FORMATS.items() if format.writer is not None}
AUTO = "auto"
OF_COLUMNS = table.FORMAT.name  # what a file is taken for whose columns are named


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


def format_of(source: Source, name: str = AUTO) -> Format:
    """The format of that name, or the one that a file looks like most; raises for an empty file."""
    if not source.head:
        raise LogevalError(f"{source.name}: is empty; there is nothing to ingest")
    if name != AUTO:
        return FORMATS[name]
    likeness = {each: format.likeness(source) for each, format in FORMATS.items()}
    best = max(likeness, key=likeness.__getitem__)
    if likeness[best]:
        return FORMATS[best]
    first = source.first_lines.split(b"\n", 1)[0].decode(errors="backslashreplace")
    raise LogevalError(
        f"{source.name}: the format is not recognised from its first lines ({first[:80]!r}); "
        f"name the format: {', '.join(FORMATS)}"
    )
