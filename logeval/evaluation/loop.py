"""The loop: a policy meets an environment, for all replicas in step."""

from __future__ import annotations

import contextlib
import itertools
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import logeval
from logeval.errors import LogevalError
from logeval.evaluation.plan import Unit
from logeval.policies.registry import PolicySpec
from logeval.policies.setting import Policy, Setting
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.running.work import Tick
from logeval.storage.schemas import RUNS
from logeval.tracks.meters import Meter, Meters
from logeval.tracks.registry import TRACKS
from logeval.tracks.track import Environment, Simulation

OURS = str(Path(logeval.__file__).parent)
TICK = 256  # steps between two reports of progress


def run_unit(unit: Unit, tick: Tick) -> pa.Table:
    """The rows of a unit in the runs table; ``tick`` hears the list-steps done."""
    track = TRACKS[unit.problems[0].track]
    environment = track.environment(unit.problems, unit.replicas, unit.seed)
    environment.until(unit.checkpoints[-1])
    replicas = [(unit.problems[q].key, run) for q, run in unit.replicas]
    R, n = len(replicas), len(unit.checkpoints)
    measured = columns_of(
        unit.policy,
        environment,
        track.meters,
        unit.checkpoints,
        [seeds.generator(unit.seed, "policy", *key.path(run), unit.policy.name)
         for key, run in replicas],
        [f"query {key.drawn_query} run {run}" for key, run in replicas],
        lambda steps: tick(steps * R),
        lambda policy: unit.feedback.between(policy, environment, unit.seed),
    )  # fmt: skip
    columns: dict[str, Any] = {
        "simulator": [unit.problems[0].simulator] * (R * n),
        "track": [track.name] * (R * n),
        "policy": [unit.policy.name] * (R * n),
        "query": np.repeat([key.query for key, _ in replicas], n),
        "draw": np.repeat([key.draw for key, _ in replicas], n),
        "run": np.repeat([run for _, run in replicas], n),
        **measured,
    }
    arrays = [
        pa.array(columns[f.name], from_pandas=True).cast(f.type)
        if f.name in columns
        else pa.nulls(R * n, f.type)
        for f in RUNS
    ]
    return pa.Table.from_arrays(arrays, schema=RUNS)


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
