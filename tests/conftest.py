"""Compiled kernels are cached by the state of the source that they are made from.

numba's own cache does not notice an edit in a callee of another file, so each state of the files
with kernels, and of all that they import, gets a cache folder of its own. The workers of one run
and the processes that tests start share it.
"""

import ast
import hashlib
import os
import signal
from pathlib import Path

ROOT = Path(__file__).parent.parent


def _imported(file: Path) -> set[Path]:
    """The files of logeval that a file imports names from; kernels use no others."""
    names = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("logeval"):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    files = [ROOT / f"{name.replace('.', '/')}.py" for name in names]
    return {file for file in files if file.exists()}


def _source_hash() -> str:
    found: set[Path] = set()
    new = {p for p in (ROOT / "logeval").rglob("*.py") if "njit" in p.read_text()}
    while new:
        found |= new
        new = set().union(*map(_imported, new)) - found
    digest = hashlib.sha256()
    for path in sorted(found):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / _source_hash())
os.environ.setdefault("MPLBACKEND", "Agg")

# Started with nohup, or in the background of a script, signals are ignored and would stay so in the
# commands that tests stop.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
