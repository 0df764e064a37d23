"""Today's ranker, one replica at a time."""

from __future__ import annotations

import numpy as np

from logeval.policies.random_and_oracle.paper import Fixed
from logeval.policies.shared.replica import Replica
from logeval.running.arrays import Ints


class Logged(Fixed):
    """A list of the log, drawn as often as the log shows it; or always the most frequent one."""

    def __init__(self, replica: Replica) -> None:
        self.actions, p = replica.setting.ask("logged")(replica.r)
        self.up_to = np.cumsum(p) if replica.given.lists == "all" else np.ones(1)
        self.uniforms = replica.uniforms(1)

    def recommend(self, t: int) -> Ints:
        """List i with probability p_i."""
        u = self.uniforms.at(t)[0, 0]
        i = min(int(np.sum(self.up_to <= u)), len(self.up_to) - 1)
        action: Ints = self.actions[i]
        return action
