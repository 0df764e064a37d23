"""Array types used in signatures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[Any]  # integers of any width
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
