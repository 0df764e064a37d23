"""The command of a stage: its options are the fields of the record, only printing is by hand.

    @command(Fit)
    def show(models, asked, *, as_json: Json = False): ...

``show`` gets the result and the record; its own keyword arguments become options, too.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer

from logeval.commands.app import app, replay_app
from logeval.errors import LogevalError
from logeval.stage import Arg, Stage, arguments_of

Show = Callable[..., None]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


def command(
    record: type[Stage[Any]], *, figures: Sequence[str] = (), **more: Any
) -> Callable[[Show], Show]:
    """Add the command of a stage; ``figures`` are those that ``show`` puts into out."""

    def register(show: Show) -> Show:
        *group, name = record.NAME.split()
        to = replay_app if group else app
        to.command(name, **more)(command_of(record, show, figures))
        return show

    return register


def command_of(
    record: type[Stage[Any]], show: Show, figures: Sequence[str] = ()
) -> Callable[..., None]:
    """A function as typer wants it: the options of the record, and those of ``show``."""
    own = [
        p.replace(annotation=eval(p.annotation, show.__globals__))
        for p in inspect.signature(show).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    ]
    options = _options(record)

    def run(**given: Any) -> None:
        from logeval.storage.tables import check_figures

        for_show = {p.name: given.pop(p.name) for p in own}
        _check_needed(record, given)
        _check_folders(given)
        asked = record(**_values(record, given))
        if figures and asked.out is not None:
            check_figures(Path(asked.out), *figures)
        show(asked.done(), asked, **for_show)

    last = [options.pop("quiet")] if "quiet" in options else []
    parameters = [*options.values(), *own, *last]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=p.KEYWORD_ONLY) for p in parameters]
    )
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    about = inspect.cleandoc(record.__doc__ or "").split("\n\n")[0]
    run.__doc__ = f"{about}\n\nExample: {record.EXAMPLE}"
    return run


def _options(record: type[Stage[Any]]) -> dict[str, inspect.Parameter]:
    """A parameter for typer for each argument."""
    found = {}
    own = {f.name: f for f in fields(record)}  # type: ignore[arg-type]
    for name, hint, arg in arguments_of(record):
        if not arg.on_command_line:
            continue
        default = None if own[name].default_factory is not MISSING else own[name].default
        needed = default is MISSING or (arg.needed and not _has_dry_run(record))
        kind = _kind(hint)
        if arg.parse is not None:
            kind = list[str] if get_origin(hint) is Mapping else str
        if not needed and (default is None or get_origin(kind) is list):
            kind, default = kind | None, None
        info: Any = typer.Option if own[name].kw_only or arg.option else typer.Argument
        more: dict[str, Any] = {"help": arg.help, "autocompletion": arg.complete}
        if kind in (int, float, int | None, float | None):
            more |= {"min": arg.least, "max": arg.most}
        found[name] = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[kind, info(*_names(name, arg, kind), **more)],
            default=inspect.Parameter.empty if needed else default,
        )
    return found


def _has_dry_run(record: type[Stage[Any]]) -> bool:
    return any(name == "dry_run" for name, _, _ in arguments_of(record))


def _check_needed(record: type[Stage[Any]], given: Mapping[str, Any]) -> None:
    """A dry run writes nothing, so it needs no place for it; everything else does."""
    for name, _, arg in arguments_of(record):
        if arg.needed and given.get(name) is None and not given.get("dry_run"):
            look = "; --dry-run needs none" if _has_dry_run(record) else ""
            raise LogevalError(f"--{name} is missing: {arg.help.rstrip('.').lower()}{look}")


def _check_folders(given: Mapping[str, Any]) -> None:
    """A folder that is not there is said before all that would read it is imported."""
    for name in ("log", "models"):
        folder = given.get(name)
        if isinstance(folder, str | Path) and not Path(folder).exists():
            from logeval.storage.tables import read_manifest

            read_manifest(folder)  # it may be about to be put in place of another


def _names(name: str, arg: Arg, kind: Any) -> list[str]:
    if arg.option:
        return [arg.option] if "/--no-" in arg.option else arg.option.split("/")
    return [option_of(name)] if kind is bool else []


def option_of(name: str) -> str:
    """``--top-queries`` for ``top_queries``."""
    return f"--{name.replace('_', '-')}"


def _kind(hint: Any) -> Any:
    """The type that the command line reads: one of a record's types, as plain as possible."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return str
    if origin in (Union, types.UnionType):
        kinds = [_kind(one) for one in inner]
        return next(k for k in (list[Path], list[str], Path, str, int, float, *kinds) if k in kinds)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return list[str]
    if isinstance(origin, type):
        return list[_kind(inner[0])]  # type: ignore[misc]
    return hint if hint in (str, int, float, bool, Path) else None


def _values(record: type[Stage[Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given, as the record wants them; its own defaults for the others."""
    values = {}
    for name, _, arg in arguments_of(record):
        if (value := given.get(name)) is None:
            continue
        if arg.parse is not None:
            refuse_empty(
                arg.option or option_of(name), [value] if isinstance(value, str) else value
            )
            value = arg.parse(value)
        values[name] = value
    return values


def refuse_empty(option: str, texts: Sequence[str]) -> None:
    """Raise for an option that was given without a value."""
    if not all(text.strip(" ,") for text in texts):
        raise LogevalError(f"{option} is empty; leave it out for all")
