"""Which policies run on which problems: those of a track on the problems of the track."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from logeval.clicks.fit import NO_CLICK
from logeval.errors import LogevalError, unknown_names
from logeval.features.table import Features, read_features
from logeval.log.queries import GivenQueries
from logeval.policies.registry import PolicySpec, tracks_with_own_classes
from logeval.tracks.contextual_problems import BLOCK, fitted_problems, refuse_leaks
from logeval.tracks.fitted import FittedQuery, drawn_queries, fitted_queries, shortened
from logeval.tracks.registry import TRACKS, synthetic_problem
from logeval.tracks.track import Problem


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


def users_of(
    models: Any,
    problem: str | Sequence[str] | None,
    positions: int | None,
    reward: str | None,
    queries: GivenQueries,
    features: Path | str | Features | None = None,
    block: int | None = None,
    same_log: bool = False,
    draws: int = 0,
) -> Users:
    """The users that ``evaluate`` was asked for."""
    if features is None and (block is not None or same_log):
        raise LogevalError("block and same_log are about features, and there are none")
    if draws < 0:
        raise LogevalError(f"draws={draws}: there cannot be fewer than none")
    if draws and (problem is not None or features is not None):
        raise LogevalError("draws are of fitted models, without features")
    if (models is None) == (problem is None):
        raise LogevalError("give either fitted models or a problem")
    if problem is not None:
        if positions is not None or queries is not None:
            raise LogevalError("a synthetic problem has its own K and no queries")
        if features is not None:
            raise LogevalError("a synthetic problem has its own features")
        names = [problem] if isinstance(problem, str) else list(problem)
        problems = [synthetic_problem(name, reward) for name in names]
        simulators = [p.simulator for p in problems]
        if twice := [name for name in simulators if simulators.count(name) > 1]:
            raise LogevalError(f"problem {twice[0]} is given twice")
        tracks = {p.track for p in problems}
        if len(tracks) > 1 and tracks & tracks_with_own_classes():
            raise LogevalError("evaluate problems of the contextual track apart from others")
        return Users(synthetic=tuple(problems))
    folder = models if isinstance(models, str | Path) else None
    if isinstance(models, str | Path):
        from logeval.clicks.collection import read_models

        models = read_models(models)
    chosen = [queries] if isinstance(queries, str | int | tuple) else queries
    fitted = fitted_queries(models, positions, reward, None if chosen is None else list(chosen))
    not_identified = _not_identified(models)
    if features is None:
        if draws:
            fitted = drawn_queries(fitted, models, draws)
        return Users(fitted=tuple(fitted), reward=reward, remarks=not_identified)
    if reward not in (None, "satisfaction"):
        raise LogevalError(f"reward={reward}: the contextual track counts satisfaction")
    found = features if isinstance(features, Features) else read_features(features)
    remark = refuse_leaks(found, getattr(models, "manifest", {}), same_log)
    in_turn = fitted_problems(fitted, found, BLOCK if block is None else block, folder)
    return Users(synthetic=tuple(in_turn), remarks=(*([remark] if remark else []), *not_identified))


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
