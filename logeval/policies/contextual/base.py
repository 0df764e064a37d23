"""What all policies of the contextual track share: a round, its scores, and what was observed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from logeval.policies.contextual.rounds import FEEDBACK, Lists, observed_rows
from logeval.policies.setting import Contexts, Round, Setting
from logeval.running.arrays import Floats, Ints
from logeval.running.uniforms import Uniforms

# What every policy that learns may be told.
LEARNING: dict[str, Any] = {"feedback": FEEDBACK, "order": ("told", "assumed")}
TERMINATION = "order of termination"  # what they must know
FEATURES = f"features, {TERMINATION}"


class ContextualPolicy(ABC):
    """Shows the items with the largest scores, and learns from the rows surely examined.

    ``feedback`` says which these are (``rounds.observed_one``). ``order`` is "told": the order of
    the positions by termination is known, as the paper assumes; or "assumed": 1, 2, ..., K.
    """

    KNOWS, READS = FEATURES, "up to the last click"
    TRACK = "contextual"
    NEEDS: ClassVar = ("contexts",)

    def __init__(self, setting: Setting, feedback: str, order: str) -> None:
        self._contexts: Contexts = setting.ask("contexts")
        uniforms = Uniforms(setting.generators, self._contexts.widest)
        self._lists = Lists(setting.R, setting.K, uniforms.at)
        self._assumed = np.tile(np.arange(setting.K), (setting.R, 1)) if order != "told" else None
        self._feedback = FEEDBACK.index(feedback)
        self._C = np.empty(setting.R, dtype=np.int64)
        self._now: Round

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        self._now = self._contexts.at(t)
        order = self._now.order if self._assumed is None else self._assumed
        return self._lists.best_first(t, self._scores(t), order)

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        observed_rows(self._feedback, clicks, self._C)
        self._learn(t, A, clicks, self._C)

    @abstractmethod
    def _scores(self, t: int) -> Floats:
        """The scores (R, L) of the items of the round."""

    @abstractmethod
    def _learn(self, t: int, A: Ints, clicks: Ints, C: Ints) -> None:
        """Learn from the first C rows of the lists A."""
