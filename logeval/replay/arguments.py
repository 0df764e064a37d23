"""What the stages of replay are told, and check, alike."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from logeval.errors import LogevalError
from logeval.stage import Arg, LogFolder, Queries, Quiet, Seed, Stage, TopQueries

R = TypeVar("R")
MOST_PARTS = 1000  # each fits the click models anew
MOST_SMOOTHING = 1_000_000_000

Smoothing = Annotated[
    float,
    Arg("SERPs added to every cell of the propensities.", least=0, most=MOST_SMOOTHING),
]
Scope = Annotated[
    Literal["per-query", "partial", "pooled"], Arg("Click models per-query, partial or pooled.")
]
Items = Annotated[
    int | None, Arg("Keep only this many candidates per query, the most shown.", least=1)
]
Estimators = Annotated[
    Sequence[str],
    Arg("IP, IP(normalised), PBM, DR(ubm), ...; repeatable.", option="--estimator/-e"),
]
POLICY = Arg("A policy that shows lists, module:Class, or all.", option="--policy")
Out = Annotated[Path | str | None, Arg("Folder for the table and the figure.", "output")]


@dataclass(frozen=True)
class Replaying(Stage[R]):
    """Some queries of a log."""

    log: LogFolder
    _: KW_ONLY
    queries: Queries = None
    top_queries: TopQueries = None
    out: Out = None
    seed: Seed = 0
    quiet: Quiet = False


def check_clip(clip: float) -> None:
    """Refuse what is no largest weight; infinity is none."""
    if not clip > 0:
        raise LogevalError(f"clip={clip}: the largest weight must be above 0")
