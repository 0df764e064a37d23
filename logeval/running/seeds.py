"""The only place where a random generator is made.

A generator is named by a root seed and a path, for instance ``(seed, "environment", "DCM",
query, run)``. Equal paths give equal streams and different paths independent ones, so no
result depends on how the work was split, ordered or resumed.
"""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """The generator of a path: PCG64 seeded by the SHA-256 of the root seed and the path."""
    name = "\x1f".join([str(int(seed)), *(str(part) for part in path)])
    digest = hashlib.sha256(name.encode()).digest()
    entropy = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
