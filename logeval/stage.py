"""What a stage is: a record of its arguments that checks itself, and makes its output.

The annotated fields of a record are the only place where an argument has its name, type, default,
help and bounds. From them come the Python function (``function``), the command
(``commands.command``), the section of a recipe (``pipeline``), what the manifest records, and
whether an output is up to date::

    @stage("fit-models", example="logeval fit-models data/yandex -m dcm --out models")
    class Fit(Stage[FittedModels]):
        "Fit click models to a log."

        log: LogFolder
        models: Annotated[list[str], Arg("Click model, or all.", option="--model/-m")]
        _: KW_ONLY
        top_queries: Annotated[int | None, Arg("Only the most frequent queries.", least=1)] = None

        def check(self): ...  # all that can be known before the long part
        def inputs(self): ...  # what its manifest vouches for, where it is not the log alone
        def make(self, manifest): ...  # the result

The command line reads records for ``--help``: their files import nothing heavy, and what makes the
output is imported when it is made.
"""

# The annotations of records are evaluated, so there is no "from __future__ import annotations".

import dataclasses
import inspect
import pkgutil
import types
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    ForwardRef,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

from logeval.errors import LogevalError, short, unknown_names

if TYPE_CHECKING:
    from logeval.clicks.collection import FittedModels
    from logeval.log.log import Log
    from logeval.log.names import Names
    from logeval.log.queries import Query

Manifest = dict[str, Any]
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="type[Stage[Any]]")


@dataclass(frozen=True)
class Arg:
    """What is known of an argument beside its name, type and default.

    A *setting* shapes the output, and the manifest records it. An *input* is what another stage
    made, *running* is how the work is done; a recipe gives both, and ``out``, by itself.
    """

    help: str
    role: Literal["setting", "input", "output", "running"] = "setting"
    option: str = ""  # on the command line, where it is not --name: "--model/-m"
    least: float | None = None
    most: float | None = None
    among: Callable[[], Iterable[str]] | None = None  # the names it may have
    parse: Callable[[Any], Any] | None = None  # of text, or of several, on the command line
    complete: Callable[[str], list[str]] | None = None  # for the shell
    in_recipe: bool | None = None  # None: settings are, the rest is not
    needed: bool = False  # on the command line, though not in Python
    on_command_line: bool = True


# arguments that several stages have
LogFolder = Annotated[Union["Log", Path, str], Arg("Folder of an ingested log.", "input")]
ModelsFolder = Annotated[Union["FittedModels", Path, str], Arg("Folder of fitted models.", "input")]
OutFolder = Annotated[Path | str | None, Arg("Folder for tables and figures.", "output")]
Seed = Annotated[int, Arg("Root of all random numbers.")]
Quiet = Annotated[bool, Arg("No progress.", "running", "--quiet/-q")]
Overwrite = Annotated[bool, Arg("Replace what is there.", "running", "--overwrite")]
Scheduler = Annotated[str | None, Arg("Address of a Dask scheduler, tls://host:8786.", "running")]


def split(text: str) -> list[str]:
    """The parts of ``0.1,0.2``."""
    return [part.strip() for part in text.split(",") if part.strip()]


OneQuery = Union[str, int, "Query", tuple[int, int | None]]
Queries = Annotated[
    OneQuery | Sequence[OneQuery] | None,
    Arg("Only these queries, as shoes,boots or 9982,98435@1 (with its region).", parse=str),
]
TopQueries = Annotated[int | None, Arg("Only the most frequent queries.", least=1)]


