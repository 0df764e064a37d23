"""What a policy hears of the clicks: forged ones, late ones, or none.

Regret, and all else that is measured, is of what users really did.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from logeval.errors import LogevalError
from logeval.facts import Fact
from logeval.policies.setting import Policy
from logeval.running import seeds
from logeval.running.arrays import Bools, Ints

TARGETS = ("worst", "best")


@dataclass(frozen=True)
class Feedback:
    """How clicks are forged, and how late they are.

    A number of forged steps is that of the first ones, as an attacker with a budget would spend it;
    a share is of steps at random. ``worst``: the K items least worth are clicked wherever they are
    shown, and nothing else is. ``best``: the best items are not clicked.
    """

    forged: float = 0.0  # below 1 a share of the steps, else the number of the first ones
    target: str = TARGETS[0]
    delay: int = 0  # steps
    lost: float = 0.0  # share of the steps whose clicks never arrive

    @classmethod
    def parse(cls, corrupt: str | None, delay: str | int | None) -> Feedback:
        """``0.05@worst`` or ``500@best``; ``100``, or ``100@0.2`` where a fifth is lost."""
        amount, _, target = str(corrupt or 0).partition("@")
        steps, _, lost = str(delay or 0).partition("@")
        try:
            found = cls(float(amount), target or TARGETS[0], int(steps), float(lost or 0.0))
        except ValueError:
            found = cls(-1.0)
        whole = found.forged < 1.0 or found.forged.is_integer()
        if corrupt is not None and (
            found.target not in TARGETS or not 0 < found.forged or not whole
        ):
            raise LogevalError(
                f"corrupt={corrupt}: write a share of the steps, or the number of the first ones, "
                f"and the items: 0.05@worst, 500@best"
            )
        if delay is not None and (found.forged < 0 or found.delay < 0 or not 0 <= found.lost < 1):
            raise LogevalError(f"delay={delay}: write steps, as 100, or 100@0.2 if a fifth is lost")
        return found

    @property
    def is_plain(self) -> bool:
        """Whether policies hear everything, at once."""
        return not (self.forged or self.delay or self.lost)

    def facts(self) -> list[Fact]:
        """What the user should have in mind."""
        found = []
        if self.forged:
            how = "share" if self.forged < 1 else "first"
            found.append(Fact(f"forged-{how}-{self.target}", level="caution", value=self.forged))
        if self.delay:
            found.append(Fact("clicks-late", level="caution", value=float(self.delay)))
        if self.lost:
            found.append(Fact("clicks-lost", level="caution", value=self.lost))
        return found

    def __str__(self) -> str:
        """As the manifest has it."""
        return f"corrupt={self.forged:.12g}@{self.target} delay={self.delay}@{self.lost:.12g}"

    def between(self, policy: Policy, environment: Any, seed: int) -> Policy:
        """The policy, which hears of clicks in this way."""
        return policy if self.is_plain else Disturbed(policy, environment, self, seed)


def check_late(name: str, policy: type) -> None:
    """Refuse a policy that can only learn from the list it has just shown."""
    if not getattr(policy, "LATE", False):
        raise LogevalError(
            f"delay: {name} learns only from the list that it has just shown; take one that keeps "
            "counts, as dcmKL-UCB, CascadeKL-UCB or SW-dcmKL-UCB, or declare LATE = True on a "
            "class of your own"
        )


class Disturbed:
    """A policy behind forged or late clicks; all replicas wait alike."""

    def __init__(self, policy: Policy, environment: Any, feedback: Feedback, seed: int) -> None:
        self._policy, self._feedback = policy, feedback
        self._forges = [environment.generator("forged", r) for r in environment.rows]
        self._loses = seeds.generator(seed, "lost")  # the same for all policies and replicas
        self._waiting: deque[tuple[int, Ints, Ints]] = deque()
        self._target = _targets(environment, feedback.target) if feedback.forged else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def recommend(self, t: int) -> Ints:
        """What the policy says."""
        return self._policy.recommend(t)

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Some steps later, or never, with some of the clicks forged."""
        seen = clicks.copy()
        if self._target is not None:
            self._forge(t, A, seen)
        lost = bool(self._feedback.lost) and self._loses.random() < self._feedback.lost
        if not self._feedback.delay:
            if not lost:
                self._policy.update(t, A, seen)
            return
        if not lost:
            self._waiting.append((t, A.copy(), seen))
        if self._waiting and self._waiting[0][0] <= t - self._feedback.delay:
            self._policy.update(*self._waiting.popleft())

    def _forge(self, t: int, A: Ints, seen: Ints) -> None:
        assert self._target is not None
        amount = self._feedback.forged
        if amount < 1.0:
            forged = np.array([one.random() for one in self._forges]) < amount
        else:
            forged = np.full(len(A), t <= amount)
        on_target = np.take_along_axis(self._target, A, axis=1)
        if self._feedback.target == "best":
            seen[forged[:, None] & on_target] = 0
        else:
            there = forged & on_target.any(axis=1)
            seen[there] = on_target[there]


def _targets(environment: Any, target: str) -> Bools:
    """(R, L) the items, by label, whose clicks are forged."""
    K, L = environment.K, environment.L
    found = np.zeros((len(L), int(L.max())), dtype=np.bool_)
    for r, users in enumerate(environment.users):
        best = environment.best[r]
        if target == "best":
            found[r, best] = True
        else:
            others = np.setdiff1d(np.argsort(users.w, kind="stable"), best, assume_unique=True)
            found[r, others[:K]] = True
    return found


PLAIN = Feedback()
