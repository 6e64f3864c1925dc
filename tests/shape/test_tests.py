"""The tests can fail: they assert, with tolerances that mean something, on real objects."""

from __future__ import annotations

import ast

import pytest
from tests.shape.source import TESTS, functions, imports, label, tree

LOOSEST = 1e-2
TOLERANCES = {"rtol", "atol", "rel", "abs", "rel_tol", "abs_tol"}
CHECKS = ("assert", "raises", "warns", "fail", "check_", "gradcheck", "expect")


def numbers(path):
    """Name and value of every tolerance that a file writes as a number."""
    for node in ast.walk(tree(path)):
        pairs = []
        if isinstance(node, ast.Call):
            pairs = [(keyword.arg, keyword.value) for keyword in node.keywords]
        elif isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            pairs = list(zip(keys, node.values, strict=True))
        for name, value in pairs:
            is_number = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
            if name in TOLERANCES and is_number:
                yield name, value.value


@pytest.mark.parametrize("path", TESTS, ids=label)
def test_no_tolerance_is_loose_enough_to_delete_a_test(path):
    assert [(name, value) for name, value in numbers(path) if value > LOOSEST] == []


def can_fail(function, known=()):
    """Whether a test states anything, itself or through a function in `known`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in known or any(word in name for word in CHECKS):
                return True
    return False


def stating(path):
    """Names in a file that state something when called: its own functions, and imports renamed."""
    renamed = {
        name.asname
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.asname and any(word in name.name for word in CHECKS)
    }
    return renamed | {function.name for function in functions(path) if can_fail(function, renamed)}


@pytest.mark.parametrize("path", [p for p in TESTS if p.stem.startswith("test_")], ids=label)
def test_every_test_states_something(path):
    tests = [function for function in functions(path) if function.name.startswith("test_")]
    known = stating(path)
    assert [function.name for function in tests if not can_fail(function, known)] == []


@pytest.mark.parametrize("path", TESTS, ids=label)
def test_no_test_replaces_the_real_thing_by_a_mock(path):
    roots = {name for name in imports(path) if name.startswith(("unittest.mock", "mock"))}
    assert roots == set()


def test_the_lint_itself_sees_a_loose_tolerance(tmp_path):
    path = tmp_path / "test_loose.py"
    path.write_text("def test_x():\n    close(a, b, rtol=1e6, atol=0)\n")
    assert list(numbers(path)) == [("rtol", 1e6), ("atol", 0)]
    [function] = functions(path)
    assert not can_fail(function)
