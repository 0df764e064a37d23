"""Uniform random numbers for all replicas, step by step.

Each replica has its own generator and draws a block of steps at a time, so its stream does
not depend on which other replicas are in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from logeval.running.arrays import Floats, Ints

BLOCK = 256  # steps drawn at a time
LARGEST = 2**20  # numbers held at a time, 8 MB, where a block of steps would be more


class Uniforms:
    """``width`` uniforms per step and replica, in order of the steps t = 1, 2, ...

    Replicas may differ in their width; the rows of narrow ones are filled up with zeros.
    """

    def __init__(self, generators: Sequence[np.random.Generator], width: int | Ints) -> None:
        self._generators = generators
        self._widths = np.broadcast_to(width, len(generators))
        widest = int(self._widths.max())
        steps = max(1, min(BLOCK, LARGEST // max(1, len(generators) * widest)))
        self._block = np.zeros((steps, len(generators), widest))

    def at(self, t: int) -> Floats:
        """The uniforms (R, width) of step t; steps must be asked for in order."""
        steps = len(self._block)
        i = (t - 1) % steps
        if i == 0:
            for r, (generator, width) in enumerate(
                zip(self._generators, self._widths, strict=True)
            ):
                self._block[:, r, :width] = generator.random((steps, width))
        return self._block[i]
