"""What problems and their runs are called, in tables, manifests and seeds."""

from __future__ import annotations

from typing import NamedTuple


class Panel(NamedTuple):
    """A simulator in one of its tracks: regrets of two tracks do not compare."""

    simulator: str
    track: str

    def __str__(self) -> str:
        return f"{self.simulator} ({self.track})"


class ProblemKey(NamedTuple):
    """One query of a simulator in one of its tracks, or a draw of its parameters."""

    simulator: str
    track: str
    query: str
    draw: int = 0  # 0: the fitted values

    @property
    def drawn_query(self) -> str:
        """The query, with the number of the draw unless it is of the fitted values."""
        return f"{self.query}#{self.draw}" if self.draw else self.query

    def path(self, run: int) -> tuple[str, str, int]:
        """What the random numbers of a run are named after."""
        return self.simulator, self.drawn_query, run

    def __str__(self) -> str:
        return f"{self.simulator} {self.drawn_query} ({self.track})"


class ReplicaKey(NamedTuple):
    """One run of a policy on a problem: the columns that name it in the runs table."""

    simulator: str
    track: str
    policy: str
    query: str
    draw: int
    run: int

    @property
    def problem(self) -> ProblemKey:
        """The problem."""
        return ProblemKey(self.simulator, self.track, self.query, self.draw)
