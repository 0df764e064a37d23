"""``logeval.load``: whatever a stage wrote, by its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from logeval.errors import LogevalError
from logeval.storage import tables

if TYPE_CHECKING:
    from logeval.clicks.collection import FittedModels
    from logeval.evaluation.results import Runs
    from logeval.log.log import Log


def load(folder: Path | str) -> Log | FittedModels | Runs:
    """The log, the models or the runs that a folder holds.

    >>> logeval.load("data/yandex"), logeval.load("data/yandex/models")  # doctest: +SKIP
    """
    from logeval.clicks.collection import FittedModels, read_models
    from logeval.evaluation.results import Runs
    from logeval.log.log import Log
    from logeval.log.log import load as load_log

    if isinstance(folder, Log | FittedModels | Runs):
        return folder
    if not isinstance(folder, str | Path):
        raise LogevalError(
            f"{folder!r}: cannot be loaded; give the folder of a log, models or runs"
        )
    stage = tables.read_manifest(folder)["stage"]
    if stage == "ingest":
        return load_log(folder)
    if stage in ("fit-models", "models", "generate"):
        return read_models(folder)
    if stage == "evaluate":
        return Runs.load(folder)
    raise LogevalError(f"{folder}: holds the output of {stage}; load reads a log, models or runs")
