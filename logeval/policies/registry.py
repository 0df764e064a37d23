"""Policies by name: one line each. Names are matched without regard to case."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from logeval.errors import LogevalError, unknown_names
from logeval.names import format_call, parse_call
from logeval.policies import random_and_oracle as ends
from logeval.policies.contextual import gl_cdcm, linear, logistic_bandits, without_features
from logeval.policies.rank1 import pairs, rank1elim, thompson, ucb1elim
from logeval.policies.ranking import (
    batchrank,
    bc_mpts,
    bubblerank,
    cascade,
    cascade_thompson,
    exp3,
    grab,
    pb_mhb,
    pbm_pie,
    pbm_ts,
    pbm_ucb,
    ranked,
    toprank,
    unirank,
)
from logeval.policies.reference import REFERENCES, REFERENCES_IN_TRACK, one_by_one
from logeval.policies.reference.replica import Reference
from logeval.policies.setting import Policy, Setting
from logeval.policies.source import source_checksum

POLICIES: dict[str, type] = {
    "CascadeUCB1": cascade.CascadeUCB1,
    "CascadeKL-UCB": cascade.CascadeKLUCB,
    "dcmKL-UCB": cascade.DcmKLUCB,
    "First-Click": cascade.FirstClick,
    "Last-Click": cascade.LastClick,
    "RankedUCB1": ranked.RankedUCB1,
    "RankedKL-UCB": ranked.RankedKLUCB,
    "RankedExp3": exp3.RankedExp3,
    "CTS": cascade_thompson.CTS,
    "TS-Cascade": cascade_thompson.TSCascade,
    "TopRank": toprank.TopRank,
    "UniRank": unirank.UniRank,
    "BatchRank": batchrank.BatchRank,
    "BubbleRank": bubblerank.BubbleRank,
    "PBM-UCB": pbm_ucb.PBMUCB,
    "PBM-PIE": pbm_pie.PBMPIE,
    "PBM-TS": pbm_ts.PBMTS,
    "BC-MPTS": bc_mpts.BCMPTS,
    "PB-MHB": pb_mhb.PBMHB,
    "GRAB": grab.GRAB,
    "S-GRAB": grab.SGRAB,
    "KL-CombUCB1": grab.KLCombUCB1,
    "Rank1ElimKL": rank1elim.Rank1ElimKL,
    "Rank1Elim": rank1elim.Rank1Elim,
    "UCB1Elim": ucb1elim.UCB1Elim,
    "UCB1": pairs.PairUCB1,
    "KL-UCB": pairs.PairKLUCB,
    "TS": thompson.TS,
    "GL-CDCM": gl_cdcm.GLCDCM,
    "LR": gl_cdcm.LR,
    "CascadeLinUCB": linear.CascadeLinUCB,
    "CascadeLinTS": linear.CascadeLinTS,
    "C3-UCB": linear.C3UCB,
    "LogisticTS": logistic_bandits.LogisticTS,
    "UCB-GLM": logistic_bandits.UCBGLM,
    "Random": ends.Random,
    "Oracle": ends.Oracle,
}

# Policies that are another class in a track whose ground set changes from round to round.
IN_TRACK: dict[str, dict[str, type]] = {
    "contextual": {
        "dcmKL-UCB": without_features.ContextualKLUCB,
        "Random": without_features.ContextualRandom,
        "Oracle": without_features.ContextualOracle,
    }
}


@dataclass(frozen=True)
class PolicySpec:
    """A policy and its parameters; ``name`` prints as it parses."""

    name: str
    cls: type
    parameters: dict[str, Any] = field(default_factory=dict)
    built_in: bool = True  # the lists of a user's own policy are checked
    track: str | None = "ranking"  # None: any
    reference: type[Reference] | None = None  # run the paper's pseudocode instead of the kernel
    kernel: str = ""  # the name of the policy that it is the reference of

    @property
    def stream(self) -> str:
        """What its random numbers are named after: a reference draws those of its kernel."""
        return self.name if self.reference is None else self.kernel

    def make(self, setting: Setting) -> Policy:
        """The policy, ready for step 1."""
        told = setting.tell(self.cls, self.name)
        if self.reference is not None:
            return one_by_one(told, self.reference, **self.parameters)
        policy: Policy = self.cls(told, **self.parameters)
        return policy


class NotLoaded:
    """Stands for a user's class that was not imported."""

    TRACK = None


