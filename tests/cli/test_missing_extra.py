"""A missing library of the extra envs is one line with the command that installs it, and exit 3."""

from __future__ import annotations

import subprocess
import sys

import pytest

PARTS = [
    ("environment", {"name": "textworld"}, "environment: textworld needs TextWorld"),
    ("environment", {"name": "gymnasium"}, "environment: gymnasium needs Gymnasium"),
    ("dataset", {"name": "reasoning_gym"}, "dataset: reasoning_gym needs Reasoning Gym"),
    ("reward", {"name": "reasoning_gym"}, "rewards: reasoning_gym needs Reasoning Gym"),
    ("reward", {"name": "math_verify"}, "rewards: math_verify needs Math-Verify"),
]
HIDDEN = ("textworld", "gymnasium", "reasoning_gym", "math_verify")
PROGRAM = f"""
import sys
sys.modules.update(dict.fromkeys({HIDDEN!r}))
from agentrecipes.components import build
from agentrecipes.errors import MissingExtra
for kind, fields, _ in {PARTS!r}:
    try:
        build(kind, fields).require()
    except MissingExtra as error:
        print(error)
from agentrecipes.cli.main import main
sys.argv = ["agentrecipes", "env", "textworld"]
sys.exit(main())
"""


@pytest.fixture(scope="module")
def told():
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )


def test_each_part_names_its_library_and_the_command(told):
    lines = told.stdout.splitlines()
    assert len(lines) == len(PARTS)
    for line, (_, _, begins) in zip(lines, PARTS, strict=True):
        assert line.startswith(begins)
        assert line.endswith("Install it with: pip install 'agentrecipes[envs]'.")


def test_the_command_line_ends_with_three_and_one_line(told):
    assert told.returncode == 3
    assert told.stderr.splitlines() == [
        "error: environment: textworld needs TextWorld (import of textworld halted; None in "
        "sys.modules). Install it with: pip install 'agentrecipes[envs]'."
    ]
