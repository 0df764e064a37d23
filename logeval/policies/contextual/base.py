"""What all policies of the contextual track share: a round, its scores, and what was observed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from logeval.policies.setting import Contexts, Round, Setting
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import best_first_rows, njit_views
from logeval.running.names import given_to
from logeval.running.seeds import Uniforms

FEEDBACK = ("dcm", "literal", "first")
DCM, LITERAL, FIRST = range(3)
# What every policy that learns may be told.
LEARNING: dict[str, Any] = {"feedback": FEEDBACK, "order": ("told", "assumed")}
TERMINATION = "order of termination"  # what they must know
FEATURES = f"features, {TERMINATION}"


@njit_views
def observed_one(feedback, clicks):
    """C, the number of positions to learn from.

    ``dcm``: up to the last click, all K without one (as dcmKL-UCB); ``literal``: up to the last
    click, none without one (gl-cdcm, Algorithm 1 as printed); ``first``: up to the first click,
    all K without one (CascadeLinUCB).
    """
    K = clicks.shape[0]
    C = 0 if feedback == LITERAL else K
    for k in range(K):
        if clicks[k]:
            C = k + 1
            if feedback == FIRST:
                break
    return C


@njit_views
def observed_rows(feedback, clicks, C):
    """``observed_one`` for each replica."""
    for r in range(C.shape[0]):
        C[r] = observed_one(feedback, clicks[r])


class ContextualPolicy(ABC):
    """Shows the items with the largest scores, and learns from the rows surely examined.

    ``feedback`` says which these are (``observed_one``). ``order`` is "told": the order of
    the positions by termination is known, as the paper assumes; or "assumed": 1, 2, ..., K.
    """

    KNOWS, READS = FEATURES, "up to the last click"
    TRACK = "contextual"
    NEEDS: ClassVar = ("contexts",)

    def __init__(self, setting: Setting, given: dict[str, Any]) -> None:
        self.given, R, K = given_to(type(self), given), setting.R, setting.K
        self._contexts: Contexts = setting.ask("contexts")
        self._now: Round
        self._uniforms = Uniforms(setting.generators, self._contexts.widest)
        assumed = getattr(self.given, "order", "told") == "assumed"
        self._assumed = np.tile(np.arange(K), (R, 1)) if assumed else None
        self._feedback = FEEDBACK.index(getattr(self.given, "feedback", "dcm"))
        self._C, self._top = np.empty(R, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        self._now = self._contexts.at(t)
        order = self._now.order if self._assumed is None else self._assumed
        best_first_rows(self._scores(t), self._uniforms.at(t), order, self._top, self._A)
        return self._A

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
