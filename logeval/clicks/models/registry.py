"""The click models by name. A new model is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from logeval.clicks.estimation.classes import number_of
from logeval.clicks.models.blend import MEMBERS, Blend
from logeval.clicks.models.ccm import CCM
from logeval.clicks.models.choice import Choice
from logeval.clicks.models.counting import CM, DCTR, GCTR, RCTR
from logeval.clicks.models.dbn import DBN, SDBN
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.pbm import PBM
from logeval.clicks.models.ubm import UBM
from logeval.errors import LogevalError, unknown_names
from logeval.running.names import format_call, parse_call
from logeval.running.own_code import extend, imported, is_built_in, name_of

KINDS: tuple[type[ClickModel], ...] = (GCTR, RCTR, DCTR, PBM, CM, DCM, SDBN, DBN, UBM, CCM, Choice)
MODELS = {kind.name: kind for kind in KINDS}
M = TypeVar("M", bound=type[ClickModel])


def kinds() -> dict[str, type[ClickModel]]:
    """All models that can be named: those of one kind of users, and the mixture of some of them."""
    return MODELS | {Blend.name: Blend}


def register(model: M) -> M:
    """Make a click model known by its ``name``; see ``logeval.register``."""
    known = {name.lower(): name for name in kinds()}.get(model.name.lower())
    if known and is_built_in(kinds()[known]):
        raise LogevalError(f"{known} is a built-in click model; give your class another name")
    if known:  # a cell of a notebook that is run again
        del MODELS[known]
    MODELS[model.name] = model
    return model


AUTO = "auto"  # in place of names: those that predict held-out SERPs best

# what the name of a model may set, as in DCM(scope=per-query): arguments of fit-models
SETTINGS = ("method", "scope", "smoothing", "classes")
OF_BLEND = ("scope", "smoothing", "members")


def import_model(name: str) -> str:
    """The name of a click model of the user's, ``module:Class``, which is known from now on."""
    model = imported("click model", name)
    if not (isinstance(model, type) and issubclass(model, ClickModel)):
        raise LogevalError(f"click model {name}: is no click model; derive it from one, as CM")
    if model not in MODELS.values():
        register(model)
    return model.name


def own_models(names: Iterable[str]) -> dict[str, str]:
    """Those that are not built in, as ``module:Class``."""
    kinds = {name: kind_of(name) for name in names if name != AUTO}
    return {name: name_of(kind) for name, kind in kinds.items() if not is_built_in(kind)}


def without_method(models: Iterable[str], method: str | None) -> list[str]:
    """Those that lack an estimator, and use another: an error if it is all of them."""
    plain = {name: kind_of(name) for name in models if "method" not in model_of(name)[1]}
    if method is None or not plain:
        return []
    lacking = [name for name, kind in plain.items() if not kind.has_method(method)]
    if len(lacking) < len(plain):
        return lacking
    owners = [name for name, model in MODELS.items() if model.has_method(method)]
    if not owners:
        known = {m for model in MODELS.values() for m in (*model.methods, *model.ALIASES)}
        raise unknown_names("method", [method], known)
    have = "; ".join(f"{name} has {' and '.join(plain[name].methods)}" for name in lacking)
    raise LogevalError(f"method={method}: only {' and '.join(owners)} can be fitted so; {have}")


def check_reward(have: Mapping[str, Sequence[str]], reward: str | None) -> None:
    """Raise unless all models, by name with the rewards they have, have this one."""
    lacking = [name for name, rewards in have.items() if reward not in rewards]
    if reward is None or not lacking:
        return
    if len(lacking) == len(have):
        raise unknown_names("reward", [reward], {r for rewards in have.values() for r in rewards})
    those = ", ".join(name for name in have if name not in lacking)
    common = [r for r in have[lacking[0]] if all(r in rewards for rewards in have.values())]
    other = f"take reward={common[0]}, which all have, or " if common else ""
    raise LogevalError(
        f"reward={reward}: {those} has it, {', '.join(lacking)} has not; {other}fit and "
        f"evaluate {those} alone"
    )


