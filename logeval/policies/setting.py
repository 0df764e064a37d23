"""What a policy is told before the first step, and what it must offer.

A policy works on all R replicas at once. Its whole interface, also for users' own policies in
plain NumPy, is::

    class MyPolicy:
        def __init__(self, setting): ...
        def recommend(self, t): ...            # lists (R, K) of item numbers below L[r]
        def update(self, t, A, clicks): ...    # the same lists, and their clicks (R, K)

Item numbers are labels, which the environment draws at random for every replica: their order says
nothing. ``Setting`` holds what a deployed policy would know. What only a simulator can give is a
capability: the class declares it (``NEEDS = ("free_samples",)``) and asks for it by name
(``setting.ask("free_samples")``). An environment that cannot give it, for instance a replay of the
log, refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from logeval.errors import LogevalError, unknown_names
from logeval.running.arrays import Floats, Ints


class Capability(NamedTuple):
    """Something that a simulator may know and a deployed policy would not."""

    meaning: str
    remedy: str  # what to do where it is refused


CAPABILITIES = {
    "free_samples": Capability(
        "a function (r, m): m clicks (m, L[r]) on each item of replica r alone, at no cost",
        "leave out init=sample: by default every item is observed in real steps",
    ),
    "best": Capability("the optimal actions (R, W)", "leave this policy out"),
    "best_items": Capability(
        "the items (R, K) of the best lists, the most attractive first",
        "leave this policy out",
    ),
    "position_order": Capability(
        "the positions (R, K), those first that count most in the best list",
        "name the order, as order=2>1>3",
    ),
    "examination": Capability(
        "the examination (R, K) of the positions of a PBM",
        "evaluate it on a PBM, or let it learn the examination with kappa=estimated",
    ),
    "base_list": Capability(
        "a list (R, K) for each replica to start from: the one that the log shows most often",
        "fit the models again, from a log whose lists are long enough, or name the list of a "
        "synthetic problem (base=2>1>3)",
    ),
    "logged": Capability(
        "a function (r): the actions (n, W) of replica r that the log shows, and how often each",
        "evaluate models that `logeval fit-models` fitted to a log, without features",
    ),
    "common": Capability(
        "a function: the mean attraction over all users of the items of the round",
        "leave this policy out",
    ),
    "contexts": Capability(
        "the features of the items of each round (policies.setting.Contexts)",
        'give features, or the problem "contextual(L=100,K=5,d=20,norm=1,contexts=fixed)"',
    ),
}


class Policy(Protocol):
    """The interface of a policy."""

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t = 1, 2, ..."""

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """The clicks (R, K) on the lists A."""


@runtime_checkable
class Eliminating(Protocol):
    """What a policy of the rank-1 track may offer in addition."""

    def remaining(self) -> Ints:
        """(R, 2) the rows and columns that are not eliminated."""


class Round(NamedTuple):
    """The ground set of a round, for all replicas.

    The context of item a of replica r is ``X[table[r], row[r, a]]``. Where contexts repeat, a row
    of X is always the same item of the same query; else X is written anew for every round.
    """

    X: Floats  # (tables, M, d)
    table: Ints  # (R,)
    row: Ints  # (R, L)
    arm: Ints  # (R, L) the item, numbered through over all queries, for who ignores contexts
    order: Ints  # (R, K) positions from the most to the least terminating
    query: int  # number of the query that is asked
    block: int  # number of the block: each block of rounds asks one query


class Contexts(Protocol):
    """The capability ``contexts``: what the environment tells in addition to the clicks."""

    d: int  # length of a context
    M: int  # rows of X
    arms: int  # items of all queries
    queries: int
    widest: int  # items of the largest ground set
    repeat: bool  # whether a row of X stays the same item

    def at(self, t: int) -> Round:
        """The round t."""


class Actions(Protocol):
    """What a ``Setting`` takes from an environment."""

    limits: Ints  # (R, W) the number of choices at each place of an action
    distinct: bool  # whether the places of an action must differ, as those of a list
    offers: Mapping[str, Any]  # capabilities by name


@dataclass(frozen=True)
class Setting:
    """The problem as a policy knows it.

    An action of a replica is a row of W numbers, at place k one below ``limits[r, k]``. A list has
    K = W places for L items, all different; a pair has two places, for a row and a column.
    """

    limits: Ints  # (R, W)
    distinct: bool  # lists: the W places must hold different items
    horizon: int  # number of steps
    generators: Sequence[np.random.Generator]  # one per replica, for the policy alone
    offers: Mapping[str, Any] = field(default_factory=dict, repr=False)  # ask for them by name
    needs: tuple[str, ...] = ()  # the capabilities that the policy declares
    policy: str = "of this setting"

    @classmethod
    def of(
        cls, environment: Actions, horizon: int, generators: Sequence[np.random.Generator]
    ) -> Setting:
        """What the environment tells everybody."""
        return cls(
            environment.limits, environment.distinct, horizon, generators, offers=environment.offers
        )

    def tell(self, policy: type, name: str) -> Setting:
        """The setting as the policy called ``name`` may see it, with the capabilities it needs."""
        needs = tuple(getattr(policy, "NEEDS", ()))
        if unknown := [need for need in needs if need not in CAPABILITIES]:
            raise unknown_names(f"capability in NEEDS of policy {name}", unknown, CAPABILITIES)
        return replace(self, needs=needs, policy=name)

    def ask(self, name: str) -> Any:
        """The capability ``name`` (see ``CAPABILITIES``), if declared and if there is such."""
        if name not in CAPABILITIES:
            raise unknown_names("capability", [name], CAPABILITIES)
        if name not in self.needs:
            raise LogevalError(
                f"policy {self.policy}: asks for {name} and does not declare it; "
                f'add NEEDS = ("{name}",) to its class'
            )
        if name not in self.offers:
            raise LogevalError(
                f"policy {self.policy}: needs {name}, which this environment cannot give; "
                f"{CAPABILITIES[name].remedy}"
            )
        return self.offers[name]

    @property
    def R(self) -> int:
        """Number of replicas."""
        return len(self.limits)

    @property
    def K(self) -> int:
        """Positions of a list."""
        return int(self.limits.shape[1])

    @property
    def L(self) -> Ints:
        """(R,) number of items to make a list of."""
        return self.limits[:, 0]

    @property
    def rows(self) -> Ints:
        """(R,) number of rows to choose a pair from."""
        return self.limits[:, 0]

    @property
    def columns(self) -> Ints:
        """(R,) number of columns to choose a pair from; the same for all replicas."""
        return self.limits[:, 1]
