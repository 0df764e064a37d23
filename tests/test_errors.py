"""Errors name what is wrong and what was probably meant."""

import ast
import re
from pathlib import Path

import logeval
from logeval.errors import unknown_names

LIBRARY = Path(logeval.__file__).parent


def test_unknown_names_are_reported_at_once_with_the_closest():
    error = unknown_names("policy", ["dcmklucb", "zzz"], ["dcmKL-UCB", "RankedExp3"])
    assert str(error).startswith("unknown policy: 'dcmklucb' (did you mean dcmKL-UCB?), 'zzz'; ")


def flags(source):
    """The flags in the messages that a file raises, but for those of a whole command in `...`."""
    raised = [node.exc for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Raise)]
    parts = [part for error in raised if error is not None for part in ast.walk(error)]
    inside = {id(v) for p in parts if isinstance(p, ast.JoinedStr) for v in ast.walk(p)}
    texts = [
        "".join(v.value if isinstance(v, ast.Constant) else "{}" for v in p.values)
        if isinstance(p, ast.JoinedStr)
        else p.value
        for p in parts
        if isinstance(p, ast.JoinedStr)
        or (isinstance(p, ast.Constant) and isinstance(p.value, str) and id(p) not in inside)
    ]
    return [f for text in texts for f in re.findall(r"--[a-z][a-z-]*", re.sub("`.*?`", "", text))]


def test_errors_of_the_library_name_arguments_and_not_flags():
    assert flags("raise E(f'give --log, or `logeval {x} --out y`', '--a')") == ["--log", "--a"]
    files = [f for f in LIBRARY.rglob("*.py") if f.parent.name != "commands" and f.stem != "cli"]
    assert len(files) > 100
    assert {f.name: found for f in files if (found := flags(f.read_text()))} == {}
