"""``ingest``: raw log -> serps."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from logeval.errors import LogevalError, visible
from logeval.stage import (
    Arg,
    Manifest,
    Overwrite,
    Quiet,
    Scheduler,
    Stage,
    function,
    stage,
)

if TYPE_CHECKING:
    from logeval.log.log import Log

MAX_WORKERS = 8  # each takes about 90 MB; all of it stays under 1.2 GiB


def pairs_of(texts: Iterable[str]) -> dict[str, str]:
    """``query_id=qid``s of the command line."""
    pairs = {}
    for text in texts:
        ours, sign, theirs = text.partition("=")
        if not (ours and sign and theirs):
            raise LogevalError(f"column map {text}: write it as our column=yours, as query_id=qid")
        pairs[ours] = theirs
    return pairs


@stage(
    "ingest",
    example="logeval ingest train.gz --out data/yandex",
    again="logeval ingest LOG --out {folder} --overwrite",
)
class Ingest(Stage["Log"]):
    """Parse search logs into a Parquet table of SERPs; count what is kept and what is dropped.

    ``logs`` are plain, .gz or .zst files. Lines that are no records go to ``out``/rejects.tsv; over
    ``max_bad`` of them is an error, and no table is left. ``column_map`` ({"query_id": "qid"})
    names the columns of a file in format ``table``. The same input and arguments again do nothing.
    With a ``scheduler`` files, and ranges of plain ones, are shared out to the workers of that Dask
    cluster, which must see ``logs`` and ``out`` under the same paths.
    """

    logs: Annotated[
        str | Path | Sequence[str | Path],
        Arg("Log files: plain, .gz or .zst; - is standard input.", "input", in_recipe=True),
    ]
    out: Annotated[Path | str, Arg("Folder for the table.", "output", option="--out")]
    _: KW_ONLY
    format: Annotated[str, Arg("auto, yandex-personalized, yandex-relpred or table.")] = "auto"
    max_bad: Annotated[float, Arg("Share of lines that may be rejected.", least=0, most=1)] = 0.01
    workers: Annotated[
        int | None,
        Arg(
            "Threads; by default one per core.",
            "running",
            least=1,
            most=MAX_WORKERS,
            in_recipe=True,
        ),
    ] = None
    column_map: Annotated[
        Mapping[str, str],
        Arg(
            "For tables: our column=yours, as query_id=qid; repeatable.",
            option="--map",
            parse=pairs_of,
        ),
    ] = field(default_factory=dict)
    scheduler: Scheduler = None
    overwrite: Overwrite = False
    quiet: Quiet = False
    block_size: Annotated[
        int | None, Arg("Bytes read at a time.", "running", on_command_line=False)
    ] = None

    def check(self) -> None:
        """The format, and what goes with it."""
        from logeval.log.formats.registry import AUTO, FORMATS, OF_COLUMNS, check_format

        check_format(self.format)
        if self.column_map and self.format == AUTO:
            self._set("format", OF_COLUMNS)
        if self.column_map and not FORMATS[self.format].columns:
            raise LogevalError(
                f"a column map is for tables; a log in format {self.format} has no columns"
            )

    @property
    def paths(self) -> list[str | Path]:
        """The files, or - for standard input."""
        one = isinstance(self.logs, str | Path)
        return [self.logs] if one else list(self.logs)  # type: ignore[list-item,arg-type]

    @property
    def folder(self) -> Path:
        """Where the table goes."""
        return Path(self.out)

    def run(self) -> "Log":
        """Read the logs, unless that was done before."""
        from logeval.log import rejects
        from logeval.log.ingestion import write_log
        from logeval.log.inputs import is_stream
        from logeval.log.log import load
        from logeval.storage import tables

        out = self.folder
        self.check_inputs()
        if not self.overwrite and tables.there_is(out):
            if not any(map(is_stream, self.paths)) and self.why() is None:
                if not self.quiet:
                    done = f"{out}: up to date, made from the same input; nothing to do"
                    print(visible(done), file=sys.stderr)
                return load(out)
            raise LogevalError(
                f"{out}: holds another table already; choose another folder, or replace it with "
                "overwrite=True"
            )
        if not self.overwrite:
            tables.check_free(out, ("serps", rejects.FILE))
        write_log(self)
        log = load(out)
        for caution in log.cautions():
            print(visible(f"warning: {out}: {caution}"), file=sys.stderr)
        return log

    def check_inputs(self) -> None:
        """Raise unless the files can be read."""
        from logeval.log.inputs import check_readable

        check_readable(self.paths)

    def why(self) -> str | None:
        """Why ``out`` is not what is made of these files; None if it is."""
        from logeval.log.inputs import known_inputs
        from logeval.storage import tables

        self.check_inputs()
        inputs: list[Manifest] | None = known_inputs(self.paths, self.folder)
        if inputs is None:
            return "its input has changed"
        return tables.why(self.out, tables.manifest_of(self.NAME, self.arguments(), inputs))


ingest = function(Ingest)
