"""Policies by name, and names with parameters. Names are matched without regard to case.

A policy is a class; what is known of it stands there:

- ``NAME``: as the paper prints it; ``PAPER``; what it does: the first sentence of its docstring
- ``TRACK``: ranking unless said otherwise, None for any; ``IN_TRACK``: the classes that take its
  place in other tracks
- ``PARAMETERS``: what its name may be given (``running.names``)
- ``NEEDS``: what it asks the simulator for (``policies.setting``)
- ``KNOWS``, ``READS``, ``COST``: what somebody who deploys it has to tell it, what it reads of the
  clicks, and what a step costs in the worst case (M: different contexts)
- ``LATE``: it may be told of clicks on a list that it showed some steps ago
- ``FIGURE``: its number among colours and markers; without one they follow from its name

A user's own needs none of them.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from logeval.clicks.models import registry as models
from logeval.clicks.models.model import ClickModel
from logeval.errors import LogevalError, unknown_names
from logeval.policies.setting import Policy, Setting
from logeval.running.names import defaults_of, format_call, options, parse_call, parsed
from logeval.running.own_code import extend, imported, is_built_in, name_of

# The families: files whose classes with a NAME are policies, in the order in which they are listed.
KERNELS = (
    "cascade",
    "forgetting",
    "glrt",
    "ranked",
    "cascade_thompson",
    "toprank",
    "unirank",
    "batchrank",
    "bubblerank",
    "pbm",
    "pb_mhb",
    "grab",
    "rank1elim",
    "pairs",
    "logistic",
    "linear",
    "baselines",
)
POLICIES: dict[str, type[Any]] = {}
ALL, RANKING = "all", "ranking"
HEAD = ("KNOWS", "READS", "COST", "PAPER")
P = TypeVar("P", bound=type)


@dataclass(frozen=True)
class PolicySpec:
    """A policy and its parameters; ``name`` prints as it parses."""

    name: str
    cls: type
    parameters: dict[str, Any] = field(default_factory=dict)
    built_in: bool = True  # the lists of a user's own policy are checked
    track: str | None = "ranking"  # None: any

    def make(self, setting: Setting) -> Policy:
        """The policy, ready for step 1."""
        told = setting.tell(self.cls, self.name)
        policy: Policy = self.cls(told, **self.parameters)
        return policy


class NotLoaded:
    """Stands for a user's class that was not imported."""

    TRACK = None


def register(cls: P) -> P:
    """Make a policy or a click model known by its name; also as a decorator, ``@register``.

    >>> @logeval.register
    ... class Still:
    ...     def __init__(self, setting):
    ...         self.A = np.tile(np.arange(setting.K), (setting.R, 1))
    ...
    ...     def recommend(self, t):
    ...         return self.A
    ...
    ...     def update(self, t, A, clicks):
    ...         pass
    >>> logeval.evaluate(models, policies="still", horizon=10, runs=1, quiet=True).horizon
    10

    A click model is known by its ``name``, a policy by its ``NAME``, or else that of the class. A
    policy also runs without this, by its class or as ``module:Class``.
    """
    if not isinstance(cls, type):
        raise LogevalError(f"{cls!r} is not a class; register the class itself")
    if issubclass(cls, ClickModel):
        return models.register(cls)
    name = vars(cls).get("NAME", cls.__name__)
    _check_methods(name, cls)
    known = {other.lower(): other for other in POLICIES}.get(name.lower())
    if known and is_built_in(POLICIES[known]):
        raise LogevalError(f"{known} is a built-in policy; give your class another name")
    if known:  # a cell of a notebook that is run again
        del POLICIES[known]
    POLICIES[name] = cls
    return cls


def class_in(cls: type, track: str | None) -> type[Any]:
    """The class of a policy in a track: its own, or the one that takes its place there."""
    other: type = vars(cls).get("IN_TRACK", {}).get(track, cls)
    return other


def tracks_with_own_classes() -> set[str]:
    """The tracks in which a name may mean another class."""
    return {track for cls in POLICIES.values() for track in vars(cls).get("IN_TRACK", {})}


def named_policies(
    policies: str | type | Sequence[str | type], track: str | None = None
) -> list[str | type]:
    """A list of policies; ``all`` stands for those of a track that run everywhere in it.

    Left out are the Oracle and what needs the lists of a log (BubbleRank, Logged); who may be told
    the examination estimates it.
    """
    given = [policies] if isinstance(policies, str | type) else list(policies)
    others = [one for one in given if not (isinstance(one, str) and one.strip().lower() == ALL)]
    if len(others) == len(given):
        return given
    named = {one.partition("(")[0].strip().lower() for one in others if isinstance(one, str)}
    every = [
        f"{name}(kappa=estimated)" if "kappa" in getattr(cls, "PARAMETERS", {}) else name
        for name, cls in POLICIES.items()
        if name.lower() not in named
        and track_of(class_in(cls, track)) in (track or RANKING, None)
        and not {"best", "base_list", "logged"} & set(getattr(cls, "NEEDS", ()))
    ]
    return [*every, *others]


