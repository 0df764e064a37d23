"""What every click model offers: click probabilities, sampling, rewards, the best list.

A model is a frozen dataclass of the parameters of one query. It says, by ``users``, which
users it describes (a chain or a browsing user), and everything else follows from them.
Users speak item ids: ``best_list`` and ``click_probs``. Everything else works on many lists at
once, and there a list ``A`` holds the items' row numbers 0..L-1; ``items[i]`` is the id of row i,
and ``rows_of`` turns ids into rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from logeval.clicks.users.chain import Chain, Formulas
from logeval.clicks.users.choice import Choice
from logeval.clicks.users.mixture import Mixture, Users
from logeval.clicks.users.optimum import Optimum, best_browsing, best_chain
from logeval.errors import LogevalError, unknown_names
from logeval.running.arrays import Bools, Floats, Ints, place_of
from logeval.running.seeds import generator

if TYPE_CHECKING:
    from logeval.clicks.estimation.classes import ClassesEstimate
    from logeval.clicks.estimation.estimates import ModelEstimate, Options
    from logeval.clicks.estimation.latent import Latent
    from logeval.clicks.estimation.patterns import FoldedClicks

Kind = Literal["item", "position", "transition", "scalar"]
Examined = Literal["position", "transition", "decay", "last-click", "first-click", "shown"]


class Parameter(NamedTuple):
    """A parameter of a model: its field, its name in tables, and what it depends on."""

    field: str
    name: str
    kind: Kind  # item (L,), position (K,), transition (K, K + 1), or scalar


@dataclass(frozen=True)
class ClickModel(ABC):
    """One query: ``items`` (L,) and ``K`` positions; the parameters are the subclass's."""

    items: Ints
    K: int

    name: ClassVar[str]
    PARAMETERS: ClassVar[tuple[Parameter, ...]]
    # what a list can earn; the model's own comes first
    rewards: ClassVar[tuple[str, ...]] = ("clicks", "any-click")
    methods: ClassVar[tuple[str, ...]]  # estimators; the first is the default
    from_counts: ClassVar[bool] = False  # whether impressions and clicks by position are enough
    ALIASES: ClassVar[dict[str, str]] = {}  # other names of estimators
    # what only this model can be asked for when it is fitted: values by name, the default first
    OPTIONS: ClassVar[dict[str, tuple[str, ...]]] = {}
    # what decides whether a user examined a result (``support.identified``); None: nothing is known
    examined_by: ClassVar[Examined | None] = None

    @property
    @abstractmethod
    def users(self) -> Users:
        """The users this model describes."""

    @classmethod
    def fit(cls, data: FoldedClicks, options: Options) -> ModelEstimate:
        """Estimate the parameters of all queries in ``data`` in one pass."""
        return cls.fit_classes(data, options, 1).parts[0]

    @classmethod
    def beside(cls, data: FoldedClicks, options: Options) -> Latent:
        """The model beside clicks: what EM and the posterior need of it."""
        raise LogevalError(
            f"{cls.name} cannot be fitted in classes of users; give it a method `beside`, as the "
            "built-in models have, or leave classes out"
        )

    @classmethod
    def fit_classes(
        cls, data: FoldedClicks, options: Options, classes: int | str
    ) -> ClassesEstimate:
        """Users in so many classes, or ``auto``: by EM around ``beside``."""
        from logeval.clicks.estimation.classes import fit_classes

        return fit_classes(cls, data, options, classes)

    @classmethod
    def has_method(cls, asked: str) -> bool:
        """Whether it has an estimator of that name."""
        return cls.ALIASES.get(asked, asked) in cls.methods

    @classmethod
    def method(cls, asked: str | None) -> str:
        """The estimator of that name, or the default of a model that has none of that name."""
        name = cls.ALIASES.get(asked or "", asked)
        return name if name in cls.methods else cls.methods[0]

    @property
    def L(self) -> int:
        """The number of items."""
        return len(self.items)

    def _repr_html_(self) -> str:
        """The parameters of the items, and those of the positions."""
        import pandas as pd

        shapes = {"item": ("item", self.items), "position": ("position", np.arange(1, self.K + 1))}
        parts = [f"<p>{self.name} of one query: {self.L:,} items, {self.K} positions</p>"]
        for kind, (name, ids) in shapes.items():
            values = {p.name: getattr(self, p.field) for p in self.PARAMETERS if p.kind == kind}
            frame = pd.DataFrame({name: ids.astype(str), **values})
            if values:
                parts.append(frame.to_html(index=False, max_rows=20, float_format="{:.4f}".format))
        return "".join(parts)

    def only(self, rows: Ints) -> ClickModel:
        """The same users, of some of the items."""
        own = {p.field: getattr(self, p.field)[rows] for p in self.PARAMETERS if p.kind == "item"}
        return replace(self, items=self.items[rows], **own)

    def rows_of(self, items: Any) -> Ints:
        """The rows of item ids, in their shape; an error for an id that is not the query's."""
        try:
            given = np.asarray(items)
        except ValueError:
            given = np.array([], dtype=object)  # lists of different lengths
        if given.dtype.kind not in "iu" or given.ndim not in (1, 2):
            raise LogevalError(f"{self.name}: a list holds item ids, as [70, 71]; not {items!r}")
        rows = place_of(given, self.items)
        if (wrong := given[rows < 0]).size:
            few = ", ".join(map(str, self.items[:5]))
            more = f", ... ({self.L} in all)" if self.L > 5 else ""
            raise LogevalError(f"{self.name}: there is no item {wrong.flat[0]}; it has {few}{more}")
        return rows

    def click_probs(self, items: Any) -> Floats:
        """P(c_k = 1) at each position of a list of item ids, (K,), or of n lists, (n, K)."""
        p = self.click_probs_of_rows(self._lists(items))
        return p if np.ndim(items) == 2 else p[0]

    def _lists(self, items: Any) -> Ints:
        """The rows of a list of item ids, or of n lists, (n, K), that the model can show."""
        A = np.atleast_2d(self.rows_of(items))
        if not 1 <= A.shape[1] <= self.K:
            raise LogevalError(
                f"{self.name}: a list of {A.shape[1]} items; it has {self.K} positions"
            )
        ordered = np.sort(A, axis=1)
        if (twice := ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]]).size:
            raise LogevalError(f"{self.name}: item {self.items[twice[0]]} is twice in a list")
        return A

    def click_probs_of_rows(self, A: Ints) -> Floats:
        """P(c_k = 1) of each list of rows, (n, K)."""
        return self.users.click_probs(A)

    def simulate(self, items: Any, n: int, *, seed: int = 0) -> Ints:
        """The clicks (n, K) of n users on a list of item ids; the same seed, the same users."""
        A = self._lists(items)
        if np.ndim(items) != 1:
            raise LogevalError(f"{self.name}: simulate takes one list of item ids, as [70, 71]")
        if index(n) < 0:
            raise LogevalError(f"n={n}: the number of users must be 0 or more")
        uniforms = generator(seed, "simulate", self.name).random((index(n), A.shape[1]))
        return self.sample(np.repeat(A, index(n), axis=0), uniforms)

    def conditional_click_probs(self, A: Ints, c: Ints | Bools) -> Floats:
        """P(c_k = 1 | c_<k) of each list and its clicks, (n, K)."""
        return self.users.conditional_click_probs(A, c)

    def sample(self, A: Ints, uniforms: Floats) -> Ints:
        """Clicks (n, K) of one user per list, from one uniform per position."""
        return self.users.sample(A, uniforms)

    def expected_reward(self, A: Ints, reward: str | None = None) -> Floats:
        """The expected reward of each list, (n,)."""
        return self.users.expected_reward(A, self._reward(reward))

    def log_likelihood(self, A: Ints, c: Ints | Bools) -> Floats:
        """ln P(c) of each list and its clicks, (n,); -inf for clicks that cannot happen."""
        p = self.conditional_click_probs(A, c)
        with np.errstate(divide="ignore"):
            return np.log(np.where(np.asarray(c).astype(np.bool_), p, 1.0 - p)).sum(axis=1)

    def optimum(self, K: int | None = None, reward: str | None = None) -> Optimum:
        """A list of K items with the highest expected reward, its value, whether proven."""
        K = self.K if K is None else index(K)
        if not 1 <= K <= min(self.K, self.L):
            raise LogevalError(
                f"{self.name}: a list of {K} is asked for; the model has {self.K} positions "
                f"and {self.L} items"
            )
        found = self.best(K, self._reward(reward))
        rows = np.ravel(found.A) if isinstance(found, Optimum) else np.zeros(0)
        if (
            len(rows) != K
            or np.isin(np.arange(self.L), rows).sum() != K
            or found.value != found.value
        ):
            raise LogevalError(
                f"click model {type(self).__name__}: best must give an Optimum with {K} different "
                f"rows, and a value; it gave {found!r:.100}"
            )
        return found

    def best(self, K: int, reward: str) -> Optimum:
        """``optimum``, of checked arguments."""
        users = self.users
        assert not isinstance(users, Mixture | Choice)  # which know theirs
        find = best_chain if isinstance(users, Chain) else best_browsing
        A, proven = find(users, K, reward)  # type: ignore[arg-type]
        value = float(users.expected_reward(A[None], reward)[0])
        return Optimum(A, value, proven, 0.0 if proven else np.nan)

    def best_list(self, K: int | None = None, reward: str | None = None) -> Ints:
        """The ids of the K items with the highest expected reward, in the best order, (K,)."""
        return self.items[self.best_rows(K, reward)]

    def best_rows(self, K: int | None = None, reward: str | None = None) -> Ints:
        """The rows of ``best_list``: the list of ``optimum``, (K,)."""
        return self.optimum(K, reward).A

    def _reward(self, reward: str | None) -> str:
        if reward is None:
            return self.rewards[0]
        if reward not in self.rewards:
            raise unknown_names(f"reward of {self.name}", [reward], self.rewards)
        return reward


@dataclass(frozen=True)
class ChainModel(ClickModel):
    """A model whose users read from the top; its formulas say who goes on."""

    rewards: ClassVar[tuple[str, ...]] = ("satisfaction", "clicks", "any-click")
    formulas: ClassVar[Formulas]

    @property
    def users(self) -> Chain:
        """The chain of this query."""
        return self.formulas.users(vars(self), self.K)
