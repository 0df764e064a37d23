"""``ingest``: raw log -> serps."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

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
    from pandas import DataFrame as DataFrame
    from pyarrow import RecordBatch as RecordBatch
    from pyarrow import Table as Table

    from logeval.log.log import Log

MAX_WORKERS = 8  # each takes about 90 MB; all of it stays under 1.2 GiB
MAX_POSITIONS = 50
LOOK_ROWS = 1_000  # of a dry run

OneLog = Union[str, Path, "DataFrame", "Table", "RecordBatch"]


def pairs_of(texts: Iterable[str]) -> dict[str, str]:
    """``query=search_term``s of the command line."""
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

    ``logs`` are plain, .gz or .zst files, or data frames (pandas, polars, Arrow). Lines that are no
    records go to ``out``/rejects.tsv; over ``max_bad`` of them is an error, and no table is left.
    ``columns`` ({"query": "search_term"}) names the columns of a table that were not recognised.
    Without ``out`` the table is in a temporary folder, which is gone with the log. The same input
    and arguments again do nothing. With a ``scheduler`` files, and ranges of plain ones, are shared
    out to the workers of that Dask cluster, which must see ``logs`` and ``out`` under the same
    paths.
    """

    logs: Annotated[
        OneLog | Sequence[OneLog],
        Arg("Log files: plain, .gz or .zst; - is standard input.", "input", in_recipe=True),
    ]
    out: Annotated[
        Path | str | None, Arg("Folder for the table.", "output", option="--out", needed=True)
    ] = None
    _: KW_ONLY
    format: Annotated[str, Arg("auto, or its name; docs/formats.md has all.")] = "auto"
    columns: Annotated[
        Mapping[str, str],
        Arg(
            "What a column of a table is: ours=yours, as query=search_term; repeatable.",
            option="--map",
            parse=pairs_of,
        ),
    ] = field(default_factory=dict)
    actions: Annotated[
        Sequence[str] | None,
        Arg("UBI: an action that counts as a click; click, if none is named.", option="--action"),
    ] = None
    views: Annotated[
        Sequence[str] | None,
        Arg("UBI: an action that says what was shown; impression, if none.", option="--view"),
    ] = None
    applications: Annotated[
        Sequence[str] | None,
        Arg("UBI: read the records of this application only; repeatable.", option="--application"),
    ] = None
    reward_column: Annotated[
        str | None,
        Arg("A second reward of each result, as purchased; of UBI, the action that is one."),
    ] = None
    clicks: Annotated[
        Path | str | None,
        Arg("A second file, with a click per row: search and item.", "input", option="--clicks"),
    ] = None
    positions: Annotated[
        int | None,
        Arg("Cut lists of tables at this position.", least=1, most=MAX_POSITIONS),
    ] = None
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
    scheduler: Scheduler = None
    dry_run: Annotated[
        bool, Arg("Show what becomes of the first 1,000 rows; write nothing.", "running")
    ] = False
    overwrite: Overwrite = False
    quiet: Quiet = False
    block_size: Annotated[
        int | None, Arg("Bytes read at a time.", "running", on_command_line=False)
    ] = None

    def check(self) -> None:
        """The format, and what goes with it."""
        from logeval.log.formats.registry import AUTO, FORMATS, check_format

        check_format(self.format)
        if self.format != AUTO:
            format = FORMATS[self.format]
            if self.columns and not format.columns:
                raise LogevalError(
                    f"a column map is for tables; a log in format {self.format} has no columns"
                )
            if (self.actions or self.views or self.applications) and not format.actions:
                raise LogevalError(
                    "actions, views and applications are those of UBI; a log in format "
                    f"{self.format} has none"
                )
        if self.clicks is not None and self.format not in (AUTO, "long"):
            raise LogevalError(
                "clicks in a second file go with rows per result (format long); a log in format "
                f"{self.format} has them itself"
            )
        if self.scheduler is not None and (self.out is None or self.dry_run):
            raise LogevalError("a cluster writes to a folder; name it as out, without a dry run")

    @property
    def given(self) -> list[Any]:
        """Files (- for standard input) and data frames; that of clicks is the last."""
        several = isinstance(self.logs, Sequence) and not isinstance(self.logs, str)
        logs: list[Any] = list(self.logs) if several else [self.logs]  # type: ignore[arg-type]
        return logs if self.clicks is None else [*logs, self.clicks]

    @property
    def folder(self) -> Path:
        """Where the table goes."""
        assert self.out is not None
        return Path(self.out)

    def run(self) -> "Log":
        """Read the logs, unless that was done before."""
        from logeval.log import rejects
        from logeval.log.ingestion import in_memory, write_log
        from logeval.log.inputs import is_stream
        from logeval.log.log import load
        from logeval.storage import tables

        self.check_inputs()
        if self.out is None or self.dry_run:
            return self._warned(in_memory(self))
        out = self.folder
        if not self.overwrite and tables.there_is(out):
            if not any(map(is_stream, self.given)) and self.why() is None:
                if not self.quiet:
                    done = f"{out}: up to date, made from the same input; nothing to do"
                    print(visible(done), file=sys.stderr)
                return load(out)
            raise LogevalError(
                f"{out}: holds another table already; choose another folder, or replace it with "
                "overwrite=True"
            )
        if not self.overwrite:
            tables.recover(out)
            tables.check_free(out, ("serps", "counts", "names", rejects.FILE))
        write_log(self)
        return self._warned(load(out))

    def _warned(self, log: "Log") -> "Log":
        """The log, and on stderr what is to be known of it."""
        notes = [f"note: {note}" for note in log.manifest.get("notes", []) if not self.quiet]
        for text in notes + [f"warning: {caution}" for caution in log.cautions()]:
            print(visible(text.replace(": ", f": {log.title}: ", 1)), file=sys.stderr)
        return log

    def check_inputs(self) -> None:
        """Raise unless the files can be read."""
        from logeval.log.inputs import check_readable

        check_readable(self.given)

    def why(self) -> str | None:
        """Why ``out`` is not what is made of these files; None if it is."""
        from logeval.log.inputs import known_inputs
        from logeval.storage import tables

        self.check_inputs()
        inputs: list[Manifest] | None = known_inputs(self.given, self.folder)
        if inputs is None:
            return "its input has changed"
        return tables.why(self.folder, tables.manifest_of(self.NAME, self.arguments(), inputs))


ingest = function(
    Ingest,
    """
    >>> log = logeval.ingest("log.tsv.gz", "data/log", quiet=True)
    >>> log.counts["rejected"], log.serps().num_rows > 600
    (0, True)
    """,
)
