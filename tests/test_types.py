"""Every function is annotated, except kernels, whose types numba infers."""

import ast
from pathlib import Path

import logeval

ROOT = Path(logeval.__file__).parent.parent
FILES = sorted(f for name in ("logeval", "reproduction") for f in (ROOT / name).rglob("*.py"))


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any("njit" in ast.unparse(d) for d in function.decorator_list)


def _untyped(tree: ast.AST, inside_kernel: bool = False) -> list[str]:
    found = []
    for node in ast.iter_child_nodes(tree):
        kernel = inside_kernel
        if isinstance(node, ast.FunctionDef):
            kernel = inside_kernel or _is_kernel(node)
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            named = [a for a in arguments if a.arg not in ("self", "cls")]
            if not kernel and (node.returns is None or any(a.annotation is None for a in named)):
                found.append(f"{node.name} (line {node.lineno})")
        found += _untyped(node, kernel)
    return found


def test_everything_but_kernels_is_annotated():
    assert len(FILES) > 100
    assert not {file: found for file in FILES if (found := _untyped(ast.parse(file.read_text())))}