def parse_policies(
    policies: str | type | Sequence[str | type],
    track: str | None = None,
    load: bool = True,
) -> list[PolicySpec]:
    """Names (or classes) of policies, or all; all unknown names are reported at once.

    In a ``track`` that has its own class for a name, that is meant. Without ``load`` no code of the
    user's is run: a class that would have to be imported is not looked at, and taken to be of any
    track.
    """
    policies = named_policies(policies, track)
    if strange := [p for p in policies if not isinstance(p, str | type)]:
        raise LogevalError(
            f"policy {strange[0]!r}: is neither a name nor a class; give the class itself, it is "
            "made anew for every run"
        )
    registered = {cls: name for name, cls in POLICIES.items()}
    policies = [registered.get(p, p) if isinstance(p, type) else p for p in policies]
    called = [(p, *parse_call(p)) if isinstance(p, str) else (p, "", {}) for p in policies]
    by_lower = {name.lower(): name for name in POLICIES}
    unknown = [n for p, n, _ in called if n and ":" not in n and n.lower() not in by_lower]
    if unknown:
        raise unknown_names("policy", unknown, POLICIES)
    specs = []
    for policy, name, given in called:
        if isinstance(policy, type):
            name = name_of(policy)
            _check_methods(name, policy)
            if name.lower() in by_lower:
                raise LogevalError(f"{name} is a built-in policy; give your class another name")
            specs.append(PolicySpec(name, policy, {}, False, track_of(policy)))
        elif ":" in name:
            cls = _imported(name) if load else NotLoaded
            known = getattr(cls, "PARAMETERS", {})
            values = {
                key: parsed(name, key, value, known[key]) if key in known else _literal(value)
                for key, value in given.items()
            }
            specs.append(PolicySpec(format_call(name, values), cls, values, False, track_of(cls)))
        else:
            specs.append(_registered(by_lower[name.lower()], given, track))
    twice = {s.name for s in specs if sum(o.name == s.name for o in specs) > 1}
    if twice:
        raise LogevalError(f"policy {min(twice)} is given twice")
    return specs


def track_of(cls: type) -> str | None:
    """The track of a policy; None: it runs in any."""
    track: str | None = getattr(cls, "TRACK", RANKING)
    return track


def _registered(name: str, given: dict[str, str], track: str | None) -> PolicySpec:
    cls = class_in(POLICIES[name], track)
    known = getattr(cls, "PARAMETERS", {})
    given = dict(given)
    if "" in given:  # Logged(top) is Logged(lists=top)
        word = given.pop("")
        owners = [key for key, kind in known.items() if isinstance(kind, tuple) and word in kind]
        if len(owners) != 1 or owners[0] in given:
            raise LogevalError(f"{name}({word}): {word!r} is not parameter=value")
        given[owners[0]] = word
    unknown = [key for key in given if key not in known]
    if unknown:
        if not known:
            raise LogevalError(f"{name} has no parameters, and {unknown[0]} was given")
        raise unknown_names(f"parameter of {name}", unknown, known)
    defaults = defaults_of(cls)
    values = {key: parsed(name, key, given[key], known[key]) for key in known if key in given}
    values = {key: value for key, value in values.items() if value != defaults.get(key)}
    return PolicySpec(format_call(name, values), cls, values, is_built_in(cls), track_of(cls))


def catalogue(track: str | None = None) -> list[dict[str, str]]:
    """What is known of each policy, of all tracks or as it is in one: a row each."""
    rows = []
    for name, cls in POLICIES.items():
        own = class_in(cls, track)
        mine = track_of(own)
        if track is not None and mine not in (track, None):
            continue
        said = {key: getattr(own, key, getattr(cls, key, "")) for key in HEAD}
        rows.append(
            {
                "policy": name,
                "about": (inspect.getdoc(own) or "").partition("\n\n")[0].replace("\n", " "),
                "options": options(own),
                "track": (mine or "any") if track_of(cls) else "any",
                "must know": said["KNOWS"],
                "asks the simulator for": ", ".join(getattr(own, "NEEDS", ())),
                "feedback": said["READS"],
                "cost of a step": said["COST"],
                "paper": said["PAPER"],
            }
        )
    return rows


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last: nested too deeply
        return text


def _imported(name: str) -> type:
    cls: type = imported("policy", name)
    _check_methods(name, cls)
    return cls


def _check_methods(name: str, cls: type) -> None:
    missing = [m for m in ("recommend", "update") if not callable(getattr(cls, m, None))]
    if missing:
        raise LogevalError(f"policy {name}: it has no method {missing[0]}")


def _register_built_in() -> None:
    for file in KERNELS:
        module = importlib.import_module(f"logeval.policies.{file}")
        for cls in vars(module).values():
            if isinstance(cls, type) and cls.__module__ == module.__name__ and "NAME" in vars(cls):
                register(cls)


_register_built_in()
extend("logeval.policies", lambda _, cls: register(cls))
