"""Numbers and verdicts as people read them: markdown, for the terminal and docs/reproduction.md."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from logeval.running.words import rounded
from logeval.storage import files
from reproduction.data import Claim, Experiment, named
from reproduction.measures import with_error
from reproduction.run import Outcome
from reproduction.verdicts import AGREES, BY, NOT, REPRODUCED, SHORTER, UNDECIDED, Judged

INTRODUCTION = """\
# The papers, reproduced

Made of `reproduction/results.csv` by `python -m reproduction all --log ... --out ... --write`; do
not edit. One row per claim; ± are standard errors over runs. A published number is *reproduced* if
ours differs by at most three standard errors of both; below 10% the difference is given. Words have
bounds, which are ours: *reproduced* when the 99% interval of ours lies between them, *not
reproduced* when it lies outside, otherwise it *cannot be told*. A claim about several cases must
hold in each; the hardest is shown. Numbers of independent programs, which nobody published, *agree*
or not. Where there are several logs, ours and the verdicts stand in this order: {logs}.
"""
COLUMNS = ["claim", "published", "ours", "verdict"]
LISTED = ["experiment", "place", "needs", "steps", "runs", "minutes"]
RESULTS = Path(__file__).with_name("results.csv")
PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"
NOT_RUN = "not run"
COUNTED = (REPRODUCED, BY.strip(), UNDECIDED, NOT, AGREES, NOT_RUN)


def listed(experiments: Sequence[Experiment]) -> str:
    rows = [
        [e.name, f"{e.paper}, {e.place}", "a log" if e.needs_log else "nothing", f"{e.horizon:,}",
         str(e.runs), minutes(e.seconds)]
        for e in experiments
    ]  # fmt: skip
    spent = sum({frozenset(part.name for part in e.parts): e.seconds for e in experiments}.values())
    return (
        f"{table(LISTED, rows)}\n\nMinutes are of one core; all together {minutes(spent)}, about "
        f"{minutes(spent / 2)} on two cores (runs that two figures share are counted once)."
    )


def rows_of(outcome: Outcome) -> list[dict[str, str]]:
    """A row for every claim of an experiment, as ``results.csv`` has them."""
    where = {"experiment": outcome.experiment.name, "log": outcome.log}
    empty = dict.fromkeys(("claim", "place", "by", "published", "ours", "verdict", "reason"), "")
    if outcome.refused:
        reason = outcome.refused.removeprefix(f"{outcome.log}: ")
        return [{**where, **empty, "verdict": NOT_RUN, "reason": reason}]
    return [{**where, **empty, **row(one)} for one in outcome.judged]


def row(one: Judged) -> dict[str, str]:
    claim = one.claim
    return {
        "claim": claim.text,
        "place": claim.place,
        "by": "" if claim.is_published else claim.source,
        "published": published(claim),
        "ours": with_error(one.ours.value, one.ours.stderr),
        "verdict": one.verdict,
        "reason": "" if one.holds or one.verdict == SHORTER else claim.reason,
    }


def section(outcome: Outcome) -> Iterator[str]:
    """What ``python -m reproduction NAME`` prints."""
    yield f"## {outcome.name}: {outcome.experiment.paper}, {outcome.experiment.place}"
    yield f"{outcome.experiment.about}. {size(outcome)}"
    yield table(COLUMNS, _merged(rows_of(outcome)))


def page(rows: Sequence[Mapping[str, str]]) -> str:
    """docs/reproduction.md: a table for each paper, one row for a claim on all logs."""
    blocks = [
        INTRODUCTION.format(logs=", ".join(dict.fromkeys(r["log"] for r in rows if r["log"])))
    ]
    papers: dict[str, list[Mapping[str, str]]] = {}
    for one in rows:
        papers.setdefault(named(one["experiment"]).paper, []).append(one)
    counted = [
        [paper, *(str(sum(r["verdict"].startswith(v) for r in of)) for v in COUNTED)]
        for paper, of in papers.items()
    ]
    blocks.append(table(["paper", *COUNTED], counted) + "\n")
    for paper, of in papers.items():
        blocks.append(f"## {paper}\n")
        for name in dict.fromkeys(r["experiment"] for r in of if r["verdict"] != NOT_RUN):
            own = [r for r in of if r["experiment"] == name]
            blocks.append(f"**{name}** ({named(name).place})\n\n{table(COLUMNS, _merged(own))}\n")
        reasons: dict[str, list[str]] = {}
        for one in of:
            if one["reason"]:
                reasons.setdefault(one["reason"], []).append(one["experiment"])
        blocks += [f"- {', '.join(dict.fromkeys(who))}: {why}." for why, who in reasons.items()]
        blocks += [""] if reasons else []
    return "\n".join(blocks).rstrip() + "\n"


def _merged(rows: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """A line per claim: what the logs gave side by side."""
    of: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    for one in rows:
        if one["verdict"] != NOT_RUN:
            of.setdefault((one["claim"], one["place"]), []).append(one)
    lines = []
    for (claim, place), some in of.items():
        verdicts = [r["verdict"] for r in some]
        told = verdicts[:1] if len(set(verdicts)) == 1 else verdicts
        ours = "; ".join(r["ours"] for r in some)
        lines.append([f"{claim} [{place}]", some[0]["published"], ours, "; ".join(told)])
    return lines


def write(outcomes: Sequence[Outcome]) -> None:
    """Write ``results.csv`` and the page."""
    rows = [row for outcome in outcomes for row in rows_of(outcome)]
    files.write_text(RESULTS, pd.DataFrame(rows).to_csv(index=False))
    files.write_text(PAGE, page(rows))


def read() -> list[dict[str, str]]:
    """What was measured."""
    return list(csv.DictReader(RESULTS.read_text("utf-8").splitlines()))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells
    )


def published(claim: Claim) -> str:
    """What the paper says: a number, or the bounds of its words."""
    low, high = claim.interval
    if claim.is_number:
        return with_error(low, claim.stderr)
    if math.isinf(low):
        bounds = f"at most {rounded(high)}"
    elif math.isinf(high):
        bounds = f"at least {rounded(low)}"
    else:
        bounds = _range((low, high))
    value = claim.published
    return bounds if value is None or value in (low, high) else f"{rounded(value)} ({bounds})"


def _range(values: Sequence[float]) -> str:
    low, high = rounded(min(values)), rounded(max(values))
    return low if low == high else f"{low} to {high}"


def size(outcome: Outcome) -> str:
    """Steps and runs; less than the paper's is said."""
    if not outcome.runs:
        return ""
    full = outcome.at_full_horizon and outcome.n_runs >= outcome.experiment.runs
    said = f"{outcome.horizon:,} steps, {outcome.n_runs} runs"
    return said if full else f"{said}; less than the paper's"


def minutes(seconds: float) -> str:
    """Minutes with one place below ten."""
    return f"{seconds / 60:.1f}" if seconds < 600 else f"{seconds / 60:.0f}"
