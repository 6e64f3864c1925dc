"""Imports go downwards only, nothing is imported in a circle, and each library has one door."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from tests.shape.source import MODULES, SRC, imports, label, module_name

LAYERS = (
    ("errors", "records", "components", "schedules"),
    ("numerics", "recipe"),
    (
        *("algorithms", "rewards", "judges", "curricula", "demonstrations", "datasets"),
        *("environments", "protocols", "tools", "retrievers"),
    ),
    ("models",),
    ("engines", "sampling", "replay"),
    ("rollout", "tracking", "health"),
    ("training",),
    ("compile", "experiment"),
    ("serving", "sweeps", "registry", "analysis"),
    ("cli",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
SIDEWAYS = {  # on one level, who may import whom
    "environments": {"protocols", "tools", "retrievers", "datasets"},
    "demonstrations": {"environments"},
    "rewards": {"judges"},
    "experiment": {"compile"},
    "components": {"errors", "schedules"},
    "records": {"errors"},
    "schedules": {"errors"},
}
ANYTHING = {"__init__", "testing"}  # the root's own file, and the suites
DOORS = {  # library → the paths that may import it
    "vllm": ("engines/",),
    "deepspeed": ("training/",),
    "lightning": ("training/", "compile.py"),
    "mlflow": ("tracking/mlflow/",),
    "duckdb": ("analysis/query.py",),
    "optuna": ("sweeps/",),
    "typer": ("cli/",),
    "rich": ("cli/",),
    "omegaconf": ("recipe/",),
    "yaml": ("recipe/",),
    "ragas": ("rewards/",),
    "mcp": ("tools/",),
    "bfcl_eval": ("rewards/",),
    "textworld": ("environments/textworld.py",),
    "gymnasium": ("environments/gymnasium.py",),
    "reasoning_gym": ("datasets/reasoning_gym.py", "rewards/reasoning_gym.py"),
    "math_verify": ("rewards/equivalence_worker.py",),
}


def layer(path: Path) -> str:
    """The folder, or the file at the top, that a module belongs to."""
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_a_module_imports_only_what_lies_below_it(path):
    own = layer(path)
    if own in ANYTHING:
        pytest.skip("may import everything")
    assert own in LEVEL, f"{own!r} has no place in the table of layers"
    wrong = []
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "agentrecipes" or len(parts) == 1 or parts[1] == own:
            continue
        allowed = parts[1] in SIDEWAYS.get(own, ()) or LEVEL.get(parts[1], 99) < LEVEL[own]
        wrong += [] if allowed else [name]
    assert wrong == []


def test_no_module_imports_itself_through_others():
    known = {module_name(path) for path in MODULES}
    graph = {module_name(path): imports(path, types=False) & known for path in MODULES}
    graph = {name: targets - {name, "agentrecipes"} for name, targets in graph.items()}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"imports in a circle: {' → '.join(error.args[1])}")
    assert set(order) == known


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_a_library_is_imported_only_through_its_door(path):
    inside = path.relative_to(SRC).as_posix()
    roots = {name.partition(".")[0] for name in imports(path)}
    wrong = [name for name in roots & set(DOORS) if not inside.startswith(DOORS[name])]
    assert wrong == []


@pytest.mark.parametrize("path", [p for p in MODULES if p.stem == "__init__"], ids=label)
def test_only_the_root_and_the_suites_have_a_package_file_with_text(path):
    inside = path.relative_to(SRC).as_posix()
    assert inside in ("__init__.py", "testing/__init__.py") or path.read_text() == ""
