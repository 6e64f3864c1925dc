"""The one door to ``bfcl_eval``: the official checker of BFCL, without what it would bring along.

The package depends on the client of every vendor that it can call; its checker of Python functions
needs the standard library alone, but for a table of those clients, which is stood in for here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import ModuleType, SimpleNamespace
from typing import Any

from agentrecipes.errors import MissingExtra
from agentrecipes.records import Call

PACKAGE = "bfcl-eval==2026.3.23"
TABLE = "bfcl_eval.constants.model_config"


class _AnyModel(dict[str, Any]):
    """Whatever model is asked for writes function names as they are, dots included."""

    def __missing__(self, key: str) -> SimpleNamespace:
        return SimpleNamespace(underscore_to_dot=False)


@lru_cache
def checker() -> tuple[Any, Any]:
    """Its ``ast_checker``, and the name that it has for Python.

    Raises:
        MissingExtra: the package is not installed.
    """
    known = sys.modules.get(TABLE)
    table = ModuleType(TABLE)
    table.MODEL_CONFIG_MAPPING = _AnyModel()  # type: ignore[attr-defined]
    sys.modules[TABLE] = table
    try:
        from bfcl_eval.constants.enums import Language
        from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker
    except ImportError as error:
        raise MissingExtra(
            f"BFCL's checker cannot be imported ({error}). Install it without what it brings "
            f"along: pip install --no-deps {PACKAGE}"
        ) from error
    finally:
        sys.modules.pop(TABLE)
        if known is not None:
            sys.modules[TABLE] = known
    return ast_checker, Language.PYTHON


def accepts(
    category: str,
    functions: Sequence[Mapping[str, Any]],
    *,
    calls: Sequence[Call],
    gold: Sequence[Mapping[str, Any]],
) -> bool:
    """The official verdict; calls that its checker breaks off at are not accepted.

    Raises:
        MissingExtra: the package is not installed.
    """
    check, python = checker()
    said = [{call.tool: dict(call.arguments)} for call in calls]
    try:
        told = check(list(functions), said, list(gold), python, category, "any")
    except (AttributeError, IndexError, KeyError, TypeError):  # values of a type it never meets
        return False
    return bool(told["valid"])
