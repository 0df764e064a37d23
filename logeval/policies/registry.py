"""Policies by name: one line each. Names are matched without regard to case."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from logeval.errors import LogevalError, unknown_names
from logeval.names import format_call, parse_call
from logeval.policies import cascade, ends, exp3, ranked
from logeval.policies.setting import Policy, Setting

POLICIES: dict[str, type] = {
    "CascadeUCB1": cascade.CascadeUCB1,
    "CascadeKL-UCB": cascade.CascadeKLUCB,
    "dcmKL-UCB": cascade.DcmKLUCB,
    "First-Click": cascade.FirstClick,
    "Last-Click": cascade.LastClick,
    "RankedUCB1": ranked.RankedUCB1,
    "RankedKL-UCB": ranked.RankedKLUCB,
    "RankedExp3": exp3.RankedExp3,
    "Random": ends.Random,
    "Oracle": ends.Oracle,
}


@dataclass(frozen=True)
class PolicySpec:
    """A policy and its parameters; ``name`` prints as it parses."""

    name: str
    cls: type
    parameters: dict[str, Any] = field(default_factory=dict)
    checked: bool = True  # built in: its lists need no checking

    def make(self, setting: Setting) -> Policy:
        """The policy, ready for step 1."""
        policy: Policy = self.cls(setting, **self.parameters)
        return policy


def parse_policies(policies: Sequence[str | type]) -> list[PolicySpec]:
    """Names (or classes) of policies; all unknown names are reported at once."""
    parsed = [(p, *parse_call(p)) if isinstance(p, str) else (p, "", {}) for p in policies]
    by_lower = {name.lower(): name for name in POLICIES}
    unknown = [n for p, n, _ in parsed if n and ":" not in n and n.lower() not in by_lower]
    if unknown:
        raise unknown_names("policy", unknown, POLICIES)
    specs = []
    for policy, name, given in parsed:
        if isinstance(policy, type):
            specs.append(
                PolicySpec(f"{policy.__module__}:{policy.__qualname__}", policy, {}, False)
            )
        elif ":" in name:
            values = {key: _literal(value) for key, value in given.items()}
            specs.append(PolicySpec(format_call(name, values), _imported(name), values, False))
        else:
            specs.append(_built_in(by_lower[name.lower()], given))
    twice = {s.name for s in specs if sum(o.name == s.name for o in specs) > 1}
    if twice:
        raise LogevalError(f"policy {min(twice)} is given twice")
    return specs


def _built_in(name: str, given: dict[str, str]) -> PolicySpec:
    cls = POLICIES[name]
    known = cls.PARAMETERS  # type: ignore[attr-defined]
    unknown = [key for key in given if key not in known]
    if unknown:
        if not known:
            raise LogevalError(f"{name} has no parameters, and {unknown[0]} was given")
        raise unknown_names(f"parameter of {name}", unknown, known)
    defaults = cls.__init__.__kwdefaults__ or {}  # type: ignore[misc]
    values = {key: _value(name, key, given[key], known[key]) for key in known if key in given}
    values = {key: value for key, value in values.items() if value != defaults[key]}
    return PolicySpec(format_call(name, values), cls, values)


def _value(name: str, key: str, text: str, kind: Any) -> Any:
    if isinstance(kind, tuple):
        if text not in kind:
            raise LogevalError(f"{name}: {key}={text} must be one of {', '.join(kind)}")
        return text
    try:
        return kind(text)
    except ValueError:
        raise LogevalError(f"{name}: {key}={text} is not a {kind.__name__}") from None


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _imported(name: str) -> type:
    module, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module in the current folder
    try:
        cls = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise LogevalError(f"policy {name}: cannot import {module} ({error})") from None
    except AttributeError:
        raise LogevalError(f"policy {name}: there is no {attribute} in {module}") from None
    missing = [m for m in ("recommend", "update") if not callable(getattr(cls, m, None))]
    if missing:
        raise LogevalError(f"policy {name}: it has no method {missing[0]}")
    return cls  # type: ignore[no-any-return]
