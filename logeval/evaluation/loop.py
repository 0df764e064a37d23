"""The loop: a policy meets an environment, for all replicas in step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from logeval.arrays import Ints
from logeval.errors import LogevalError
from logeval.policies.setting import Policy, Setting
from logeval.tracks.meters import Meters
from logeval.tracks.track import Environment

TICK = 256  # steps between two reports of progress


def run(
    environment: Environment,
    policy: Policy,
    meters: Meters,
    checkpoints: Sequence[int],
    tick: Callable[[int], None] = lambda steps: None,
) -> None:
    """Run the policy until the last checkpoint; ``tick`` hears how many steps were done."""
    horizon, recorded = checkpoints[-1], set(checkpoints)
    for t in range(1, horizon + 1):
        A = policy.recommend(t)
        clicks = environment.step(A)
        meters.add(t, A, clicks)
        policy.update(t, A, clicks)
        if t in recorded:
            meters.record()
        if t % TICK == 0:
            tick(TICK)
    tick(horizon % TICK)


class CheckedPolicy:
    """A user's policy whose actions are checked before the compiled code indexes with them.

    The places of a list have the same items, which must differ; those of a pair do not.
    """

    def __init__(self, policy: Policy, name: str, setting: Setting) -> None:
        self.policy, self.name = policy, name
        self.limits, self.distinct = setting.limits, setting.distinct

    def recommend(self, t: int) -> Ints:
        """The policy's lists, as int64."""
        A = np.asarray(self.policy.recommend(t))
        if A.shape != self.limits.shape or A.dtype.kind not in "iu":
            raise LogevalError(
                f"policy {self.name}: recommend must return integers of shape "
                f"{self.limits.shape}, not {A.dtype} of shape {A.shape}"
            )
        wrong = ((A < 0) | (A >= self.limits)).any(axis=1)
        if self.distinct:
            ordered = np.sort(A, axis=1)
            wrong |= (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if wrong.any():
            r = int(np.argmax(wrong))
            different = "different " if self.distinct else ""
            raise LogevalError(
                f"policy {self.name}: at step {t} the choice {A[r].tolist()} of replica {r} must "
                f"hold {different}labels from 0 to {(self.limits[r] - 1).tolist()}"
            )
        return np.array(A, dtype=np.int64, order="C")  # a copy: the policy may write on its own

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Pass the clicks on."""
        self.policy.update(t, A.copy(), clicks.copy())
