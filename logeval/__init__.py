"""logeval: offline evaluation of ranking bandits over real search logs.

The public API: one function per stage, and what extension authors need (``Policy``, ``Setting``,
``ClickModel``, ``Chain``, ``Browsing``, ``Query``, ``register``). They are imported when first
used, so that ``import logeval`` and ``logeval --help`` stay quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from logeval.clicks.collection import read_models as read_models
    from logeval.clicks.fit import fit_models as fit_models
    from logeval.clicks.models.model import ClickModel as ClickModel
    from logeval.clicks.quality.stages import check_models as check_models
    from logeval.clicks.quality.stages import compare_models as compare_models
    from logeval.clicks.quality.stages import score as score
    from logeval.clicks.support.support import support as support
    from logeval.clicks.users.browsing import Browsing as Browsing
    from logeval.clicks.users.chain import Chain as Chain
    from logeval.decision.decide import decide as decide
    from logeval.decision.decision import Decision as Decision
    from logeval.errors import LogevalError as LogevalError
    from logeval.evaluation.evaluate import evaluate as evaluate
    from logeval.evaluation.results import Runs as Runs
    from logeval.exports.export import export as export
    from logeval.features.make import make_features as make_features
    from logeval.features.table import read_features as read_features
    from logeval.log.ingest import ingest as ingest
    from logeval.log.queries import Query as Query
    from logeval.pipeline import load as load
    from logeval.policies.registry import register as register
    from logeval.policies.setting import Policy as Policy
    from logeval.policies.setting import Setting as Setting
    from logeval.replay.stages import replay_estimate as replay_estimate
    from logeval.replay.stages import replay_policy as replay_policy
    from logeval.replay.stages import replay_validate as replay_validate
    from logeval.reports.report import report as report
    from logeval.synthetic.generate import generate as generate

_HOME = {
    "Browsing": "logeval.clicks.users.browsing",
    "Chain": "logeval.clicks.users.chain",
    "ClickModel": "logeval.clicks.models.model",
    "LogevalError": "logeval.errors",
    "Policy": "logeval.policies.setting",
    "Query": "logeval.log.queries",
    "Decision": "logeval.decision.decision",
    "Runs": "logeval.evaluation.results",
    "check_models": "logeval.clicks.quality.stages",
    "Setting": "logeval.policies.setting",
    "decide": "logeval.decision.decide",
    "compare_models": "logeval.clicks.quality.stages",
    "evaluate": "logeval.evaluation.evaluate",
    "export": "logeval.exports.export",
    "fit_models": "logeval.clicks.fit",
    "generate": "logeval.synthetic.generate",
    "ingest": "logeval.log.ingest",
    "load": "logeval.pipeline",
    "make_features": "logeval.features.make",
    "read_features": "logeval.features.table",
    "read_models": "logeval.clicks.collection",
    "register": "logeval.policies.registry",
    "replay_estimate": "logeval.replay.stages",
    "replay_policy": "logeval.replay.stages",
    "replay_validate": "logeval.replay.stages",
    "report": "logeval.reports.report",
    "score": "logeval.clicks.quality.stages",
    "support": "logeval.clicks.support.support",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'logeval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