class Stage(Generic[R]):
    """A stage with its arguments; the records are its subclasses."""

    NAME: ClassVar[str] = ""
    EXAMPLE: ClassVar[str] = ""
    AGAIN: ClassVar[str] = ""  # how its output is made again
    READ: ClassVar[str] = ""  # "module:function" that reads its output from a folder
    REUSED: ClassVar[bool] = True  # an output that is there is read, and not made again
    # some have these
    log: Any
    models: Any
    queries: Any
    out: Path | str | None
    overwrite: bool
    quiet: bool

    def __post_init__(self) -> None:
        for name, hint, arg in arguments_of(type(self)):
            value = plain(getattr(self, name))
            if isinstance(value, str) and not fits("", hint) and fits([""], hint):
                value = [value]
            self._set(name, value)
            if arg.role != "input" or arg.in_recipe:  # who opens an input knows it better
                check_value(name, value, hint, arg)
            if arg.role == "output" and value == "":  # which would be the current folder
                raise LogevalError(f"{name} is empty; name a file or folder for the output")
        self.check()

    @classmethod
    def of(cls, *given: Any, **named: Any) -> Self:
        """The record of what users give; names of options (``option_names``) go there."""
        known = inspect.signature(cls).parameters
        own = {name: named.pop(name) for name in list(named) if name not in known}
        if own:
            options = cls.option_names()
            if unknown := [name for name in own if name not in options]:
                raise unknown_names(f"argument of {cls.NAME}", unknown, [*known, *options])
            texts = {name: str(value) for name, value in own.items()}
            named["options"] = {**(named.get("options") or {}), **texts}
        try:
            inspect.signature(cls).bind(*given, **named)
        except TypeError as error:  # one is missing, or given twice
            raise LogevalError(f"{cls.NAME}: {error}") from None
        return cls(*given, **named)

    @classmethod
    def option_names(cls) -> list[str]:
        """What else may be given by name, and goes into ``options``."""
        return []

    def _set(self, name: str, value: Any) -> None:
        """Put a checked value in the place of a given one."""
        object.__setattr__(self, name, value)

    def check(self) -> None:
        """Raise for arguments with which nothing can be made; what was given becomes plain."""

    @property
    def opened(self) -> "Log":
        """The log, which is opened once."""
        from logeval.log.log import Log, load

        if not isinstance(self.log, Log):
            self._set("log", load(self.log))
        log: Log = self.log
        return log

    @property
    def fitted(self) -> "FittedModels":
        """The models, which are read once."""
        from logeval.clicks.collection import FittedModels, read_models

        if not isinstance(self.models, FittedModels):
            self._set("models", read_models(self.models))
        models: FittedModels = self.models
        return models

    def models_input(self) -> list[Manifest]:
        """The models as an input, as far as they have a manifest."""
        from logeval.storage.tables import identity_of

        made = self.fitted.manifest
        return [{"models": identity_of(made)}] if "files" in made else []

    @property
    def names(self) -> "Names":
        """The names of queries and items: those of the log, or of the models."""
        from logeval.log.names import Names

        if not hasattr(self, "models") or getattr(self, "log", None) is not None:
            return self.opened.names
        if isinstance(self.models, str | Path):
            return Names(Path(self.models))
        return getattr(self.models, "names", Names())

    @property
    def wanted(self) -> "list[Query] | None":
        """The queries, which may be given by their names; None for all."""
        return self.names.all_meant(self.queries)

    def arguments(self) -> Manifest:
        """The settings, as the manifest records them."""
        found = {}
        for name, hint, arg in arguments_of(type(self)):
            if arg.role != "setting":
                continue
            found[name] = _plain(getattr(self, name))
            if name == "queries" and fits("1", hint):  # and not how many there are
                found[name] = None if self.wanted is None else [str(q) for q in self.wanted]
        return found

    def inputs(self) -> list[Manifest]:
        """What the output is made from."""
        return [{"log": self.opened.identity}]

    def manifest(self) -> Manifest:
        """The manifest of the output that these arguments ask for."""
        from logeval.storage.tables import manifest_of

        return manifest_of(self.NAME, self.arguments(), self.inputs(), again=self.AGAIN)

    def own(self) -> list[str]:
        """What is a class of the user's own: its results are never taken for current."""
        return []

    def make(self, manifest: Manifest) -> R:
        """The result; what else is known of it goes into the manifest."""
        raise NotImplementedError

    def write(self, result: R, out: Path) -> None:
        """Put the result into its folder."""
        how = {"overwrite": self.overwrite} if hasattr(self, "overwrite") else {}
        result.write(out, **how)  # type: ignore[attr-defined]

    def read(self, out: Path) -> R:
        """The result that a folder holds."""
        return pkgutil.resolve_name(self.READ)(out)  # type: ignore[no-any-return]

    def run(self) -> R:
        """The result; made, unless ``out`` holds it already."""
        from logeval.storage import tables

        manifest = self.manifest()
        out = None if self.out is None else Path(self.out)
        if out is not None and self.REUSED and not self.own() and tables.same_work(out, manifest):
            return self.read(out)
        if out is not None:
            tables.check_output(out, self.NAME, overwrite=True)
        result = self.make(manifest)
        if out is not None:
            self.write(result, out)
        return result

    def done(self) -> R:
        """As ``run``; that kernels are compiled is said."""
        from logeval.running import progress

        progress.heard = None if getattr(self, "quiet", False) else progress.say_compiling
        return self.run()

    def why(self) -> str | None:
        """Why ``out`` does not hold the result; None if it does."""
        from logeval.storage import tables

        assert self.out is not None
        if own := self.own():
            return f"{own[0]} is a class of your own, whose code may have changed"
        return tables.why(self.out, self.manifest())

    def replace(self, **changes: Any) -> Self:
        """The same with other arguments."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def stage(name: str, *, example: str = "", again: str = "", read: str = "") -> Callable[[S], S]:
    """Make a class the record of a stage."""

    def register(cls: S) -> S:
        cls.NAME, cls.EXAMPLE, cls.AGAIN, cls.READ = name, example, again, read
        return dataclass(frozen=True)(cls)  # type: ignore[return-value]

    return register


def function(record: Callable[P, Stage[R]], example: str = "", name: str = "") -> Callable[P, R]:
    """The public function of a stage: the arguments of its record, and its result."""
    cls: Any = record
    arguments = arguments_of(cls)
    (result,) = get_args(cls.__orig_bases__[0])

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return cls.of(*args, **kwargs).done()  # type: ignore[no-any-return]

    listed = "\n".join(f"    {name}: {arg.help}" for name, _, arg in arguments)
    about, shown = inspect.cleandoc(record.__doc__ or ""), inspect.cleandoc(example)
    call.__doc__ = f"{about}\n\n{shown}\n\nArguments:\n{listed}\n"
    call.__name__ = call.__qualname__ = name or cls.NAME.replace("-", "_").replace(" ", "_")
    call.__module__ = cls.__module__
    written = {name: _written(hint) for name, hint, _ in arguments}
    made = {
        f.name: f.default_factory()
        for f in dataclasses.fields(cls)
        if f.default_factory is not dataclasses.MISSING
    }
    given = inspect.signature(record)
    parameters = [
        p.replace(annotation=written[p.name], default=made.get(p.name, p.default))
        for p in given.parameters.values()
    ]
    call.__annotations__ = written | {"return": _written(result)}
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        parameters, return_annotation=_written(result)
    )
    return call


def _written(hint: Any) -> Any:
    """A type as a person would write it."""
    if hint in (str, int, float, bool):
        return hint
    parts = [_written(part) for part in get_args(hint) if get_origin(hint) is not Literal]
    parts = [part if isinstance(part, str) else part.__name__ for part in parts]
    if get_origin(hint) in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(parts))
    if get_origin(hint) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(hint)))}]"
    if isinstance(hint, str | ForwardRef):
        return hint if isinstance(hint, str) else hint.__forward_arg__
    name = "None" if hint is types.NoneType else getattr(hint, "__name__", str(hint))
    return f"{name}[{', '.join(parts)}]" if parts else name


def arguments_of(record: Any) -> list[tuple[str, Any, Arg]]:
    """Name, type and the rest of every argument of a record."""
    if "_ARGUMENTS" in vars(record):
        return record._ARGUMENTS  # type: ignore[no-any-return]
    found = []
    for each in dataclasses.fields(record):  # type: ignore[arg-type]
        hint, *more = get_args(each.type) if get_origin(each.type) is Annotated else [each.type]
        # the outermost says most: Annotated[Annotated[int, Arg(...)], Arg(...)] is flat
        args = [one for one in more if isinstance(one, Arg)]
        found.append((each.name, hint, args[-1] if args else Arg("", "running")))
    record._ARGUMENTS = found
    return found


def plain(value: Any) -> Any:
    """Python's own numbers and lists in the place of NumPy's, sets and generators."""
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return value.tolist()
    if isinstance(value, AbstractSet | KeysView | ValuesView | Iterator | range):
        return list(value)
    return value


@cache
def _adapter(hint: Any) -> Any:
    """What checks a type; of a class that is not imported here, by its name."""
    from pydantic import AfterValidator, ConfigDict, TypeAdapter

    def named(name: str) -> Any:
        def check(value: Any) -> Any:
            if name not in (cls.__name__ for cls in type(value).__mro__):
                raise ValueError(name)
            return value

        return Annotated[Any, AfterValidator(check)]

    adapter = TypeAdapter(hint, config=ConfigDict(strict=True, arbitrary_types_allowed=True))
    adapter.rebuild(_types_namespace={name: named(name) for name in _named_in(hint)})
    return adapter


def _named_in(hint: Any) -> Iterator[str]:
    """The classes that a type names and that are not imported here."""
    if isinstance(hint, str | ForwardRef):
        yield hint if isinstance(hint, str) else hint.__forward_arg__
    elif get_origin(hint) is not Literal:
        for part in get_args(hint):
            yield from _named_in(part)


def _unfit(value: Any, hint: Any) -> list[str]:
    """What a value would be if it were of a type."""
    from pydantic import ValidationError

    try:
        _adapter(hint).validate_python(value)
    except ValidationError as error:
        texts = [each["msg"].removeprefix("Input should be ") for each in error.errors()]
        names = [text.removeprefix("Value error, ") for text in texts]
        return [name.replace("an instance of Sequence", "a list") for name in names]
    return []


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type.

    >>> fits(True, int), fits(3, float), fits(["a"], Sequence[str]), fits("a", Sequence[str])
    (False, True, True, False)
    """
    return not _unfit(value, hint)


def check_value(name: str, value: Any, hint: Any, arg: Arg) -> None:
    """Raise unless a value is of its type, within its bounds and among its names."""
    if unfit := _unfit(value, hint):
        raise LogevalError(f"{name}={short(value)}: must be {' or '.join(dict.fromkeys(unfit))}")
    if arg.among is not None and value is not None:
        names = [value] if isinstance(value, str) else value
        known = list(arg.among())
        if unknown := [one for one in names if one not in known]:
            raise unknown_names(name, unknown, known)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if arg.least is not None and not value >= arg.least:
            raise LogevalError(f"{name}={value}: must be at least {arg.least:,}")
        if arg.most is not None and not value <= arg.most:
            raise LogevalError(f"{name}={value}: must be at most {arg.most:,}")


def _plain(value: Any) -> Any:
    """A setting as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def recipe_keys(record: type[Stage[Any]]) -> Iterator[str]:
    """What the section of a recipe may set."""
    for name, _, arg in arguments_of(record):
        if arg.role == "setting" if arg.in_recipe is None else arg.in_recipe:
            yield name
