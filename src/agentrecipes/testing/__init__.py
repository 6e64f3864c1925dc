"""Doors for outside checks, and conformance suites for parts in and outside this package.

The names are loaded when first asked for: the doors need torch, the suites need pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "evaluate_algorithm": "algorithm_door",
    "evaluate_packing": "packing_door",
    "AlgorithmSuite": "algorithm_suite",
    "CurriculumSuite": "suites",
    "DatasetSuite": "suites",
    "EnvironmentSuite": "suites",
    "ProtocolSuite": "text_suites",
    "RetrieverSuite": "text_suites",
    "RewardSuite": "suites",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name.endswith("Suite") and name[:-5].isalpha():
        home = f"{__name__}.{name[:-5].lower()}_suite"
        try:
            return getattr(import_module(home), name)
        except ModuleNotFoundError as error:
            if error.name != home:
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
