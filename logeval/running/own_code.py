"""Code that is not logeval's: classes by name, ``module:Class``, and those of other packages.

A package offers policies, click models, estimators and log formats as entry points::

    [project.entry-points."logeval.policies"]
    MyPolicy = "my_package.policies:MyPolicy"
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from logeval.errors import LogevalError


def imported(kind: str, name: str) -> Any:
    """``module:Class``, from the current folder or installed."""
    module, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.append("")  # the current folder; last, so that it hides no installed module
    try:
        found = importlib.import_module(module)
    except Exception as error:  # whatever the user's module raises
        raise LogevalError(f"{kind} {name}: cannot import {module} ({error})") from None
    if attribute and not hasattr(found, attribute):
        raise LogevalError(f"{kind} {name}: there is no {attribute} in {module}")
    return getattr(found, attribute) if attribute else found


def extend(group: str, take: Callable[[str, Any], object]) -> None:
    """Hand over what installed packages offer in a group of entry points.

    One that cannot be loaded, or taken, is left out with a warning: it must not keep logeval from
    running.
    """
    for one in entry_points(group=group):
        try:
            take(one.name, one.load())
        except Exception as error:  # whatever the module of the package raises
            print(f"warning: {one.value} of {group} is left out: {error}", file=sys.stderr)


def name_of(cls: type) -> str:
    """``module:Class``; a class of a script or notebook has its plain name."""
    name = cls.__qualname__
    return name if cls.__module__ == "__main__" else f"{cls.__module__}:{name}"


def is_built_in(cls: type) -> bool:
    """Whether a class belongs to logeval."""
    return cls.__module__.partition(".")[0] == "logeval"
