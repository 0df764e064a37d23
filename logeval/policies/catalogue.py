"""What is known of each policy, as a table: all of it stands on the classes (``registry``)."""

from __future__ import annotations

from typing import Any

from logeval.policies.registry import POLICIES, class_in, track_of
from logeval.running.names import options


def catalogue(track: str | None = None) -> list[dict[str, Any]]:
    """One row per policy, of all tracks or as it is in one."""
    rows = []
    for name, cls in POLICIES.items():
        own = class_in(cls, track)
        home, mine = (track_of(c) for c in (cls, own))
        if track is not None and mine not in (track, None):
            continue
        said = {
            key: getattr(own, key, getattr(cls, key, ""))
            for key in ("KNOWS", "READS", "COST", "PAPER")
        }
        rows.append(
            {
                "policy": name,
                "options": options(own),
                "track": mine if home else "any",
                "must know": said["KNOWS"],
                "asks the simulator for": ", ".join(getattr(own, "NEEDS", ())),
                "feedback": said["READS"],
                "cost of a step": said["COST"],
                "paper": said["PAPER"],
            }
        )
    return rows
