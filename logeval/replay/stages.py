"""What the stages of replay are told, and check, alike.

``replay estimate``: what rankers would have earned on the traffic that was logged.

``replay validate``: which estimator to trust on this log.

``replay policy``: what learning policies would have earned, from the log itself.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar, Union

from logeval.errors import LogevalError
from logeval.stage import (
    Arg,
    LogFolder,
    Manifest,
    Queries,
    Quiet,
    Seed,
    Stage,
    TopQueries,
    function,
    stage,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from logeval.policies.registry import PolicySpec
    from logeval.replay.estimate import Estimates
    from logeval.replay.estimators import Estimator
    from logeval.replay.policy import PolicyReplay
    from logeval.replay.validate import Validation


R = TypeVar("R")
MOST_PARTS = 1000  # each fits the click models anew
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

    @property
    def placed(self) -> bool:
        """Whether the log holds single placements; not yet known of one that a recipe will make."""
        from logeval.log.log import Log, load
        from logeval.storage import tables

        if not isinstance(self.log, str | Path | Log):  # an error, which is raised elsewhere
            return False
        there = isinstance(self.log, Log) or tables.there_is(self.log)
        return there and load(self.log).holds == "placements"

    def estimating(
        self, estimators: Sequence[str], of_placements: Sequence[str]
    ) -> "list[Estimator]":
        """The estimators; of single placements by default others, which need no lists."""
        from logeval.replay.estimators import parse_estimators

        if not self.placed:
            return parse_estimators(estimators)
        default = type(self).__dataclass_fields__["estimators"].default
        found = parse_estimators(of_placements if estimators == default else estimators)
        if wrong := [e for e in found if e.LEVEL in ("prefix", "list")]:
            raise LogevalError(
                f"{wrong[0]} needs lists, and the log holds single placements; use IP or DR"
            )
        return found


def check_clip(clip: float) -> None:
    """Refuse what is no largest weight; infinity is none."""
    if not clip > 0:
        raise LogevalError(f"clip={clip}: the largest weight must be above 0")


MOST_ROUNDS = 1_000_000
OF_LISTS = ("List", "Prefix", "Cascade-DR")  # of the default estimators
OF_PLACEMENTS = ("DR(auto)", "IP", "IP(normalised)", "DM(auto)")


@stage(
    "replay estimate",
    example="logeval replay estimate data/yandex --target best:dcm --positions 3 --out replay",
    again="logeval replay estimate LOG --target TARGET --out {folder}",
    read="logeval.replay.estimate:Estimates.read",
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
    propensities: Annotated[
        Literal["estimated", "logged"] | None,
        Arg("estimated from the log, or logged; default: logged of placements, if they are."),
    ] = None
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
        from logeval.replay.target_tables import target_rows
        from logeval.replay.targets import check_target

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
            wrong = [e for e in self.chosen if e.LEVEL in ("prefix", "list")]
            if wrong:
                raise LogevalError(
                    f"propensities=logged: they are those of an item at a position, and "
                    f"{wrong[0]} weights something else; use IP or DR"
                )
        for name, frame in self.given.items():
            if frame is None:
                check_target(name)
            else:
                target_rows(frame, name, self.names, self.placed)

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
        return self.estimating(self.estimators, OF_PLACEMENTS)

    @property
    def logged_propensities(self) -> bool:
        """Whether those that were logged are used."""
        if self.propensities is None and self.placed:
            with self.opened.connect(holds="placements") as db:
                row = db.execute("SELECT bool_and(propensity > 0) FROM placements").fetchone()
            return row == (True,)
        return self.propensities == "logged"

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
        from logeval.replay.estimate import estimate

        return estimate(self, manifest)


replay_estimate = function(
    ReplayEstimate,
    """
    >>> found = logeval.replay_estimate(
    ...     "data/log", "by-ctr", positions=2, rounds=50, refits=2, force=True, quiet=True)
    >>> found.overall()["estimator"].tolist()[1:]
    ['IP', 'PBM', 'Prefix']
    """,
)


@stage(
    "replay validate",
    example="logeval replay validate data/yandex --positions 1,2,3 --clip 10,100 --parts 5",
    again="logeval replay validate LOG --out {folder}",
    read="logeval.replay.validate:Validation.read",
)
class ReplayValidate(Replaying["Validation"]):
    """Leave one day (or part) out and predict its clicks: which estimator to use on this log.

    A part is one of ``parts`` equal shares of the sessions. With ``randomised`` the targets are
    parts (10 unless told otherwise) of the SERPs that were shown in random order, as the log says,
    and the log is the rest of it.
    """

    _: KW_ONLY
    positions: Annotated[
        str | Sequence[int] | None,
        Arg("As 1..10, or 1,3,5; default: all that the lists have, up to 10."),
    ] = None
    clips: Annotated[str | Sequence[float], Arg("Clips to try, as 1,10,100.", option="--clip")] = (
        "1,10,100,1000"
    )
    parts: Annotated[
        int | None,
        Arg("Leave out parts of the sessions instead of days.", least=2, most=MOST_PARTS),
    ] = None
    randomised: Annotated[
        bool,
        Arg("Predict the lists in random order, in parts, from the ranked ones."),
    ] = False
    estimators: Estimators = (
        "List", "Prefix", "IP", "PBM", "INTERPOL(window=1)", "Item", "RCTR", "DM", "DR",
        "DR(auto)", "Cascade-DR",
    )  # fmt: skip
    scope: Scope = "per-query"

    def check(self) -> None:
        """Positions, clips and names of estimators."""
        if isinstance(self.positions, str):
            self._set("positions", _positions(self.positions))
        if isinstance(self.clips, str):
            self._set("clips", _clips(self.clips))
        if self.positions is not None and (not self.positions or min(self.numbers) < 1):
            raise LogevalError("positions must be one or more numbers from 1 on, as 1,3,5 or 1..10")
        if not self.clips:
            raise LogevalError("there is no clip; name one, as 10, or inf for none")
        for clip in self.weights:
            check_clip(clip)
        _ = self.chosen

    @property
    def numbers(self) -> list[int]:
        """The positions K that are asked for; none: those of the log."""
        return [int(k) for k in self.positions or ()]

    @property
    def weights(self) -> list[float]:
        """The clips."""
        return [float(clip) for clip in self.clips]

    @property
    def chosen(self) -> "list[Estimator]":
        """The estimators; RCTR, which others are compared with, is always among them."""
        from logeval.replay.estimators import parse_estimators

        rest = [e for e in self.estimators if e not in OF_LISTS]
        chosen = self.estimating(self.estimators, rest)
        known = any(e.NAME == "RCTR" for e in chosen)
        return chosen if known else chosen + parse_estimators(["RCTR"])

    def arguments(self) -> Manifest:
        """The settings, with estimators as they print."""
        return super().arguments() | {"estimators": [str(e) for e in self.chosen]}

    def make(self, manifest: Manifest) -> "Validation":
        """The errors of all estimators."""
        from logeval.replay.validate import validate

        return validate(self, manifest)


def _positions(text: str) -> list[int]:
    first, dots, last = text.partition("..")
    try:
        if dots:
            return list(range(int(first), int(last) + 1))
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise LogevalError(f"positions={text}: write them as 1..10, or 1,3,5") from None


def _clips(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise LogevalError(f"clips={text}: write numbers, as 1,10,100") from None


replay_validate = function(
    ReplayValidate,
    """
    >>> found = logeval.replay_validate(
    ...     "data/log", positions=[2], parts=3, estimators=["IP", "PBM"], quiet=True)
    >>> [choice["positions"] for choice in found.choices]
    [2]
    """,
)

MOST_SHUFFLES = 100_000
TOP_QUERIES = 20


@stage(
    "replay policy",
    example="logeval replay policy data/yandex --policy dcmKL-UCB --positions 2 --items 4",
    again="logeval replay policy LOG --policy POLICY --out {folder}",
    read="logeval.replay.policy:PolicyReplay.read",
)
class ReplayPolicy(Replaying["PolicyReplay"]):
    """Replay learning policies on the log: a SERP answers when it shows the wanted list.

    On a log of single placements policies choose an item and a position, as Rank1ElimKL. A run is
    a shuffle of the log; equal runs of two policies meet the same order. ``items`` keeps the most
    shown candidates only.
    """

    policies: Annotated[str | type | Sequence[str | type], POLICY]
    _: KW_ONLY
    positions: Annotated[
        int | None,
        Arg("A SERP counts when its first K items match; default: 2, of placements all.", least=1),
    ] = None
    items: Items = None
    horizon: Annotated[int | None, Arg("Accepted SERPs at most; default: 10000.", least=1)] = None
    shuffles: Annotated[int, Arg("Random orders of the log.", least=1, most=MOST_SHUFFLES)] = 10
    checkpoints: Annotated[
        int | Sequence[int] | None, Arg("Steps at which totals are kept.", on_command_line=False)
    ] = None

    def check(self) -> None:
        """Policies that show lists, of enough candidates."""
        from logeval.clicks.rows import LONGEST_LIST
        from logeval.tracks.rank1 import RANK1
        from logeval.tracks.ranking import RANKING

        placed = self.placed
        if self.positions is None and not placed:
            self._set("positions", 2)
        K = self.positions or 1
        if K > LONGEST_LIST:
            raise LogevalError(f"positions={K}: must be at most {LONGEST_LIST:,}")
        if not self.policies:
            raise LogevalError("there is no policy to replay; name one, as dcmKL-UCB")
        track, what = (RANK1, "choose a pair") if placed else (RANKING, "show lists")
        if wrong := [s for s in self.specs if s.track not in (track.name, None)]:
            raise LogevalError(
                f"policy {wrong[0].name}: only policies that {what} can be replayed on this log"
            )
        if self.items is not None and self.items < K and not placed:
            raise LogevalError(f"items={self.items}: a list of {K} needs as many candidates")
        if self.queries is None and self.top_queries is None:
            self._set("top_queries", TOP_QUERIES)

    @property
    def specs(self) -> "list[PolicySpec]":
        """The policies."""
        from logeval.policies.registry import parse_policies

        return parse_policies(self.policies)

    def arguments(self) -> Manifest:
        """The settings, with policies as they print."""
        return super().arguments() | {"policies": [spec.name for spec in self.specs]}

    def own(self) -> list[str]:
        """Policies that are classes of the user's own."""
        return [spec.name for spec in self.specs if not spec.built_in]

    def make(self, manifest: Manifest) -> "PolicyReplay":
        """The replays."""
        from logeval.replay.policy import replay

        return replay(self, manifest)


replay_policy = function(
    ReplayPolicy,
    """
    >>> found = logeval.replay_policy(
    ...     "data/log", ["dcmKL-UCB", "Random"], positions=1, items=3, shuffles=2, quiet=True)
    >>> sorted(found.summary()["policy"])
    ['Random', 'dcmKL-UCB']
    """,
)
