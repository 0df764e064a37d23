"""The command of a stage: its options are the fields of the record, only printing is by hand.

    @command(Fit)
    def show(models, asked, *, as_json: Json = False): ...

``show`` gets the result and the record; its own keyword arguments become options, too.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer

from logeval.commands.app import app, replay_app
from logeval.errors import LogevalError
from logeval.kinds import fits
from logeval.stage import Arg, Stage, arguments_of

Show = Callable[..., None]


FORMATS = {"as_json": "--json", "as_csv": "--csv", "as_latex": "--latex"}


def _one_format(ctx: typer.Context, param: typer.CallbackParam, value: bool) -> bool:
    given = [option for name, option in FORMATS.items() if ctx.params.get(name)]
    if value and given:
        both = " and ".join(o for o in FORMATS.values() if o in (*given, FORMATS[str(param.name)]))
        raise LogevalError(f"{both}: only one of them can be printed; leave one out")
    return value


Json = Annotated[bool, typer.Option("--json", help="JSON, for programs.", callback=_one_format)]
Csv = Annotated[bool, typer.Option("--csv", help="CSV, for programs.", callback=_one_format)]
Latex = Annotated[
    bool, typer.Option("--latex", help="LaTeX (booktabs), for a paper.", callback=_one_format)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


_options_of_all: dict[str, str] = {}  # by argument, of all commands that were made


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
    _options_of_all.update(_option_names(record))

    def run(**given: Any) -> None:
        from logeval.storage.tables import check_figures

        for_show = {p.name: given.pop(p.name) for p in own}
        _check_needed(record, given)
        with naming_options(record):
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
    defaults = {
        f.name: (None if f.default_factory is not MISSING else f.default, f.kw_only)
        for f in fields(record)  # type: ignore[arg-type]
    }  # type: ignore[arg-type]
    for name, hint, arg in arguments_of(record):
        if not arg.on_command_line:
            continue
        default, named = defaults[name]
        needed = default is MISSING or (arg.needed and not _has_dry_run(record))
        kind = _kind(hint)
        if arg.parse is not None:
            kind = list[str] if get_origin(hint) is Mapping else str
        if (not needed and default is None) or (get_origin(kind) is list and not needed):
            kind = kind | None
            default = None
        info: Any = typer.Option if named or arg.option else typer.Argument
        more: dict[str, Any] = {"help": arg.help}
        if kind in (int, float, int | None, float | None):
            more |= {"min": arg.least, "max": arg.most}
        if arg.complete is not None:
            more["autocompletion"] = arg.complete
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
    return [f"--{name.replace('_', '-')}"] if kind is bool else []


def _kind(hint: Any) -> Any:
    """The type that the command line reads: one of a record's types, as plain as possible."""
    origin = get_origin(hint)
    if origin is Literal or (origin is None and hint in (str, int, float, bool, Path)):
        return str if origin is Literal else hint
    inner = [one for one in get_args(hint) if one is not types.NoneType]
    if origin in (Union, types.UnionType):
        kinds = [_kind(one) for one in inner]
        for plain in (list[Path], list[str], Path, str, int, float):
            if plain in kinds:
                return plain
        return next(kind for kind in kinds if kind is not None)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return list[str]
    if isinstance(origin, type):
        return list[_kind(inner[0])]  # type: ignore[misc]
    return None


def _values(record: type[Stage[Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given, as the record wants them."""
    values = {}
    for name, hint, arg in arguments_of(record):
        value = given.get(name)
        if (value is None and not fits(None, hint)) or name not in given:
            continue  # the record's own default
        if arg.parse is not None and value is not None:
            option = arg.option or f"--{name.replace('_', '-')}"
            refuse_empty(option, [value] if isinstance(value, str) else value)
            value = arg.parse(value)
        values[name] = value
    return values


def refuse_empty(option: str, texts: Sequence[str]) -> None:
    """Raise for an option that was given without a value."""
    if not all(text.strip(" ,") for text in texts):
        raise LogevalError(f"{option} is empty; leave it out for all")


@contextmanager
def naming_options(record: type[Stage[Any]] | None, **more: str) -> Iterator[None]:
    """Errors speak of the options that were given, and not of the arguments behind them."""
    try:
        yield
    except LogevalError as error:
        raise LogevalError(in_options(str(error), record, **more)) from error


def in_options(text: str, record: type[Stage[Any]] | None, **more: str) -> str:
    """What the library says of arguments as people type them.

    ``name=value`` becomes ``--name value``, ``name={'a': 'b'}`` ``--name a=b``, ``name=True`` and a
    name with an underscore ``--name``.
    What stands in brackets is the parameter of a policy or an estimator, and stays.
    """
    options = _options_of_all | ({} if record is None else _option_names(record)) | more
    names = "|".join(sorted(options, key=len, reverse=True))

    def option(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        if value is None:
            return options[name] if "_" in name else found[0]
        if pairs := re.findall("'([^']*)': '([^']*)'", value):
            return " ".join(f"{options[name]} {ours}={yours}" for ours, yours in pairs)
        return options[name] if value == "True" else f"{options[name]} {value}"

    value = r"\{[^}]*\}|'[^']*'|[^\s;:,()'\"]*[^\s;:,()'\".]"
    return re.sub(
        rf"(?<![\w(,./-])(?P<name>{names})\b(=(?P<value>{value})|(?![/.]\w))", option, text
    )


def _option_names(record: type[Stage[Any]]) -> dict[str, str]:
    """The long option of every argument that has one."""
    named = {f.name for f in fields(record) if f.kw_only}  # type: ignore[arg-type]
    return {
        name: (arg.option or f"--{name.replace('_', '-')}").split("/")[0]
        for name, _, arg in arguments_of(record)
        if arg.on_command_line and (arg.option or name in named)
    }
