"""What notebooks show of a result: what it says in words, and its most telling table."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logeval.running.words import cell

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 30


def html_of(result: Any) -> str:
    """The verdict, where there is one, and a table."""
    title, frame = FRAMES[type(result).__name__]
    said = result.verdict()._repr_html_() if hasattr(result, "verdict") else ""
    return f"{said}<p>{html.escape(title)}</p>{table_of(frame(result))}"


def table_of(frame: pd.DataFrame) -> str:
    """A frame as people read it; of a long one the first rows."""
    shown = frame.head(MOST_ROWS).dropna(axis=1, how="all")
    shown.columns = [" ".join(c) if isinstance(c, tuple) else str(c) for c in shown.columns]
    text: str = shown.map(cell).to_html(index=False, border=0)
    more = len(frame) - MOST_ROWS
    return text + (f"<p>and {more:,} more rows</p>" if more > 0 else "")


def _checks(checks: Any) -> pd.DataFrame:
    rows = checks.table[checks.table["query"].isna()]
    shown = rows["error"].map("{:.3f}".format) + rows["faulted"].map({True: "*", False: ""})
    shown = shown.where(rows["components"] > 0, "-")
    names = list(dict.fromkeys(rows["check"]))
    wide = rows.assign(shown=shown).pivot(index="model", columns="check", values="shown")
    found: pd.DataFrame = wide[names].rename_axis(columns=None).reset_index()
    return found


def _estimates(found: Any) -> pd.DataFrame:
    kept = (
        "target estimator positions value low high truth difference difference_low "
        "difference_high covered support effective_serps"
    )
    table: pd.DataFrame = found.overall()[kept.split()]
    return table


def _description(found: Any) -> pd.DataFrame:
    import pandas as pd

    totals = pd.DataFrame(found.totals.items(), columns=["", "count"]).astype(object)
    return totals.dropna()


# by name of the class: a title, and the frame that is shown
FRAMES: dict[str, tuple[str, Callable[[Any], pd.DataFrame]]] = {
    "Checks": ("How far off; * where chance does not explain it, - where not judged", _checks),
    "Comparison": ("Quality of click models", lambda found: found.overall().reset_index()),
    "CrossCheck": ("Clicks per SERP by method", lambda found: found.table),
    "Description": ("What the log holds", _description),
    "Estimates": ("Clicks per SERP, over all queries that are covered", _estimates),
    "PolicyReplay": ("Clicks per accepted SERP", lambda found: found.summary()),
    "Support": ("What the clicks can decide", lambda found: found.table),
    "Validation": (
        "Error of the predicted clicks per SERP",
        lambda found: found.table[found.table["clip"].isna()],
    ),
}
