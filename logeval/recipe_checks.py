"""A recipe checked as a whole: the types of its values, then names, numbers and files.

Everything that a stage would complain about is found here, before the first stage runs.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from logeval.clicks.fit import FitPlan
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.registry import MODELS
from logeval.errors import LogevalError, unknown_names
from logeval.evaluation.experiment import check_runs, checkpoints_of
from logeval.evaluation.matching import Users, in_tracks
from logeval.features import table as features
from logeval.log import inputs
from logeval.log.queries import among, given_queries
from logeval.policies.registry import parse_policies
from logeval.replay.plan import EstimatePlan
from logeval.reports.style import STYLES
from logeval.synthetic import world
from logeval.synthetic.generate import wanted_manifest
from logeval.tracks.contextual import CONTEXTUAL
from logeval.tracks.fitted import fitted_queries
from logeval.tracks.registry import TRACKS


def check_types(
    where: str, function: Callable[..., Any], keys: Iterable[str], arguments: dict[str, Any]
) -> None:
    """The arguments of a stage against the annotations of its function.

    A string where a list is expected is taken as a list of one.
    """
    parameters, hints = inspect.signature(function).parameters, get_type_hints(function)
    for name in [key for key in keys if key in parameters]:
        if name not in arguments:
            if parameters[name].default is inspect.Parameter.empty:
                raise LogevalError(f"{where}: {name} is missing")
            continue
        value, hint = arguments[name], hints[name]
        if isinstance(value, str) and hint is not Any and fits([value], hint):
            arguments[name] = [value]
        elif not fits(value, hint):
            raise LogevalError(f"{where}: {name} is {value!r} and must be {in_words(hint)}")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value that TOML can write is of an annotated type.

    >>> fits(True, int), fits(3, float), fits(["a"], Sequence[str]), fits("a", Sequence[str])
    (False, True, True, False)
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(fits(v, arguments[1]) for v in value.values())
    if origin is not None and issubclass(origin, Iterable) and origin is not tuple:
        return isinstance(value, list) and all(fits(v, arguments[0]) for v in value)
    if isinstance(value, bool) or hint is bool:
        return isinstance(value, bool) and hint is bool
    if hint is float:
        return isinstance(value, int | float)
    if hint is Path:
        return isinstance(value, str)
    return isinstance(hint, type) and origin is None and isinstance(value, hint)


def in_words(hint: Any) -> str:
    """A type as an error names it: ``int``, ``str or a list of str``."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        parts = [in_words(one) for one in arguments if get_origin(one) is not tuple]
        return " or ".join(dict.fromkeys(part for part in parts if part))
    if origin is not None and issubclass(origin, Mapping):
        return "a table"
    if origin is not None and issubclass(origin, Sequence | Iterable):
        return f"a list of {in_words(arguments[0])}"
    if hint is Path:
        return "str"
    plain = {int: "int", float: "float", str: "str", bool: "bool"}
    return plain.get(hint, "")


def check_values(calls: Mapping[str, dict[str, Any]], load: bool = True) -> None:
    """The arguments of all stages, defaults included; the section is named in the error.

    Without ``load`` policies of the user's are not imported, and not checked.
    """
    for stage, arguments in calls.items():
        try:
            CHECKS[stage](calls, **arguments, **({"load": load} if stage == "evaluate" else {}))
        except LogevalError as error:
            raise LogevalError(f"[{stage}] {error}") from None


def _generate(calls: Any, *, model: str, **arguments: Any) -> None:
    world.model_name(model)
    wanted_manifest("log.tsv.gz", model=model, **arguments)


def _ingest(calls: Any, *, logs: list[str] | None = None, **arguments: Any) -> None:
    chosen = ("format", "max_bad", "column_map", "workers")
    inputs.check(logs, **{key: arguments[key] for key in chosen})


def _fit_models(calls: Any, **arguments: Any) -> None:
    FitPlan.of(**arguments)


def _features(calls: Any, *, context: str, **arguments: Any) -> None:
    sizes = ("items", "dim", "product_dim", "users")
    features.check(context, **{name: arguments[name] for name in sizes})


def _evaluate(calls: Any, *, load: bool, **arguments: Any) -> None:
    models = FitPlan.of(**calls["fit-models"]).models
    home = CONTEXTUAL.name if "features" in calls else next(iter(TRACKS))
    specs = parse_policies(arguments["policies"], arguments["reference"], home, load)
    specs = in_tracks(specs, arguments["track"], home)
    if not specs:
        raise LogevalError("policies is empty; name at least one")
    checkpoints_of(arguments["horizon"], arguments["checkpoints"])
    draws, kept = arguments["draws"], calls["fit-models"]["draws"]
    if draws > kept:
        raise LogevalError(
            f"draws={draws}: fit-models keeps {kept}; raise its draws, or ask for fewer"
        )
    if draws and "features" in calls:
        raise LogevalError("draws are of fitted models, without features")
    check_runs(arguments["runs"], len(specs))
    for name in ("workers", "positions"):
        if arguments[name] is not None and arguments[name] < 1:
            raise LogevalError(f"{name}={arguments[name]}: there must be at least one")
    examples = fitted_queries([(m, "1", _example(m)) for m in models], reward=arguments["reward"])
    users = Users(fitted=tuple(examples), reward=arguments["reward"])
    for track in {str(spec.track) for spec in specs if "features" not in calls}:
        users.problems(track)
    fitted = given_queries(calls["fit-models"]["queries"])
    asked = given_queries(arguments["queries"])
    if asked is not None and not asked:
        raise LogevalError("queries is empty; leave it out for all of them")
    named = fitted is not None and all(q.region_id is not None for q in fitted)
    if unknown := [str(q) for q in asked or [] if named and not among(q, fitted or [])]:
        raise unknown_names("query among those that are fitted", unknown, map(str, fitted or []))


def _replay(calls: Any, **arguments: Any) -> None:
    EstimatePlan.of(**arguments)


def _example(name: str) -> ClickModel:
    """A small model of that kind: what the tracks say to it, they will say to the fitted one."""
    shapes = {"item": (2,), "position": (2,), "transition": (2, 3), "scalar": ()}
    kind = MODELS[name]
    values: Any = {p.field: np.full(shapes[p.kind], 0.5) for p in kind.PARAMETERS}
    return kind(items=np.arange(2), K=2, **values)


def _report(calls: Any, *, style: str, **arguments: Any) -> None:
    if style not in STYLES:
        raise unknown_names("style", [style], STYLES)


CHECKS: dict[str, Callable[..., None]] = {
    "generate": _generate,
    "ingest": _ingest,
    "fit-models": _fit_models,
    "features": _features,
    "evaluate": _evaluate,
    "replay": _replay,
    "report": _report,
}
