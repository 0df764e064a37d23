"""Uniform random numbers for all replicas, step by step.

Each replica has its own generator and draws a block of steps at a time, so its stream does
not depend on which other replicas are in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from logeval.arrays import Floats

BLOCK = 256  # steps drawn at a time


class Uniforms:
    """``width`` uniforms per step and replica, in order of the steps t = 1, 2, ..."""

    def __init__(self, generators: Sequence[np.random.Generator], width: int) -> None:
        self._generators = generators
        self._block = np.empty((BLOCK, len(generators), width))

    def at(self, t: int) -> Floats:
        """The uniforms (R, width) of step t; steps must be asked for in order."""
        i = (t - 1) % BLOCK
        if i == 0:
            for r, generator in enumerate(self._generators):
                self._block[:, r] = generator.random((BLOCK, self._block.shape[2]))
        return self._block[i]
