"""What extension authors need beside ``Policy``, ``Setting`` and ``ClickModel``: ``register``."""

from __future__ import annotations

from typing import TypeVar

from logeval.clicks.models import registry as models
from logeval.clicks.models.model import ClickModel
from logeval.errors import LogevalError
from logeval.policies import registry as policies

C = TypeVar("C", bound=type)


def register(cls: C) -> C:
    """Make a policy or a click model known by its name; also as a decorator, ``@register``.

    A click model is known by its ``name``, a policy by its ``NAME``, or else that of the class. A
    policy also runs without this, by its class or as ``module:Class``.
    """
    if not isinstance(cls, type):
        raise LogevalError(f"{cls!r} is not a class; register the class itself")
    return models.register(cls) if issubclass(cls, ClickModel) else policies.register(cls)
