"""raw log -> serps: read the files block by block, write the table, count everything."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from logeval.errors import LogevalError, visible
from logeval.log import rejects
from logeval.log.inputs import MAX_WORKERS, check, is_stream, total_bytes, unchanged, why
from logeval.log.lines.blocks import BLOCK_SIZE
from logeval.log.log import Log, load
from logeval.log.reading.parts import name_by_content
from logeval.log.reading.run import Run, ingest_files, ingest_on_cluster, say
from logeval.running.progress import Progress
from logeval.storage import manifests, tables


def ingest(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    format: str = "auto",
    max_bad: float = 0.01,
    workers: int | None = None,
    overwrite: bool = False,
    column_map: dict[str, str] | None = None,
    scheduler: str | None = None,
    quiet: bool = False,
    block_size: int = BLOCK_SIZE,
) -> Log:
    """Parse one or several log files into the Parquet dataset ``out``/serps.

    ``sources`` are plain, .gz or .zst files ("-" is standard input). Lines that are no records
    go to ``out``/rejects.tsv; over ``max_bad`` of them is an error, and no table is left.
    ``column_map`` ({"query_id": "qid"}) names the columns of a file in format ``table``.
    The same input and arguments again do nothing. With a ``scheduler`` files, and ranges of
    plain ones, are shared out to the workers of that Dask cluster, which must see ``sources`` and
    ``out`` under the same paths.
    """
    paths = [sources] if isinstance(sources, str | Path) else list(sources)
    out = Path(out)
    arguments = check(paths, format=format, max_bad=max_bad, column_map=column_map, workers=workers)
    n_workers = workers or min(os.cpu_count() or 1, MAX_WORKERS)
    format = arguments["format"]
    if not overwrite and tables.there_is(out):
        if not any(map(is_stream, paths)) and why(paths, out, **arguments) is None:
            say(f"{out}: up to date, made from the same input; nothing to do", quiet)
            return load(out)
        raise LogevalError(f"{out}: holds another table already; choose another out, or overwrite")
    if not overwrite:
        tables.check_free(out, ("serps", rejects.FILE))
    on_cluster = scheduler is not None  # which has bars of its own
    with tables.staged(out, overwrite) as staging:
        (staging / "serps").mkdir()
        with (
            open(staging / rejects.FILE, "w", errors="backslashreplace") as rejects_file,
            Progress("ingest", total_bytes(paths), "bytes", quiet or on_cluster) as progress,
        ):
            rejects_file.write(rejects.HEADER)
            run = Run(staging, max_bad, n_workers, block_size, progress, rejects_file)
            run.stamps = [{} if is_stream(p) else manifests.stamp(Path(p)) for p in paths]
            if scheduler is not None:
                with unchanged(paths):
                    ingest_on_cluster(run, paths, format, scheduler, quiet)
            else:
                ingest_files(run, paths, format, column_map or {}, quiet)
        name_by_content(staging / "serps")
        manifest = tables.manifest_of("ingest", arguments, run.inputs)
        manifest |= {"formats": run.formats, "counts": dict(run.counts), "stamps": run.stamps}
        tables.write_manifest(staging, manifest)
    log = load(out)
    for caution in log.cautions():
        print(visible(f"warning: {out}: {caution}"), file=sys.stderr)
    return log
