"""The package's source as data: modules, what they import, their functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "agentrecipes"
MODULES = sorted(SRC.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def label(path: Path) -> str:
    """A path as a test's id."""
    return path.relative_to(ROOT).as_posix()


@lru_cache
def tree(path: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def module_name(path: Path) -> str:
    """``src/agentrecipes/cli/main.py`` → ``agentrecipes.cli.main``."""
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(path) for path in MODULES}


def imports(path: Path, *, types: bool = True) -> set[str]:
    """Dotted names of all modules that a file imports anywhere; `types`: even for types only."""
    skipped = set() if types else _type_only(tree(path))
    found = set()
    for node in ast.walk(tree(path)):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            inner = {f"{node.module}.{name.name}" for name in node.names}
            found |= inner & NAMES or {node.module}
        elif isinstance(node, ast.Call):
            found |= _by_name(node)
    return found


def _type_only(module: ast.Module) -> set[int]:
    blocks = [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    ]
    return {id(inner) for block in blocks for line in block.body for inner in ast.walk(line)}


def _by_name(node: ast.Call) -> set[str]:
    """``import_module("x")`` and ``lazy_loader.load("x")`` import as well."""
    function = ast.unparse(node.func).rpartition(".")
    is_import = function[2] == "import_module" or (function[2] == "load" and "lazy" in function[0])
    first = node.args[0] if node.args else None
    if is_import and isinstance(first, ast.Constant) and isinstance(first.value, str):
        return {first.value}
    return set()


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of a file."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` to the end, docstring not counted."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines
