"""What a policy hears of the clicks: forged ones, late ones, or none.

Regret, and all else that is measured, is of what users really did.

The loop: a policy meets an environment, for all replicas in step.
"""

from __future__ import annotations

import contextlib
import itertools
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import logeval
from logeval.errors import LogevalError
from logeval.policies.registry import PolicySpec
from logeval.policies.setting import Policy, Setting
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, Ints
from logeval.tracks.meters import Meter, Meters
from logeval.tracks.track import Environment, Simulation

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

    def __str__(self) -> str:
        parts = []
        if self.forged:
            which = (
                f"{self.forged:.3g} of the steps"
                if self.forged < 1
                else (f"the first {self.forged:,.0f} steps")
            )
            what = (
                "the worst items are clicked wherever they are shown, and nothing else"
                if self.target == "worst"
                else "the best items are not clicked"
            )
            parts.append(f"clicks are forged in {which}: {what}")
        if self.delay:
            parts.append(f"clicks arrive {self.delay:,} steps late")
        if self.lost:
            parts.append(f"the clicks of {self.lost:.3g} of the steps never arrive")
        return "; ".join([*parts, "regret is of what users really did"])

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


def notes_of(feedback: Feedback) -> Sequence[str]:
    """What to tell the user."""
    return [] if feedback.is_plain else [str(feedback)]


OURS = str(Path(logeval.__file__).parent)
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
    simulation = environment if isinstance(environment, Simulation) else None
    changes = () if simulation is None else simulation.change_points
    for t in range(1, horizon + 1):
        if simulation is not None and t in changes:
            simulation.change(t)
        A = policy.recommend(t)
        clicks = environment.step(A)
        meters.add(t, A, clicks)
        policy.update(t, A, clicks)
        if t in recorded:
            meters.record(t)
        if t % TICK == 0:
            tick(TICK)
    tick(horizon % TICK)


def columns_of(
    spec: PolicySpec,
    environment: Environment,
    kinds: Sequence[type[Meter]],
    checkpoints: Sequence[int],
    generators: Sequence[np.random.Generator],
    replicas: Sequence[str],
    tick: Callable[[int], None] = lambda steps: None,
    heard: Callable[[Policy], Policy] = lambda policy: policy,
) -> dict[str, Floats | Ints]:
    """Run a policy: ``t`` and what the meters measure, checkpoint by checkpoint of each replica.

    The generators are the policy's own; ``replicas`` are how errors call the replicas. ``heard``
    may stand between the policy and the clicks.
    """
    setting = Setting.of(environment, checkpoints[-1], generators)
    if spec.built_in:
        policy = spec.make(setting)
    else:
        with naming(spec.name, "cannot be made", replicas):
            policy = spec.make(setting)
    meters = Meters(kinds, environment, policy)
    if not spec.built_in:
        policy = CheckedPolicy(policy, spec.name, setting, replicas)
    run(environment, heard(policy), meters, checkpoints, tick)
    measured = {name: values.ravel() for name, values in meters.columns().items()}
    return {"t": np.tile(checkpoints, len(replicas)), **measured}


class CheckedPolicy:
    """A user's policy whose actions are checked before the compiled code indexes with them.

    The places of a list have the same items, which must differ; those of a pair do not.
    """

    def __init__(
        self, policy: Policy, name: str, setting: Setting, replicas: Sequence[str] = ()
    ) -> None:
        self.policy, self.name, self.replicas = policy, name, replicas
        self.limits, self.distinct = setting.limits, setting.distinct

    def recommend(self, t: int) -> Ints:
        """The policy's lists, as int64."""
        with naming(self.name, f"recommend fails at step {t}", self.replicas):
            returned = self.policy.recommend(t)
        A = np.asarray(returned)
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
        with naming(self.name, f"update fails at step {t}", self.replicas):
            self.policy.update(t, A.copy(), clicks.copy())


@contextlib.contextmanager
def naming(policy: str, what: str, replicas: Sequence[str] = ()) -> Iterator[None]:
    """An exception of a user's policy, said with its place and its own part of the traceback.

    A policy works on all replicas of a unit at once, so these are named from the first to the last.
    """
    try:
        yield
    except LogevalError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = itertools.dropwhile(lambda frame: frame.filename.startswith(OURS), frames)
        among = f", among the replicas {' to '.join(replicas[:: len(replicas) - 1 or 1])}"
        raise LogevalError(
            f"policy {policy}: {what}{among if replicas else ''}\n"
            + "".join(traceback.format_list(list(own)))
            + "".join(traceback.format_exception_only(error)).rstrip()
        ) from None