def parse_policies(
    policies: str | type | Sequence[str | type],
    reference: bool = False,
    track: str | None = None,
    load: bool = True,
) -> list[PolicySpec]:
    """Names (or classes) of policies; all unknown names are reported at once.

    ``reference`` stands for the parameter reference=yes in every name. In a ``track`` that has its
    own class for a name, that is meant. Without ``load`` no code of the user's is run: a class that
    would have to be imported is not looked at, and taken to be of any track.
    """
    policies = [policies] if isinstance(policies, str | type) else list(policies)
    if strange := [p for p in policies if not isinstance(p, str | type)]:
        raise LogevalError(
            f"policy {strange[0]!r}: is neither a name nor a class; give the class itself, it is "
            "made anew for every run"
        )
    parsed = [(p, *parse_call(p)) if isinstance(p, str) else (p, "", {}) for p in policies]
    by_lower = {name.lower(): name for name in POLICIES}
    unknown = [n for p, n, _ in parsed if n and ":" not in n and n.lower() not in by_lower]
    if unknown:
        raise unknown_names("policy", unknown, POLICIES)
    specs = []
    for policy, name, given in parsed:
        if reference and (not name or ":" in name):
            raise LogevalError(f"policy {policy}: only a built-in policy has a reference")
        if isinstance(policy, type):
            name = _class_name(policy)
            _check_methods(name, policy)
            if name.lower() in by_lower:
                raise LogevalError(f"{name} is a built-in policy; give your class another name")
            specs.append(PolicySpec(name, policy, {}, False, _track(policy)))
        elif ":" in name:
            values = {key: _literal(value) for key, value in given.items()}
            cls = _imported(name) if load else NotLoaded
            specs.append(PolicySpec(format_call(name, values), cls, values, False, _track(cls)))
        else:
            asked = {"reference": "yes"} if reference else {}
            specs.append(_built_in(by_lower[name.lower()], given | asked, track))
    twice = {s.name for s in specs if sum(o.name == s.name for o in specs) > 1}
    if twice:
        raise LogevalError(f"policy {min(twice)} is given twice")
    return specs


def own_sources(specs: Sequence[PolicySpec]) -> dict[str, str]:
    """The checksums of the code of those that are not built in."""
    return {spec.name: source_checksum(spec.cls) for spec in specs if not spec.built_in}


def _class_name(cls: type) -> str:
    """``module:Class``; a class of a script or notebook has its plain name."""
    name = cls.__qualname__
    return name if cls.__module__ == "__main__" else f"{cls.__module__}:{name}"


def _track(cls: type) -> str | None:
    track: str | None = getattr(cls, "TRACK", "ranking")
    return track


def _built_in(name: str, given: dict[str, str], track: str | None) -> PolicySpec:
    cls = IN_TRACK.get(track or "", {}).get(name, POLICIES[name])
    known = cls.PARAMETERS  # type: ignore[attr-defined]
    given = dict(given)
    as_reference = _value(name, "reference", given.pop("reference", "no"), ("yes", "no")) == "yes"
    unknown = [key for key in given if key not in known]
    if unknown:
        if not known:
            raise LogevalError(f"{name} has no parameters, and {unknown[0]} was given")
        raise unknown_names(f"parameter of {name}", unknown, [*known, "reference"])
    defaults = cls.__init__.__kwdefaults__ or {}  # type: ignore[misc]
    values = {key: _value(name, key, given[key], known[key]) for key in known if key in given}
    values = {key: value for key, value in values.items() if value != defaults[key]}
    spec = PolicySpec(format_call(name, values), cls, values, track=_track(cls))
    if not as_reference:
        return spec
    called = format_call(name, values | {"reference": "yes"})
    reference = REFERENCES_IN_TRACK.get(track or "", {}).get(name, REFERENCES[name])
    return replace(spec, name=called, reference=reference, kernel=spec.name)


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
    except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last: nested too deeply
        return text


def _imported(name: str) -> type:
    module, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.append("")  # the current folder; last, so that it hides no installed module
    try:
        cls = getattr(importlib.import_module(module), attribute)
    except AttributeError:
        raise LogevalError(f"policy {name}: there is no {attribute} in {module}") from None
    except Exception as error:  # whatever the user's module raises
        raise LogevalError(f"policy {name}: cannot import {module} ({error})") from None
    _check_methods(name, cls)
    return cls  # type: ignore[no-any-return]


def _check_methods(name: str, cls: type) -> None:
    missing = [m for m in ("recommend", "update") if not callable(getattr(cls, m, None))]
    if missing:
        raise LogevalError(f"policy {name}: it has no method {missing[0]}")
