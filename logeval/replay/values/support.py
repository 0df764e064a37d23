"""How far an estimate rests on the log: support, effective sample size, clipping.

An estimator with little support is not noisy, it is wrong: what the log never showed counts as
no clicks (or as the model says, for DR). So estimates below a threshold are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from logeval.running.arrays import Floats

COLUMNS = ("support", "effective_serps", "clipped", "largest_weight", "supported_positions")


@dataclass(frozen=True)
class Support:
    """What the log has of a target in the eyes of an estimator, by query and position (Q, K)."""

    supported: Floats  # probability of the target that the log has shown
    mass: Floats  # probability of the target
    weight: Floats  # sum of the weights of the SERPs, clipped
    square: Floats  # sum of their squares
    clipped: Floats  # SERPs whose weight was clipped
    largest: Floats  # largest weight before clipping

    def columns(
        self, n: Floats, share: Floats, enough: float, at_positions: Floats | None = None
    ) -> dict[str, Any]:
        """``COLUMNS`` over all queries and of each, (Q + 1,).

        n (Q,) are the SERPs and share (Q,) the part of each query in the overall value.
        ``supported_positions`` is the largest K up to which every position has enough support;
        ``at_positions`` (Q, K) says it where it is not seen here: a list has support as a whole, or
        not.
        """
        per_serp = (share / np.maximum(n, 1))[:, None]  # a SERP's part in the overall value
        used, K = share > 0, self.mass.shape[1]
        supported, mass = _above(share @ self.supported, self.supported), share @ self.mass
        at = supported if at_positions is None else _above(share @ at_positions, at_positions)
        mass = _above(mass, self.mass)
        weight = _above((per_serp * self.weight).sum(axis=0), self.weight)
        square = _above((per_serp**2 * self.square).sum(axis=0), self.square)
        clipped = np.append(self.clipped[used].sum(), self.clipped.sum(axis=1))
        largest = self.largest.max(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            at = np.where(mass > 0, at / mass, 1.0)
            support = supported.sum(axis=1) / mass.sum(axis=1)
            effective = np.nan_to_num(weight**2 / square).mean(axis=1)
        values = (
            support,
            effective,
            clipped / np.maximum(np.append(n[used].sum(), n) * K, 1),
            np.append(largest[used].max(initial=0.0), largest),
            np.cumprod(at >= enough, axis=1).sum(axis=1),
        )
        return dict(zip(COLUMNS, values, strict=True))

    def fewest(self, n: Floats, share: Floats) -> float:
        """The effective SERPs of the position that rests on the fewest, of those with any."""
        per_serp = (share / np.maximum(n, 1))[:, None]
        weight = (per_serp * self.weight).sum(axis=0)
        square = (per_serp**2 * self.square).sum(axis=0)
        return float((weight[square > 0] ** 2 / square[square > 0]).min(initial=np.inf))


def _above(overall: Floats, of_queries: Floats) -> Floats:
    return np.concatenate([overall[None], of_queries])
