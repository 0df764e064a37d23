"""Estimators by name, one line each. Names are matched without regard to case."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from logeval.clicks.models.registry import AUTO, MODELS, model_names
from logeval.errors import LogevalError, unknown_names
from logeval.replay.estimators import dm, dr, interpol, ip, item, list_, pbm, prefix, rctr
from logeval.replay.estimators.estimator import Estimator

_KINDS: tuple[type[Estimator], ...] = (
    list_.List, prefix.Prefix, ip.IP, pbm.PBM, interpol.Interpol, item.Item, rctr.RCTR, dm.DM,
    dr.DR, dr.CascadeDR,
)  # fmt: skip
ESTIMATORS = {kind.NAME: kind for kind in _KINDS}
ALIASES = {"SIPS": "List", "RIPS": "Prefix", "IIPS": "IP"}  # of the literature on slates


def parse_estimators(texts: Iterable[str]) -> list[Estimator]:
    """Names such as ``IP``, ``IP(normalised)``, ``DR(ubm)``, ``INTERPOL(window=2)``.

    All unknown names are reported at once.
    """
    parts = [_split(text) for text in texts]
    known = {n.lower(): n for n in ESTIMATORS} | {a.lower(): n for a, n in ALIASES.items()}
    if unknown := [name for name, _ in parts if name.lower() not in known]:
        raise unknown_names("estimator", unknown, [*ESTIMATORS, *ALIASES])
    found = [_made(known[name.lower()], arguments) for name, arguments in parts]
    if twice := [e for i, e in enumerate(found) if e in found[:i]]:
        raise LogevalError(f"estimator {twice[0]} is given twice")
    return found


def _split(text: str) -> tuple[str, list[str]]:
    name, bracket, rest = text.strip().partition("(")
    if bracket and not rest.endswith(")"):
        raise LogevalError(f"estimator {text!r}: the bracket is not closed")
    outside = re.split(r",(?![^()]*\))", rest[:-1])  # DR(normalised,dcm(classes=3))
    return name.strip(), [part.strip() for part in outside if part.strip()]


def _made(name: str, arguments: list[str]) -> Estimator:
    kind = ESTIMATORS[name]
    models = {model.lower() for model in MODELS}
    values: dict[str, Any] = {}
    for argument in arguments:
        key, equals, value = (part.strip() for part in argument.partition("="))
        if key.lower() in ("normalised", "normalized") and not equals and name != "DM":
            values["normalised"] = True
        elif _is_model(argument, models) and "click_model" in kind.PARAMETERS:
            values["click_model"] = model_names([argument])[0].lower()
        elif argument.lower() == AUTO and "click_model" in kind.PARAMETERS:
            values["click_model"] = AUTO
        elif kind.PARAMETERS.get(key) is int and re.fullmatch("[0-9]{1,9}", value):
            values[key] = int(value)
        else:
            raise LogevalError(f"estimator {name}: {argument!r} is not known; {_offered(kind)}")
    return kind(**values)


def _is_model(argument: str, models: set[str]) -> bool:
    """Whether it is a click model, as ``dcm`` or ``dcm(classes=3)``."""
    name, bracket, _ = argument.partition("(")
    return name.strip().lower() in models and (bool(bracket) or "=" not in argument)


def _offered(kind: type[Estimator]) -> str:
    offers = [] if kind.NAME == "DM" else ["normalised"]
    offers += [f"{key}=NUMBER" for key, of in kind.PARAMETERS.items() if of is int]
    if "click_model" in kind.PARAMETERS:
        offers.append("a click model: " + ", ".join([AUTO, *(model.lower() for model in MODELS)]))
    return "it takes " + ", ".join(offers)
