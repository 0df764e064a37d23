"""What an argument may be, by its annotation; and errors that say so instead of Python's own."""

import builtins
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from logeval.errors import LogevalError, short

P = ParamSpec("P")
R = TypeVar("R")


def plain(value: Any) -> Any:
    """Python's own numbers and lists in the place of NumPy's, sets and generators."""
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return value.tolist()
    if isinstance(value, AbstractSet | KeysView | ValuesView | Iterator | range):
        return list(value)
    return value


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type; a name that is not defined here fits nothing else.

    >>> fits(True, int), fits(3, float), fits(["a"], Sequence[str]), fits("a", Sequence[str])
    (False, True, True, False)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if hint is None or hint is types.NoneType:
        return value is None
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Annotated:
        return fits(value, inner[0])
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if isinstance(hint, str | ForwardRef):
        name = hint if isinstance(hint, str) else hint.__forward_arg__
        return any(cls.__name__ == name for cls in type(value).__mro__)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(fits(v, inner[1]) for v in value.values())
    if origin is tuple:
        return isinstance(value, tuple) and len(value) == len(inner)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        many = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        return many and all(fits(v, inner[0]) for v in value)
    if isinstance(value, bool) or hint is bool:
        return isinstance(value, bool) and hint is bool
    if hint is float:
        return isinstance(value, Real)
    if hint is int:
        return isinstance(value, Integral)  # NumPy's, too
    return isinstance(hint, type) and isinstance(value, hint)


def names_of(hint: Any) -> list[str]:
    """The names that a ``Literal``, or one among others, allows."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [name for one in get_args(hint) for name in names_of(one)]


def wants_list(hint: Any) -> bool:
    """Whether one text stands for a list of one."""
    return not fits("", hint) and fits([""], hint)


def in_words(hint: Any) -> str:
    """A type as an error names it: ``int``, ``str or a list of str``."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        parts = [in_words(one) for one in inner if get_origin(one) is not tuple]
        return " or ".join(dict.fromkeys(part for part in parts if part))
    if origin is Literal:
        return " or ".join(inner)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a table"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return f"a list of {in_words(inner[0])}"
    if isinstance(hint, str | ForwardRef):
        return hint if isinstance(hint, str) else hint.__forward_arg__
    plain = {int: "int", float: "float", str: "str", bool: "bool", Path: "str"}
    return plain.get(hint, "")


def refusal(name: str, value: Any, hint: Any) -> LogevalError:
    """The error for a value that does not fit."""
    wanted = in_words(hint)
    return LogevalError(f"{name}={short(value)}: must be {wanted or 'something else'}")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """A function that says which argument is of a wrong type, where that made it fail."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except LogevalError:
            raise
        except Exception:
            try:
                given = inspect.signature(function).bind(*args, **kwargs).arguments
            except TypeError:
                given = {}  # Python says well which arguments there are
            for name, hint in _hints(function).items():
                if name in given and not fits(given[name], hint):
                    raise refusal(name, given[name], hint) from None
            raise

    return call


class _Names(dict[str, Any]):
    """What annotations name; what is imported for type checkers only is known by its name."""

    def __missing__(self, name: str) -> Any:
        return vars(builtins).get(name) or ForwardRef(name)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, as far as they can be read."""
    names = _Names(function.__globals__)
    found = {}
    for name, hint in function.__annotations__.items():
        try:
            found[name] = eval(hint, {}, names) if isinstance(hint, str) else hint
        except Exception:  # one that only a type checker understands
            continue
    return {name: hint for name, hint in found.items() if name != "return"}
