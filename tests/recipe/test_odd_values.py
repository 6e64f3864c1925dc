"""Whatever stands in a recipe, its author gets problems and never a traceback."""

from __future__ import annotations

import pytest
from tests.recipe.conftest import TWO

from agentrecipes.recipe.load import check

FIELDS = (
    "name",
    "seed",
    "model",
    "environment",
    "environment.dataset",
    "environment.name",
    "rewards",
    "rewards[0]",
    "rollout",
    "rollout.tasks",
    "rollout.engine",
    "optimizer.betas",
    "curriculum",
    "tripwires",
    "tests",
    "requires",
    "stages.copy",
    "stages.copy.algorithm",
    "stages.try.rewards",
    "stages.try.iterations",
)
ODD = (
    "null",
    "[]",
    "{}",
    "x",
    "-1",
    "1.5",
    "true",
    "[null]",
    "[[1]]",
    "{name: x}",
    "{name: [a]}",
    "{name: {}}",
    "{a: {b: 1}}",
    "{schedule: [x]}",
    "{schedule: linear}",
    "{schedule: linear, from: 1, to: x, over: 2}",
    "{schedule: steps, values: [{a: 1}, null], every: 1}",
    "'../x'",
    "x.md",
)


@pytest.mark.parametrize("field", FIELDS)
def test_an_odd_value_is_either_taken_or_told_with_what_to_write(write, field):
    path = write(TWO)
    for value in ODD:
        recipe, problems = check(path, [f"{field}={value}"])
        errors = [problem for problem in problems if problem.severity == "error"]
        assert (recipe is None) == bool(errors)
        for problem in problems:
            assert problem.message
            assert problem.suggestion, (value, str(problem))
            assert problem.path
