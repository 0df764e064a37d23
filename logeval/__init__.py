"""logeval: offline evaluation of ranking bandits over real search logs.

The public API, one function per stage: ``ingest``, ``load``. They are imported when first
used, so that ``import logeval`` and ``logeval --help`` stay quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from logeval.errors import LogevalError as LogevalError
    from logeval.log.ingest import ingest as ingest
    from logeval.log.log import load as load

_HOME = {
    "LogevalError": "logeval.errors",
    "ingest": "logeval.log.ingest",
    "load": "logeval.log.log",
}
__all__ = ["LogevalError", "__version__", "ingest", "load"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'logeval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
