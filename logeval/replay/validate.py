"""``replay validate``: which estimator to trust on this log."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated

from logeval.errors import LogevalError
from logeval.replay.arguments import MOST_PARTS, Estimators, Replaying, Scope, Smoothing, check_clip
from logeval.stage import Arg, Manifest, function, stage

if TYPE_CHECKING:
    from logeval.replay.estimators.estimator import Estimator
    from logeval.replay.validation import Validation


@stage(
    "replay validate",
    example="logeval replay validate data/yandex --positions 1,2,3 --clip 10,100 --parts 5",
    again="logeval replay validate LOG --out {folder}",
    read="logeval.replay.validation:Validation.read",
)
class ReplayValidate(Replaying["Validation"]):
    """Leave one day (or part) out and predict its clicks: which estimator to use on this log.

    A part is one of ``parts`` equal shares of the sessions. With ``randomised`` the targets are
    parts (10 unless told otherwise) of the SERPs that were shown in random order, as the log says,
    and the log is the rest of it. Then it is also said, for the largest of the ``positions``, how
    often the estimators' intervals hold there, and whether they order rankers as the clicks do.
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
    smoothing: Smoothing = 0.0
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
        from logeval.replay.estimators.registry import parse_estimators

        chosen = parse_estimators(self.estimators)
        known = any(e.NAME == "RCTR" for e in chosen)
        return chosen if known else chosen + parse_estimators(["RCTR"])

    def arguments(self) -> Manifest:
        """The settings, with estimators as they print."""
        return super().arguments() | {"estimators": [str(e) for e in self.chosen]}

    def make(self, manifest: Manifest) -> "Validation":
        """The errors of all estimators."""
        from logeval.replay.validation import validate

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


replay_validate = function(ReplayValidate)
