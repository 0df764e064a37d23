"""``replay estimate``: what rankers would have earned on the traffic that was logged."""

import hashlib
from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Union

from logeval.errors import LogevalError
from logeval.replay.arguments import MOST_PARTS, Estimators, Replaying, Scope, Smoothing, check_clip
from logeval.stage import Arg, Manifest, function, stage

if TYPE_CHECKING:
    from pandas import DataFrame

    from logeval.replay.estimates import Estimates
    from logeval.replay.estimators.estimator import Estimator

MOST_ROUNDS = 1_000_000


@stage(
    "replay estimate",
    example="logeval replay estimate data/yandex --target best:dcm --positions 3 --out replay",
    again="logeval replay estimate LOG --target TARGET --out {folder}",
    read="logeval.replay.estimates:Estimates.read",
)
class ReplayEstimate(Replaying["Estimates"]):
    """Estimate what a ranker would have earned on the logged traffic.

    In clicks per SERP. A target is a table (a file or a DataFrame; docs/replay.md), ``log:FOLDER``,
    ``day:27``, ``logged``, ``random``, ``by-ctr`` or ``best:MODEL``. Queries of which the log has
    shown less than ``min_support`` of what a target shows are left out, and counted. Several
    targets are estimated in the same resampled logs, so differences between their values are
    paired. ``DR(auto)`` is DR with the click model that predicts held-out sessions best, of PBM,
    DCM, UBM and DBN; where it is among the estimators the answer is its. Intervals come from
    ``rounds`` bootstrap rounds over sessions; estimators with a click model fit it again in
    ``refits``.
    """

    target: Annotated[
        Union[str, Path, "DataFrame", Sequence[Union[str, Path, "DataFrame"]]],
        Arg(
            "A table, log:FOLDER, day:27, logged, random, by-ctr or best:MODEL; repeatable.",
            option="--target",
        ),
    ]
    _: KW_ONLY
    estimators: Estimators = ("DR(auto)", "IP", "PBM", "Prefix")
    positions: Annotated[
        int | None, Arg("K: the positions that count; default: up to 10.", least=1, most=1000)
    ] = None
    clip: Annotated[float | None, Arg("Largest weight; default: none.")] = None
    smoothing: Smoothing = 0.0
    cross_fit: Annotated[
        int,
        Arg(
            "Parts of the sessions; each gets the propensities and models of the others.",
            least=1,
            most=MOST_PARTS,
        ),
    ] = 1
    propensities: Annotated[
        Literal["estimated", "logged"], Arg("estimated from the log, or logged (IP and DR).")
    ] = "estimated"
    scope: Scope = "per-query"
    rounds: Annotated[int, Arg("Bootstrap rounds; 0: no intervals.", least=0, most=MOST_ROUNDS)] = (
        1000
    )
    refits: Annotated[
        int, Arg("Rounds that fit click models again (DM, DR).", least=0, most=MOST_ROUNDS)
    ] = 20
    min_support: Annotated[
        float, Arg("Leave queries out of which the log has shown less.", least=0, most=1)
    ] = 0.8
    force: Annotated[bool, Arg("Leave nothing out: what was never shown counts as no clicks.")] = (
        False
    )

    def check(self) -> None:
        """Names of estimators and targets, and what goes together."""
        from logeval.replay.targets.read import check_target
        from logeval.replay.targets.table import target_rows

        if not self.targets:
            raise LogevalError("there is no target; name one, as by-ctr")
        if not self.chosen:
            raise LogevalError("there is no estimator; name one, as IP")
        if self.clip is not None:
            check_clip(self.clip)
        for name, number in (("rounds", self.rounds), ("refits", self.refits)):
            if number == 1:
                raise LogevalError(f"{name}=1: must be 0 (no interval) or at least 2")
        if self.propensities == "logged":
            wrong = [e for e in self.chosen if e.NAME not in ("IP", "DR", "DM", "RCTR")]
            if wrong:
                raise LogevalError(
                    f"propensities=logged: they are those of an item at a position, and "
                    f"{wrong[0]} weights something else; use IP or DR"
                )
            if self.smoothing:
                raise LogevalError("propensities=logged: there is nothing to smooth")
        for name, frame in self.given.items():
            if frame is None:
                check_target(name)
            else:
                target_rows(frame, name, self.names)

    @property
    def given(self) -> "dict[str, DataFrame | None]":
        """The targets by name, with their rows where these were given themselves."""
        several = isinstance(self.target, list | tuple)
        found: dict[str, DataFrame | None] = {}
        for one in self.target if several else [self.target]:  # type: ignore[union-attr]
            is_name = isinstance(one, str | Path)
            frames = sum(frame is not None for frame in found.values())
            name = str(one) if is_name else f"table {frames + 1}" if frames else "table"
            if name in found:
                raise LogevalError(f"target {name} is given twice")
            found[name] = None if is_name else one  # type: ignore[assignment]
        return found

    @property
    def targets(self) -> list[str]:
        """The targets by name."""
        return list(self.given)

    @property
    def chosen(self) -> "list[Estimator]":
        """The estimators."""
        from logeval.replay.estimators.registry import parse_estimators

        return parse_estimators(self.estimators)

    def arguments(self) -> Manifest:
        """The settings, with estimators as they print."""
        chosen = [str(e) for e in self.chosen]
        return super().arguments() | {"target": self.targets, "estimators": chosen}

    def inputs(self) -> list[Manifest]:
        """The log, and the targets that are files or logs."""
        from logeval.storage import tables

        found = super().inputs()
        for name, frame in self.given.items():
            kind, _, rest = name.partition(":")
            if frame is not None:
                known = hashlib.sha256(frame.to_csv().encode()).hexdigest()
            elif kind == "log":
                known = tables.identity(rest)
            else:
                known = tables.checksum(Path(name)) if Path(name).is_file() else ""
            found.append({name: known})
        return found

    def make(self, manifest: Manifest) -> "Estimates":
        """The estimates of all targets."""
        from logeval.replay.estimates import estimate

        return estimate(self, manifest)


replay_estimate = function(ReplayEstimate)
