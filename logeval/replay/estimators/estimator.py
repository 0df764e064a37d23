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

OF_CELLS = ("GCTR", "RCTR", "DCTR", "PBM")  # click models of item and position alone


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
    EXAMINATION: ClassVar[bool] = False  # whether it needs e of a fitted PBM
    PARAMETERS: ClassVar[dict[str, type]] = {}
    ASSUMES: ClassVar[str]  # of users, in words
    STRENGTH: ClassVar[int]  # how much that is: 0 for nothing, up to 4 for RCTR

    @property
    def assumes(self) -> str:
        """What must hold of users for it to be right."""
        return self.ASSUMES

    @property
    def strength(self) -> int:
        """How much that is."""
        return self.STRENGTH

    def weights(self, view: View) -> Floats:
        """rho of each cell, (c, B): h / p, and 0 without support."""
        return ratio(view.h[:, None], view.p)

    def supported(self, view: View) -> Bools:
        """Whether the estimator can see what the target shows in each cell, (c, B)."""
        return view.p > 0

    @property
    def model(self) -> str | None:
        """The click model that it adds residuals to, if any."""
        return None

    @property
    def needs(self) -> str | None:
        """The click model that is fitted for it, if any."""
        return "pbm" if self.EXAMINATION else self.model

    def assumes_less(self, other: Estimator) -> bool:
        """Whether it is right wherever the other one is, and elsewhere too.

        Whole lists assume nothing, prefixes only that what is below does not matter, and items at
        positions what all models of these do. Where the two differ, the other one is wrong.
        """
        of_lists = self.LEVEL in ("list", "prefix")
        if (self.strength, not of_lists) >= (other.strength, other.LEVEL not in ("list", "prefix")):
            return False
        return of_lists or other.model is None or other.model.upper() in OF_CELLS

    def _arguments(self) -> list[str]:
        return ["normalised"] if self.normalised else []

    def __str__(self) -> str:
        arguments = self._arguments()
        return f"{self.NAME}({','.join(arguments)})" if arguments else self.NAME


def ratio(h: Floats, p: Floats) -> Floats:
    """h / p, 0 where p is 0."""
    return np.divide(h, p, out=np.zeros(np.broadcast_shapes(h.shape, p.shape)), where=p > 0)


def items_shown(view: View) -> Bools:
    """Whether the item of each cell was shown at any position, (c, B)."""
    anywhere = view.p.reshape(-1, view.K, view.p.shape[1]).sum(axis=1) > 0
    return np.repeat(anywhere, view.K, axis=0)


class OfItems(Estimator):
    """Weights that are the same at all positions of an item, from sums over them."""

    def weights(self, view: View) -> Floats:
        """What the target shows of an item (examined), over what the logger shows."""
        wanted = self._summed(view, view.h[:, None])
        return np.repeat(ratio(wanted, self._summed(view, view.p)), view.K, axis=0)

    def supported(self, view: View) -> Bools:
        """Items that were shown (examined) anywhere."""
        return np.repeat(self._summed(view, view.p) > 0, view.K, axis=0)

    def _summed(self, view: View, x: Floats) -> Floats:
        """Cell values (c, B) over the positions of each item, by their examination."""
        e = view.e[:, None] if view.e is not None and self.EXAMINATION else 1.0
        total: Floats = (e * x).reshape(-1, view.K, x.shape[1]).sum(axis=1)
        return total
