"""Names with parameters, ``RankedExp3(gamma=0.05)``: they print as they parse."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
