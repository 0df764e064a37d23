"""Array types used in signatures."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]


def sum_by(index: Ints, weight: Floats, size: int) -> Floats:
    """The sums of ``weight`` over equal ``index``, (size,)."""
    return np.bincount(index, weight, minlength=size).astype(np.float64, copy=False)
