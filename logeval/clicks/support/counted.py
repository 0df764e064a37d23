"""What a table of counts supports: swaps need impressions and clicks by position, and no pages.

The counts do not say which clicks were made on one page, so the intervals of the examination leave
out what those have in common.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from logeval.clicks.estimation.patterns import Counted
from logeval.clicks.models.pbm import PBM
from logeval.clicks.models.registry import MODELS
from logeval.clicks.support.graph import CARRIES
from logeval.clicks.support.identified import identified
from logeval.running.words import joined


def counted_table(data: Counted) -> pd.DataFrame:
    """A row per query: how much of it a PBM can be fitted to."""
    found = identified(PBM, data, "per-query")
    assert found is not None
    assert found.cut is not None
    return pd.DataFrame(
        {
            "query": [str(query) for query in data.queries],
            "serps": data.serps.astype(np.int64),  # at least: see ``Counted``
            "share_pbm": found.share,
            "cut_clicks": np.where(np.isfinite(found.cut), found.cut, np.nan),
        }
    )


def counted_words(table: pd.DataFrame) -> list[str]:
    """What can be fitted, and to how many queries."""
    can = [name for name, kind in MODELS.items() if kind.from_counts]
    others = [name for name in can if name != PBM.name]
    Q, carried = len(table), int((table["share_pbm"] >= CARRIES).sum())
    found = [
        f"{carried:,} of {Q:,} queries can carry a PBM, which needs items that were clicked at "
        "several ranks, or attraction and examination cannot be separated",
        f"{joined(others)} can be fitted to all of them. Cascades and the UBM cannot: counts do "
        "not say what else was clicked on a page",
    ]
    if carried < Q:
        found[0] += "; of the others use the DCTR, which does not tell them apart"
    return found
