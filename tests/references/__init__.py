"""The papers' pseudocode, in plain NumPy for one replica: what every kernel is compared with.

A reference takes the same random numbers as its kernel, in the same order, so that both take the
same actions. They use no kernel. A class here has the name of the class of its policy, and a family
is one file, like those of ``logeval/policies``.
"""

from __future__ import annotations

import importlib
import pkgutil

from logeval.policies.registry import POLICIES, parse_policies
from logeval.policies.setting import Setting
from logeval.running.names import given_to
from tests.references.replica import OneByOne, Reference

_MODULES = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
_CLASSES: dict[str, type[Reference]] = {
    name: cls
    for module in _MODULES
    for name, cls in vars(module).items()
    if isinstance(cls, type) and cls.__module__ == module.__name__
}
REFERENCES = {
    name: _CLASSES[cls.__name__]
    for name, cls in POLICIES.items()
    if cls.__module__.startswith("logeval.")
}
# of the classes that take their place in the contextual track
CONTEXTUAL = {
    name: _CLASSES[cls.IN_TRACK["contextual"].__name__]
    for name, cls in POLICIES.items()
    if "contextual" in vars(cls).get("IN_TRACK", {})
}


def as_policy(name: str, setting: Setting, track: str | None = None) -> OneByOne:
    """All replicas of the reference of a policy, which may have parameters, ready for step 1."""
    (spec,) = parse_policies([name], track)
    plain = spec.name.partition("(")[0]
    reference = (CONTEXTUAL if track == "contextual" else {}).get(plain, REFERENCES[plain])
    return OneByOne(
        setting.tell(spec.cls, spec.name), reference, given_to(spec.cls, spec.parameters)
    )
