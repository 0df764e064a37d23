"""Names with parameters, ``RankedExp3(gamma=0.05)``: they print as they parse.

A policy says once what its name may be given, in ``PARAMETERS``, by name: the default, or all
values with the default first. A type stands for any value of this type; its default is that of the
constructor, and None where there is none: the policy computes it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from logeval.errors import LogevalError

_CALL = re.compile(r"\s*([^()\s]+)\s*(?:\((.*)\))?\s*", re.DOTALL)


def parse_call(text: str) -> tuple[str, dict[str, str]]:
    """The name and its parameters as text.

    A word alone, as in ``Logged(top)``, is a value whose parameter is the one that has it; its key
    here is empty.

    >>> parse_call("RankedExp3(gamma=0.05)"), parse_call("Logged(top)")
    (('RankedExp3', {'gamma': '0.05'}), ('Logged', {'': 'top'}))
    """
    match = _CALL.fullmatch(text)
    if not match:
        raise LogevalError(f"{text!r}: not a name; write Name or Name(parameter=value,...)")
    name, inside = match.groups()
    parameters = {}
    for part in filter(None, (p.strip() for p in (inside or "").split(","))):
        key, equals, value = (s.strip() for s in part.partition("="))
        if key.isidentifier() and not equals:
            key, equals, value = "", "=", key
        elif not (key and equals and value):
            raise LogevalError(f"{text!r}: {part!r} is not parameter=value")
        if key in parameters:
            raise LogevalError(f"{text!r}: {key or 'a value alone'} is given twice")
        parameters[key] = value
    return name, parameters


def format_call(name: str, parameters: Mapping[str, object]) -> str:
    """The text that ``parse_call`` reads."""
    if not parameters:
        return name
    return f"{name}({','.join(f'{key}={_format(value)}' for key, value in parameters.items())})"


def _format(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def defaults_of(cls: type) -> dict[str, Any]:
    """The defaults of the parameters of a policy."""
    taken, found = inspect.signature(cls).parameters, {}
    for key, kind in getattr(cls, "PARAMETERS", {}).items():
        said = None if isinstance(kind, type) else kind[0] if isinstance(kind, tuple) else kind
        found[key] = taken[key].default if key in taken else said
    return found


def given_to(cls: type, values: dict[str, Any]) -> Any:
    """All parameters of a policy by name, those not among the values with their defaults."""
    defaults = defaults_of(cls)
    if not values.keys() <= defaults.keys():
        raise TypeError(f"{cls.__name__} has no parameter {min(values.keys() - defaults)}")
    return SimpleNamespace(**(defaults | values))


def parsed(policy: str, key: str, text: str, kind: Any) -> Any:
    """The value that the text stands for, of a parameter of the policy."""
    if isinstance(kind, tuple):
        if text not in kind:
            raise LogevalError(f"{policy}: {key}={text} must be one of {', '.join(kind)}")
        return text
    of_type = kind if isinstance(kind, type) else type(kind)
    try:
        return of_type(text)
    except ValueError:
        raise LogevalError(f"{policy}: {key}={text} is not a {of_type.__name__}") from None


def options(cls: type) -> str:
    """``order=descending, init=sample|rounds``: the default first."""
    defaults, parts = defaults_of(cls), []
    for key, kind in getattr(cls, "PARAMETERS", {}).items():
        default = defaults[key]
        others = [value for value in kind if value != default] if isinstance(kind, tuple) else []
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        parts.append(f"{key}={'|'.join(['computed' if default is None else shown, *others])}")
    return ", ".join(parts)
