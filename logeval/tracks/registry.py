"""Tracks by name: one line each, in the order in which they are run and reported."""

from __future__ import annotations

from logeval.errors import unknown_names
from logeval.running.names import parse_call
from logeval.tracks.contextual import CONTEXTUAL
from logeval.tracks.rank1 import RANK1
from logeval.tracks.ranking import RANKING
from logeval.tracks.track import Problem, Track

TRACKS: dict[str, Track] = {track.name: track for track in (RANKING, RANK1, CONTEXTUAL)}


def synthetic_problem(text: str, reward: str | None = None) -> Problem:
    """A synthetic problem of any track by its name, ``rank1(K=6,L=4,p=0.25,gap=0.5)``.

    ``rank1:K=6,L=4,...`` is the same: a shell needs no quotes for it.
    """
    if "(" not in text:
        name, colon, parameters = text.partition(":")
        text = f"{name}({parameters})" if colon else text
    known = {name: track for track in TRACKS.values() for name in track.synthetic}
    name = parse_call(text)[0]
    found = [one for one in known if one.lower() == name.lower()]
    if not found:
        raise unknown_names("problem", [name], known)
    track = known[found[0]]
    track.check_reward(reward)
    return track.synthetic[found[0]](text, reward)


def home_track(features: bool) -> str:
    """The track of policies that are at home in any: the first that takes features, or none."""
    return next(track.name for track in TRACKS.values() if track.features == features)
