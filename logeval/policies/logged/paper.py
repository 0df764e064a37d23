"""Today's ranker, one replica at a time."""

from __future__ import annotations

import numpy as np

from logeval.policies.shared.replica import Replica
from logeval.running.arrays import Ints


class Logged:
    """A list of the log, drawn as often as the log shows it; or always the most frequent one."""

    def __init__(self, replica: Replica, lists: str = "all") -> None:
        self.actions, p = replica.setting.ask("logged")(replica.r)
        self.up_to = np.cumsum(p) if lists == "all" else np.ones(1)
        self.uniforms = replica.uniforms(1)

    def recommend(self, t: int) -> Ints:
        """List i with probability p_i."""
        u = self.uniforms.at(t)[0, 0]
        i = min(int(np.sum(self.up_to <= u)), len(self.up_to) - 1)
        return self.actions[i]

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Nothing to learn."""
