"""Which policies run on which problems: those of a track on the problems of the track."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from logeval.clicks.collection import read_models
from logeval.clicks.fitting import NO_CLICK
from logeval.errors import LogevalError, unknown_names
from logeval.features.table import Features, read_features
from logeval.policies.registry import PolicySpec, tracks_with_own_classes
from logeval.storage.manifests import work_of
from logeval.tracks.contextual_problems import BLOCK, fitted_problems, refuse_leaks
from logeval.tracks.fitted import FittedQuery, drawn_queries, fitted_queries, shortened
from logeval.tracks.registry import TRACKS, synthetic_problem
from logeval.tracks.track import Problem

if TYPE_CHECKING:
    from logeval.evaluation.evaluate import Evaluate


class MadeFrom(NamedTuple):
    """The models of the users: their folder, if they have one, and the work that made them."""

    folder: str | None = None
    work: str | None = None


NOWHERE = MadeFrom()


@dataclass(frozen=True)
class Users:
    """Whom to simulate: synthetic problems, each of one track, or fitted click models.

    A click model may be a problem of several tracks: a PBM has lists, and pairs. With features it
    is a problem of the contextual track, and given as such.
    """

    synthetic: tuple[Problem, ...] = ()
    fitted: tuple[FittedQuery, ...] = ()
    reward: str | None = None
    remarks: tuple[str, ...] = ()  # on what they were made from
    made_from: MadeFrom = NOWHERE

    @property
    def track(self) -> str:
        """The track of policies that are at home in any: the first that has problems."""
        mine = {problem.track for problem in self.synthetic}
        return next(name for name in TRACKS if self.fitted or name in mine)

    def problems(self, track: str) -> list[Problem]:
        """The problems of a track; an error if it has none."""
        if self.fitted:
            return list(TRACKS[track].problems(self.fitted, self.reward))
        found = [problem for problem in self.synthetic if problem.track == track]
        if not found:
            raise LogevalError(
                f"policies of the track {track} cannot run on a {self.synthetic[0].track} problem"
            )
        return found

    def notes(self, problems: Sequence[Problem] = ()) -> list[str]:
        """What the user should know about them, and about the problems that they make."""
        note = shortened(self.fitted)
        return [*([note] if note else []), *self.remarks, *unproven(problems)]


def unproven(problems: Sequence[Problem]) -> list[str]:
    """What to tell the user where the best list was searched for, and not proven to be best."""
    found = []
    for simulator in dict.fromkeys(problem.simulator for problem in problems):
        proven = [getattr(p, "proven", True) for p in problems if p.simulator == simulator]
        if not all(proven):
            found.append(
                f"{simulator}: the best list was searched for and is not proven to be best for "
                f"{proven.count(False)} of {len(proven)} queries; regret there may be too small"
            )
    return found


def users_of(asked: Evaluate) -> Users:
    """The users that ``evaluate`` was asked for."""
    if asked.problem is not None:
        problems = [synthetic_problem(name, asked.reward) for name in asked.problem]
        simulators = [p.simulator for p in problems]
        if twice := [name for name in simulators if simulators.count(name) > 1]:
            raise LogevalError(f"problem {twice[0]} is given twice")
        tracks = {p.track for p in problems}
        if len(tracks) > 1 and tracks & tracks_with_own_classes():
            raise LogevalError("evaluate problems of the contextual track apart from others")
        return Users(synthetic=tuple(problems))
    folder = asked.models if isinstance(asked.models, str | Path) else None
    models: Any = asked.models if folder is None else read_models(folder)
    manifest = getattr(models, "manifest", {})
    found = MadeFrom(None if folder is None else str(folder), work_of(manifest))
    fitted = fitted_queries(models, asked.positions, asked.reward, asked.wanted)
    not_identified = _not_identified(models)
    if asked.features is None:
        if asked.draws:
            fitted = drawn_queries(fitted, models, asked.draws)
        return Users((), tuple(fitted), asked.reward, not_identified, found)
    features = asked.features
    features = features if isinstance(features, Features) else read_features(features)
    remark = refuse_leaks(features, manifest, asked.same_log)
    block = BLOCK if asked.block is None else asked.block
    in_turn = fitted_problems(fitted, features, block, folder)
    remarks = (*([remark] if remark else []), *not_identified)
    return Users(synthetic=tuple(in_turn), remarks=remarks, made_from=found)


def _not_identified(models: Any) -> tuple[str, ...]:
    reports = [fitted.report for fitted in getattr(models, "fitted", {}).values()]
    notes = [note for report in reports for note in report.get("notes", [])]
    return tuple(note for note in notes if "not identified" in note or NO_CLICK in note)


def in_tracks(specs: Sequence[PolicySpec], track: str | None, default: str) -> list[PolicySpec]:
    """The policies, each in its own track; Random and Oracle in every track that the others have.

    ``track`` allows one track only; ``default`` is that of these two alone.
    """
    if track is not None and track not in TRACKS:
        raise unknown_names("track", [track], TRACKS)
    if strange := [str(s.track) for s in specs if s.track not in (*TRACKS, None)]:
        raise unknown_names("track of a policy", strange, TRACKS)
    wrong = [s for s in specs if track is not None and s.track not in (track, None)]
    if wrong:
        raise LogevalError(f"policy {wrong[0].name} is not of the track {track}")
    present = [t for t in TRACKS if any(s.track == t for s in specs)] or [track or default]
    return [replace(s, track=t) for s in specs for t in present if s.track in (t, None)]
