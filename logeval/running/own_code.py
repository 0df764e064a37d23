"""Code of the user's own: classes by name, ``module:Class``, and the checksum of their code.

By it, runs of an edited policy and fits of an edited model are not taken for those of the new one.
The code is the file in which the class is defined, those of its bases, and what these files import
from beside them (their folder, package, or anywhere else that is not installed), and so on. logeval
itself and the standard library are left out, and of an installed package all but the class's own.
What a file imports is read off its text: a name that is put together when it runs is not seen.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from logeval.errors import LogevalError

LEFT_OUT = {"logeval", *sys.stdlib_module_names}
UNKNOWN = "not known: "  # and a number that is never the same


def imported(kind: str, name: str) -> Any:
    """``module:Class``, from the current folder or installed."""
    module, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.append("")  # the current folder; last, so that it hides no installed module
    try:
        found = importlib.import_module(module)
    except Exception as error:  # whatever the user's module raises
        raise LogevalError(f"{kind} {name}: cannot import {module} ({error})") from None
    if attribute and not hasattr(found, attribute):
        raise LogevalError(f"{kind} {name}: there is no {attribute} in {module}")
    return getattr(found, attribute) if attribute else found


def name_of(cls: type) -> str:
    """``module:Class``; a class of a script or notebook has its plain name."""
    name = cls.__qualname__
    return name if cls.__module__ == "__main__" else f"{cls.__module__}:{name}"


def is_built_in(cls: type) -> bool:
    """Whether a class belongs to logeval."""
    return cls.__module__.partition(".")[0] == "logeval"


def source_checksum(cls: type) -> str:
    """SHA-256 of the code of a class; of one that is in no file, something never seen before."""
    names = [base.__module__ for base in cls.__mro__ if _top(base.__module__) not in LEFT_OUT]
    files = {name: _file(name, None) for name in names}
    if any(file is None for file in files.values()):
        return UNKNOWN + secrets.token_hex(8)
    found: dict[str, Path] = {}
    todo = [(name, file) for name, file in files.items() if file is not None]
    while todo:
        name, file = todo.pop()
        if name not in found:
            found[name] = file
            if not _installed(file) or _top(name) == _top(cls.__module__):
                todo += _beside(name, file)
    digest = hashlib.sha256()
    for name, file in sorted(found.items()):
        digest.update(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _top(name: str) -> str:
    return name.partition(".")[0]


def _installed(file: Path) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(file.parts)


def _beside(name: str, file: Path) -> Iterator[tuple[str, Path]]:
    """What a module imports, except for installed packages other than its own."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    folder = file.parent
    for _ in package.split(".") if package else ():
        folder = folder.parent
    for imported in _imports(file, package):
        parts = imported.split(".")
        for length in range(1, len(parts) + 1):
            module = ".".join(parts[:length])
            there = None if _top(module) in LEFT_OUT else _file(module, folder)
            if there and (not _installed(there) or _top(module) == _top(name)):
                yield module, there


def _imports(file: Path, package: str) -> Iterator[str]:
    """The names that a file imports, in full; the last part may be no module but its content."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = [*(above if node.level else []), *([node.module] if node.module else [])]
            yield from (".".join([*filter(None, start), alias.name]) for alias in node.names)


def _file(name: str, folder: Path | None) -> Path | None:
    """The source of a module: where it was loaded from, or, if it was not yet, below a folder."""
    loaded = getattr(sys.modules.get(name), "__file__", None)
    tried = [Path(loaded)] if loaded else []
    if folder and not loaded:
        stem = folder.joinpath(*name.split("."))
        tried = [stem.with_name(f"{stem.name}.py"), stem / "__init__.py"]
    return next((file for file in tried if file.suffix == ".py" and file.is_file()), None)
