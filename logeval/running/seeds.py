"""The only place where a random generator is made, and uniforms for all replicas by steps.

A generator is named by a root seed and a path, for instance ``(seed, "environment", "DCM",
query, run)``. Equal paths give equal streams and different paths independent ones, so no
result depends on how the work was split, ordered or resumed. Each replica has its own, and draws a
block of steps at a time, so its stream does not depend on which others are in the batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from logeval.running.arrays import Floats, Ints

BLOCK = 256  # steps drawn at a time
LARGEST = 2**20  # numbers held at a time, 8 MB, where a block of steps would be more


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """The generator of a path: PCG64 seeded by the SHA-256 of the root seed and the path."""
    name = "\x1f".join([str(int(seed)), *(str(part) for part in path)])
    digest = hashlib.sha256(name.encode()).digest()
    entropy = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


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
