"""What a pilot says, in words: runs, queries and time that a comparison needs."""

from __future__ import annotations

import math

from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.pilot import POWER, SIZE
from logeval.running.words import number


def pilot_words(runs: Runs) -> list[str]:
    """A sentence per panel, then the runs and the time for all of them."""
    found, most = [], 0.0
    made = int(runs.table()["run"].max()) + 1
    for panel, need in runs.needs().items():
        queries = f"each of its {need.queries:,} queries" if need.queries > 1 else "its query"
        start = (
            f"{runs.title(panel)}: two policies that differ by {SIZE:.0%} in regret, and vary as "
            f"{' and '.join(need.policies)} do, are told apart in {POWER:.0%} of cases"
        )
        known = f"{need.queries_low:,.0f} to {need.queries_high:,.0f}"
        others = f"about {need.queries_needed:,.0f} queries ({known}) with {made:,} runs of each"
        if math.isfinite(need.runs):
            most = max(most, need.runs)
            more = f", or {others}" if math.isfinite(need.queries_needed) else ""
            found.append(f"{start} with {need.runs:,.0f} runs of {queries}{more}.")
        elif math.isfinite(need.queries_needed):
            found.append(
                f"{start} with {others}. No number of runs of these {need.queries:,} is enough: "
                "they differ too much from each other. Next: fit more queries (fit-models "
                "--top-queries), or ask about a larger difference."
            )
        else:
            found.append(
                f"{start} with no number of runs or queries that could be made; ask about other "
                "policies, or take the queries one by one (--queries)."
            )
    if not found:
        return ["A pilot needs at least two policies that lose anything, besides the Oracle."]
    if most and runs.seconds is not None:
        seconds = runs.seconds / made * most
        found.append(
            f"Next: --runs {most:,.0f}, about {duration(seconds)} with as many workers as now (the "
            f"pilot made {made:,} runs in {duration(runs.seconds)})."
        )
    return found


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    for size, unit in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(max(seconds, 1.0))} seconds"
