"""What every click model offers: click probabilities, sampling, rewards, the best list.

A model is a frozen dataclass of the parameters of one query. It says, by ``users``, which
users it describes (a chain or a browsing user), and everything else follows from them.
Lists ``A`` are rows of local item indices, 0..L-1; ``items[i]`` is the id of item i.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from logeval.arrays import Bools, Floats, Ints
from logeval.clicks.models.browsing import Browsing
from logeval.clicks.models.chain import Chain, Formulas
from logeval.clicks.models.optimum import Optimum, best_browsing, best_chain
from logeval.errors import LogevalError, unknown_names

if TYPE_CHECKING:
    from logeval.clicks.estimation.estimates import EstimationResult, Options
    from logeval.clicks.estimation.patterns import Patterns

Kind = Literal["item", "position", "transition", "scalar"]


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
    rewards: ClassVar[tuple[str, ...]]  # what a list can earn; the model's own comes first
    methods: ClassVar[tuple[str, ...]]  # estimators; the first is the default
    ALIASES: ClassVar[dict[str, str]] = {}  # other names of estimators
    # what only this model can be asked for when it is fitted: values by name, the default first
    OPTIONS: ClassVar[dict[str, tuple[str, ...]]] = {}

    @property
    @abstractmethod
    def users(self) -> Chain | Browsing:
        """The users this model describes."""

    @classmethod
    @abstractmethod
    def fit(cls, data: Patterns, options: Options) -> EstimationResult:
        """Estimate the parameters of all queries in ``data`` in one pass."""

    @classmethod
    def method(cls, asked: str | None) -> str:
        """The estimator of that name, or the default of a model that has none of that name."""
        name = cls.ALIASES.get(asked or "", asked)
        return name if name in cls.methods else cls.methods[0]

    @property
    def L(self) -> int:
        """The number of items."""
        return len(self.items)

    def click_probs(self, A: Ints) -> Floats:
        """P(c_k = 1) of each list, (n, K)."""
        return self.users.click_probs(A)

    def conditional_click_probs(self, A: Ints, c: Ints | Bools) -> Floats:
        """P(c_k = 1 | c_<k) of each list and its clicks, (n, K)."""
        return self.users.conditional_click_probs(A, c)

    def sample(self, A: Ints, uniforms: Floats) -> Ints:
        """Clicks (n, K) of one user per list, from one uniform per position."""
        drawn = self.users.sample(A, uniforms)
        return drawn[0] if isinstance(drawn, tuple) else drawn

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
        K = self.K if K is None else K
        if not 1 <= K <= min(self.K, self.L):
            raise LogevalError(
                f"{self.name}: a list of {K} is asked for; the model has {self.K} positions "
                f"and {self.L} items"
            )
        users, reward = self.users, self._reward(reward)
        if isinstance(users, Chain):
            A, proven = best_chain(users, K, reward)
        else:
            A, proven = best_browsing(users, K, reward)
        return Optimum(A, float(users.expected_reward(A[None], reward)[0]), proven)

    def best_list(self, K: int | None = None, reward: str | None = None) -> Ints:
        """The list of ``optimum``, (K,)."""
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

    formulas: ClassVar[Formulas]

    @property
    def users(self) -> Chain:
        """The chain of this query."""
        return self.formulas.users(vars(self), self.K)