def model_of(name: str) -> tuple[str, dict[str, str]]:
    """The model of a name, as the papers print it, and its settings.

    >>> model_of("dcm(scope=per-query)")
    ('DCM', {'scope': 'per-query'})
    """
    base, given = parse_call(name)
    base = import_model(base) if ":" in base else base
    known = {name.lower(): name for name in kinds()}
    if base.lower() not in known:
        raise unknown_names("click model", [base], kinds())
    name = known[base.lower()]
    if name == Blend.name and "classes" in given:
        raise LogevalError(f"{name}: each member has classes of its own; write {name}({CLASSES})")
    allowed = OF_BLEND if name == Blend.name else SETTINGS
    if strange := [key for key in given if key not in allowed]:
        raise unknown_names(f"setting of {name}", strange, allowed)
    if "classes" in given:
        given["classes"] = str(number_of(given["classes"]))
    if "members" in given:
        members = [_member(text) for text in given["members"].split("+")]
        if not 1 < len(members) == len(set(members)):
            raise LogevalError(f"members={given['members']}: several different models are mixed")
        given["members"] = "+".join(members)
    settings = {key: given[key] for key in allowed if key in given}
    default = [("classes", "1"), ("members", MEMBERS)]
    return name, {key: value for key, value in settings.items() if (key, value) not in default}


CLASSES = "members=dcm:3+ubm:3"  # an example


def _member(text: str) -> str:
    """A member of a mixture with its number of classes, as it prints: ``UBM:3``, or ``UBM``."""
    base, _, number = text.strip().partition(":")
    known, classes = {name.lower(): name for name in MODELS}, number_of(number or 1)
    if base.lower() not in known:
        raise unknown_names("member of a mixture", [base], MODELS)
    if not isinstance(classes, int):
        raise LogevalError(f"members={text}: write the number of its classes, as in {CLASSES}")
    return known[base.lower()] + (f":{classes}" if classes > 1 else "")


def members_of(name: str) -> dict[str, int]:
    """The members of a mixture, and the number of classes of each; none of another model."""
    base, settings = model_of(name)
    if base != Blend.name:
        return {}
    pairs = [text.partition(":") for text in settings.get("members", MEMBERS).split("+")]
    return {f"{m}(classes={C})" if C else m: int(C or 1) for m, _, C in pairs}


def classes_in(name: str, C: int) -> list[str]:
    """What each of the C classes of a model is a class of: the model, or a member of it."""
    members = members_of(name).items()
    return [member for member, number in members for _ in range(number)] or [name] * C


def kind_of(name: str) -> type[ClickModel]:
    """The class of a model, whatever its settings."""
    return kinds()[model_of(name)[0]]


def model_names(names: Iterable[str], classes: int | str = 1) -> list[str]:
    """The models of those names, as they print; case does not matter.

    Those that do not say how many ``classes`` of users they have have so many; a mixture does.
    """
    names = list(names)
    known = {name.lower() for name in kinds()}
    bases = [parse_call(name)[0] for name in names]
    unknown = [base for base in bases if ":" not in base and base.lower() not in known]
    if unknown:  # all of them in one message
        raise unknown_names("click model", unknown, kinds())
    found = []
    for name, (_, given) in zip(names, map(parse_call, names), strict=True):
        base, settings = model_of(name)
        if "classes" not in given and str(classes) != "1":
            own = {"classes": str(number_of(classes))}
            if base != Blend.name:
                settings |= own
            elif str(classes).lower() != "auto":
                model_of(format_call(base, own))  # an error
        found.append(format_call(base, settings))
    return list(dict.fromkeys(found))


def check_options(models: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """The options given for some models: each must be declared by one of them at least."""
    models = list(models)
    declared = {name: values for m in models for name, values in kind_of(m).OPTIONS.items()}
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


extend("logeval.models", lambda _, cls: register(cls))
