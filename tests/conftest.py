"""Compiled kernels are cached by the state of the source tree.

numba's own cache does not notice an edit in a callee of another file, so each state of the
source gets a cache folder of its own.
"""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parent.parent


def _source_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted((ROOT / "logeval").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / _source_hash())
os.environ.setdefault("MPLBACKEND", "Agg")
