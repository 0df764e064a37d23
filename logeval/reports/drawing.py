"""The methods that draw a result, by its type: ``runs.plot_regret()`` is a function of a report.

To draw another type of result, write a function whose first argument it is, and add a line here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

# by name of the class and of its method: module and function
METHODS = {
    "Checks": {
        "plot": "figures.checks:plot_check",
        "verdict": "answers.checks:verdict",
    },
    "Comparison": {
        "plot": "figures.models:plot_perplexity",
        "plot_differences": "figures.models:plot_differences",
    },
    "CrossCheck": {
        "plot": "figures.replay:plot_cross_check",
        "verdict": "answers.cross_check:verdict",
    },
    "Description": {"plot": "figures.log:plot_log"},
    "Estimates": {
        "plot": "figures.replay:plot_estimates",
        "verdict": "answers.estimates:verdict",
    },
    "ExperimentPlan": {
        "plot": "figures.plan:plot_power",
        "verdict": "answers.plan:verdict",
    },
    "FittedModels": {"plot": "figures.models:plot_parameters"},
    "PolicyReplay": {
        "plot": "figures.replay:plot_replays",
        "verdict": "answers.replays:verdict",
    },
    "Runs": {
        "plot_regret": "figures.regret:plot_regret",
        "plot_relative": "figures.tracks:plot_relative",
        "report": "report:report_of",
        "verdict": "verdict:verdict",
    },
    "Support": {"verdict": "answers.support:verdict"},
    "Validation": {
        "plot": "figures.replay:plot_validation",
        "verdict": "answers.validation:verdict",
    },
}


def names_of(kind: type) -> list[str]:
    """The names of the methods that draw results of this type."""
    return [name for one in kind.__mro__ for name in METHODS.get(one.__name__, {})]


def method_of(kind: type, name: str) -> Callable[..., Any] | None:
    """The function behind such a method, if there is one."""
    for one in kind.__mro__:
        place = METHODS.get(one.__name__, {}).get(name)
        if place is not None:
            module, _, function = place.partition(":")
            found: Callable[..., Any] = getattr(
                importlib.import_module(f"logeval.reports.{module}"), function
            )
            return found
    return None
