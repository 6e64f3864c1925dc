from __future__ import annotations

import pytest
from tests.cli.snapshot import check_snapshot

from agentrecipes.cli.output import report_error
from agentrecipes.components import PluginFailed
from agentrecipes.errors import (
    AgentRecipesError,
    CheckFailed,
    EngineError,
    MissingExtra,
    Problem,
    RecipeError,
    RunStopped,
    TaskFailed,
)
from agentrecipes.sweeps.storage import StorageLost

ERRORS = [
    AgentRecipesError("tables/runs.parquet: the file is damaged; remove it to go on"),
    RecipeError([Problem("unknown_key", "rollout.task", "no field is called 'task'", line=7)]),
    MissingExtra("vllm is not installed: pip install 'agentrecipes[vllm]'"),
    CheckFailed("recipe.lock: torch is '2.13.1', but '2.13.0' was locked"),
    TaskFailed("search: no reply within 30 seconds"),
    EngineError("vllm: the server is gone"),
    RunStopped("no_signal: the sampled score 0.01 is below 0.05"),
    StorageLost("sweeps.db: the study's storage is gone"),
    PluginFailed("the reward 'x' of 'x:X' cannot be imported: ValueError: no"),
]


def every_class(cls=AgentRecipesError):
    """An error class and all that inherit from it."""
    return {cls}.union(*(every_class(child) for child in cls.__subclasses__()))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_shown_as_stored(error, capsys):
    code = report_error(error, as_json=False)
    out, err = capsys.readouterr()
    assert out == ""
    check_snapshot(f"error_{type(error).__name__}", f"{err}exit {code}\n")


def test_every_error_class_is_among_the_stored_ones():
    ours = {cls for cls in every_class() if cls.__module__.startswith("agentrecipes.")}
    assert ours == {type(error) for error in ERRORS}


def test_exit_codes_are_the_promised_ones():
    codes = {type(error).__name__: error.exit_code for error in ERRORS}
    assert codes == {
        "AgentRecipesError": 1,
        "RecipeError": 2,
        "MissingExtra": 3,
        "CheckFailed": 4,
        "TaskFailed": 1,
        "EngineError": 1,
        "RunStopped": 1,
        "StorageLost": 1,
        "PluginFailed": 2,
    }
