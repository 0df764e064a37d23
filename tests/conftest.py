"""Compiled kernels are kept below the project; processes that tests start share them."""

import os
import signal
from collections import Counter
from pathlib import Path

os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parent.parent / ".numba_cache"))
os.environ.setdefault("MPLBACKEND", "Agg")
# every worker of pytest has a core: more threads of a library only wait for each other, busily
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Started with nohup, or in the background of a script, signals are ignored and would stay so in the
# commands that tests stop.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Files whose few tests take long: with --no-loadscope-reorder they start early, so that no worker
# ends long after the others.
SLOW = {
    "test_docs.py", "test_notebooks.py", "test_plan.py", "test_fuzz_tables.py", "test_results.py",
    "test_cluster.py", "test_choosing.py", "test_kills.py", "test_signals.py",
}  # fmt: skip


def pytest_collection_modifyitems(items):
    """Files with many tests, or slow ones, first."""
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: -tests[item.path] - 100 * (item.path.name in SLOW))
