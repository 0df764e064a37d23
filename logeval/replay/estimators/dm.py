"""DM, the direct method: the target's expected clicks under a click model fitted to the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from logeval.replay.estimators.estimator import Estimator

DEFAULT = "pbm"  # clicks that depend on item and position, as the weights of DR assume


@dataclass(frozen=True)
class DM(Estimator):
    """sum over lists of h(A) sum_k P(c_k = 1 | A); unbiased if the click model is right."""

    click_model: str = DEFAULT

    NAME = "DM"
    LEVEL: ClassVar[str | None] = None
    STRENGTH: ClassVar[int] = 3
    PARAMETERS: ClassVar[dict[str, type]] = {"click_model": str}

    @property
    def assumes(self) -> str:
        """The click model."""
        return f"users follow a {self.click_model.upper()}"

    @property
    def model(self) -> str | None:
        """The click model."""
        return self.click_model

    def _arguments(self) -> list[str]:
        own = [] if self.click_model == DEFAULT else [self.click_model]
        return own + super()._arguments()
