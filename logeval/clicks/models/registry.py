"""The click models by name. A new model is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from logeval.clicks.models.ccm import CCM
from logeval.clicks.models.cm import CM
from logeval.clicks.models.ctr import DCTR, GCTR, RCTR
from logeval.clicks.models.dbn import DBN, SDBN
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.pbm import PBM
from logeval.clicks.models.ubm import UBM
from logeval.errors import LogevalError, unknown_names

MODELS: dict[str, type[ClickModel]] = {
    "GCTR": GCTR,
    "RCTR": RCTR,
    "DCTR": DCTR,
    "PBM": PBM,
    "CM": CM,
    "DCM": DCM,
    "SDBN": SDBN,
    "DBN": DBN,
    "UBM": UBM,
    "CCM": CCM,
}
M = TypeVar("M", bound=type[ClickModel])


def register(model: M) -> M:
    """Make a click model known by its ``name``; see ``logeval.register``."""
    known = {name.lower(): name for name in MODELS}.get(model.name.lower())
    if known and MODELS[known].__module__.partition(".")[0] == "logeval":
        raise LogevalError(f"{known} is a built-in click model; give your class another name")
    if known:  # a cell of a notebook that is run again
        del MODELS[known]
    MODELS[model.name] = model
    return model


def model_names(names: Iterable[str]) -> list[str]:
    """The models of those names, as the papers print them; case does not matter."""
    names = list(names)
    known = {name.lower(): name for name in MODELS}
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        raise unknown_names("click model", unknown, MODELS)
    return list(dict.fromkeys(known[name.lower()] for name in names))


def check_options(models: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """The options given for some models: each must be declared by one of them at least."""
    models = list(models)
    declared = {name: values for m in models for name, values in MODELS[m].OPTIONS.items()}
    for name, value in given.items():
        if name in declared:
            if value not in declared[name]:
                raise unknown_names(name.replace("_", " "), [str(value)], declared[name])
            continue
        owners = [m for m, model in MODELS.items() if name in model.OPTIONS]
        if owners:
            raise LogevalError(
                f"{name} is an option of {', '.join(owners)}, not of {', '.join(models)}"
            )
        raise unknown_names("option", [name], option_names())
    return dict(given)


def option_names() -> list[str]:
    """The options of all models."""
    return sorted({name for model in MODELS.values() for name in model.OPTIONS})
