"""Compiled kernels are kept below the project; processes that tests start share them."""

import os
import signal
from pathlib import Path

os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parent.parent / ".numba_cache"))
os.environ.setdefault("MPLBACKEND", "Agg")

# Started with nohup, or in the background of a script, signals are ignored and would stay so in the
# commands that tests stop.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
