"""What scores of several click models on the same SERPs say of them, side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from logeval.clicks.collection import FittedModels
from logeval.clicks.quality.score_table import quality_table
from logeval.clicks.quality.scores import MEASURES, Score
from logeval.log.log import Log
from logeval.storage.results import Stored
from logeval.storage.tables import Manifest

if TYPE_CHECKING:
    import pandas as pd

HELD_OUT = "held-out SERPs"


@dataclass(frozen=True)
class Comparison(Stored):
    """Qualities (schema ``schemas.QUALITY``), and what was unseen or impossible by model."""

    TABLES: ClassVar = {"table": "quality"}
    KEPT = ("unseen", "scored_on")

    table: pd.DataFrame
    unseen: list[dict[str, Any]]  # by model
    scored_on: str = HELD_OUT  # which SERPs
    manifest: Manifest = field(default_factory=dict)

    @property
    def coverage(self) -> pd.DataFrame:
        """One row per model: SERPs, and what of them was unseen or impossible."""
        import pandas as pd

        return pd.DataFrame(self.unseen)

    def overall(self) -> pd.DataFrame:
        """One row per model: each measure over everything, the best log-likelihood first."""
        table = self.table
        rows = table[table["baseline"].isna() & table["rank"].isna() & table["frequency"].isna()]
        wide = rows.pivot_table(index="model", columns="measure", values=["value", "low", "high"])
        wide = wide.sort_values(("value", MEASURES[0]), ascending=False)
        return wide[[(v, m) for m in MEASURES for v in ("value", "low", "high")]]

    def by_frequency(self, measure: str = MEASURES[0]) -> pd.DataFrame:
        """One row per model, one column per band of query frequency."""
        rows = self.table[self.table["frequency"].notna() & (self.table["measure"] == measure)]
        return rows.pivot_table(index="model", columns="frequency", values="value", sort=False)


def compared(
    scores: dict[str, Score], seed: int, manifest: Manifest, scored_on: str = HELD_OUT
) -> Comparison:
    """The scores side by side."""
    unseen = [
        {
            "model": name,
            "serps": int(s.count.sum()),
            "unseen_items": s.unseen_items,
            "unseen_queries": s.unseen_queries,
            "impossible": s.impossible,
        }
        for name, s in scores.items()
    ]
    return Comparison(quality_table(scores, seed), unseen, scored_on, manifest)


def scored_on(models: FittedModels, log: Log) -> str:
    """Whether the models have seen the log before."""
    if models.manifest.get("inputs") == [{"log": log.identity}]:
        part = "partly " if models.manifest["arguments"].get("holdout") else ""
        return f"the log that the models were {part}fitted to, not held out"
    return f"all SERPs of {log.path}"
