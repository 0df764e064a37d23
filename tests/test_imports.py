"""Imports point along the flow: packages form no cycle, and the reports are imported by few.

Imports inside of functions count too; those for type checking only do not.
"""

import ast
import importlib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "logeval"


def draws(node):
    """Whether a method of a result hands on to the function in the reports that draws it."""
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("logeval.reports.")


def imported(tree):
    """The modules that a file imports, wherever in it; but for thin methods that draw."""
    unseen = [tree]
    while unseen:
        node = unseen.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        inside = isinstance(node, ast.FunctionDef)
        unseen += [n for n in ast.iter_child_nodes(node) if not (inside and draws(n))]
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def edges():
    """(importing, imported) parts of logeval: its packages and the files at its top."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE).with_suffix("").parts[0]
        for module in imported(ast.parse(path.read_text())):
            top, _, rest = module.partition(".")
            if top == "logeval" and rest and rest.split(".")[0] != part:
                found.add((part, rest.split(".")[0]))
    return found


def test_packages_form_no_cycle():
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    graph = {package: set() for package in packages}
    for part, other in edges():
        if {part, other} <= packages:
            graph[part].add(other)
    tuple(TopologicalSorter(graph).static_order())  # raises, with the cycle


def test_only_commands_and_pipeline_import_reports():
    importing = {part for part, other in edges() if other == "reports"}
    assert importing <= {"__init__", "commands", "pipeline"}


@pytest.mark.parametrize(
    "name", sorted(p.stem for p in (PACKAGE.parent / "benchmarks").glob("*.py"))
)
def test_every_benchmark_can_be_imported(name):
    importlib.import_module(f"benchmarks.{name}")
