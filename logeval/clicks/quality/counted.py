"""What can be checked of models on a table of counts: examination, beside that from swaps.

The other checks compare pages, and counts do not say which results were on one.
"""

from __future__ import annotations

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.fold import counted_patterns
from logeval.clicks.quality.predictive import Checks
from logeval.clicks.support.graph import harvested_beside
from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.storage.schemas import CHECKS, CURVES

NOTE = (
    "counts do not say which results were on one page, so nothing else can be checked; ingest the "
    "pages themselves for that"
)


def counted_checks(models: FittedModels, log: Log) -> Checks:
    """The examination of the models beside that from swaps, and no other check."""
    data = counted_patterns(log)
    known = None if data is None else data.only(set(models.queries))
    if known is None or not known.P:
        raise LogevalError(
            f"{log.title}: has no impressions of the queries that the models were fitted to"
        )
    by_position = [m for m in models.fitted.values() if m.kind.examined_by == "position"]
    if not by_position:
        raise LogevalError(
            f"{log.title}: is a table of counts, on which examination alone can be checked, and "
            f"{', '.join(models.fitted)} has none by position; fit a PBM"
        )
    none, no_curves = (schema.empty_table().to_pandas() for schema in (CHECKS, CURVES))
    return Checks(none, no_curves, {}, [NOTE], examination=harvested_beside(by_position, known))
