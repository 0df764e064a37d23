"""What every estimator is: a level of cells, and a weight for each of them.

V = (1/n) sum over SERPs and positions k of c_k min(rho, M), with the weight rho of the cell that
the SERP falls into (Li et al., "Offline evaluation of ranking policies with click models", KDD
2018). Self-normalised, each position has a ratio of its own:
V = sum_k H_k (sum c_k rho) / (sum rho), with H_k the probability that the target has a position k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from logeval.running.arrays import Bools, Floats


@dataclass(frozen=True)
class View:
    """What weights are made of: cells (c,), in B resampled logs at once."""

    h: Floats  # (c,) target
    p: Floats  # (c, B) propensity
    K: int  # positions; at the item-position level the cells of an item follow each other
    e: Floats | None  # (c,) examination of the cell's position, where the estimator asks for it


@dataclass(frozen=True)
class Estimator:
    """An estimator with its parameters; ``str`` gives the name that it parses from."""

    normalised: bool = False

    NAME: ClassVar[str]
    LEVEL: ClassVar[str | None]  # of its cells; None: it does not weight the log
    HOLDS: ClassVar[str]  # when it is unbiased
    EXAMINATION: ClassVar[bool] = False  # whether it needs e of a fitted PBM
    PARAMETERS: ClassVar[dict[str, type]] = {}

    def weights(self, view: View) -> Floats:
        """rho of each cell, (c, B); 0 without support. One without a level weights nothing."""
        return np.zeros(view.p.shape)

    def supported(self, view: View) -> Bools:
        """Whether the estimator can see what the target shows in each cell, (c, B)."""
        return view.p > 0

    @property
    def model(self) -> str | None:
        """The click model that it adds residuals to, if any."""
        return None

    def _arguments(self) -> list[str]:
        return ["normalised"] if self.normalised else []

    def __str__(self) -> str:
        arguments = self._arguments()
        return f"{self.NAME}({','.join(arguments)})" if arguments else self.NAME


def ratio(h: Floats, p: Floats) -> Floats:
    """h / p, 0 where p is 0."""
    return np.divide(h, p, out=np.zeros(np.broadcast_shapes(h.shape, p.shape)), where=p > 0)
