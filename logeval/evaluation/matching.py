"""Which policies run on which problems: those of a track on the problems of the track."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from logeval.errors import LogevalError, unknown_names
from logeval.log.queries import GivenQueries
from logeval.policies.registry import PolicySpec
from logeval.tracks.fitted import FittedQuery, fitted_queries, shortened
from logeval.tracks.registry import TRACKS, synthetic_problem
from logeval.tracks.track import Problem


@dataclass(frozen=True)
class Users:
    """Whom to simulate: synthetic problems, each of one track, or fitted click models.

    A click model may be a problem of several tracks: a PBM has lists, and pairs.
    """

    synthetic: tuple[Problem, ...] = ()
    fitted: tuple[FittedQuery, ...] = ()
    reward: str | None = None

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

    def notes(self) -> list[str]:
        """What the user should know about them."""
        note = shortened(self.fitted)
        return [note] if note else []


def users_of(
    models: Any,
    problem: str | Sequence[str] | None,
    positions: int | None,
    reward: str | None,
    queries: GivenQueries,
) -> Users:
    """The users that ``evaluate`` was asked for."""
    if (models is None) == (problem is None):
        raise LogevalError("give either fitted models or a problem")
    if problem is not None:
        if positions is not None or queries is not None:
            raise LogevalError("a synthetic problem has its own K and no queries")
        names = [problem] if isinstance(problem, str) else list(problem)
        problems = [synthetic_problem(name, reward) for name in names]
        simulators = [p.simulator for p in problems]
        if twice := [name for name in simulators if simulators.count(name) > 1]:
            raise LogevalError(f"problem {twice[0]} is given twice")
        return Users(synthetic=tuple(problems))
    if isinstance(models, str | Path):
        from logeval.clicks.collection import read_models

        models = read_models(models)
    chosen = [queries] if isinstance(queries, str | int | tuple) else queries
    fitted = fitted_queries(models, positions, reward, None if chosen is None else list(chosen))
    return Users(fitted=tuple(fitted), reward=reward)


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
