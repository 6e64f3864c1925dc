"""The page on curricula names all of them, and shows a command that runs."""

from __future__ import annotations

import re
from pathlib import Path

from agentrecipes.cli.main import COMMANDS
from agentrecipes.components import names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "curricula.md").read_text(encoding="utf-8")


def test_the_table_holds_every_curriculum_once():
    assert sorted(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == names("curriculum")


def test_its_command_is_the_readme_s_which_a_test_runs():
    [line] = re.findall(r"^    (agentrecipes .+)$", PAGE, re.MULTILINE)
    assert line.split()[1] in COMMANDS
    assert f"| `{line}` |" in (ROOT / "README.md").read_text(encoding="utf-8")
