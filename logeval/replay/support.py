"""How far an estimate rests on the log: support, effective sample size, clipping.

An estimator with little support is not noisy, it is wrong: what the log never showed counts as
no clicks (or as the model says, for DR). So estimates below a threshold are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.replay.estimation import Figures
from logeval.running.arrays import Floats, Ints


@dataclass(frozen=True)
class Support:
    """The figures of one estimator: of every query (Q,), and of all of them."""

    support: Floats
    effective_serps: Floats
    clipped: Floats
    largest_weight: Floats
    positions: Ints  # the largest K up to which every position has enough support
    overall: dict[str, float]


def support_of(
    f: Figures,
    n: Floats,
    share: Floats,
    enough: float,
    at_positions: Floats | None = None,
) -> Support:
    """Summarise figures; n (Q,) SERPs and share (Q,) of each query in the overall value.

    ``at_positions`` (Q, K) says up to which K there is support, where that is not seen
    from the figures: a list has support as a whole, or not.
    """
    supported = f.supported if at_positions is None else at_positions
    with np.errstate(invalid="ignore", divide="ignore"):
        at = np.where(f.mass > 0, supported / f.mass, 1.0)  # (Q, K)
        support = f.supported.sum(axis=1) / f.mass.sum(axis=1)
        effective = np.nan_to_num(f.weight**2 / f.square).mean(axis=1)
    K = f.mass.shape[1]
    clipped = f.clipped.sum(axis=1) / np.maximum(n * K, 1)
    largest = f.largest.max(axis=1)
    good = np.cumprod(at >= enough, axis=1).sum(axis=1)
    overall = _overall(f, n, share, supported, enough)
    return Support(support, effective, clipped, largest, good, overall)


def _overall(
    f: Figures, n: Floats, share: Floats, at_positions: Floats, enough: float
) -> dict[str, float]:
    per_serp = (share / np.maximum(n, 1))[:, None]  # a SERP's part in the overall value
    weight, square = (per_serp * f.weight).sum(axis=0), (per_serp**2 * f.square).sum(axis=0)
    supported, mass = share @ f.supported, share @ f.mass
    at = np.divide(share @ at_positions, mass, out=np.ones_like(mass), where=mass > 0)
    used = share > 0
    effective = np.divide(weight**2, square, out=np.zeros_like(weight), where=square > 0)
    return {
        "support": float(supported.sum() / mass.sum()),
        "effective_serps": float(effective.mean()),
        "clipped": float(f.clipped[used].sum() / max(n[used].sum() * len(mass), 1)),
        "largest_weight": float(f.largest[used].max(initial=0.0)),
        "supported_positions": int(np.cumprod(at >= enough).sum()),
    }
