"""Every study that is shipped passes its check, and the how-to's own file is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentrecipes.sweeps.load import check

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "sweeps").glob("*.yaml"))
HOW_TO = (ROOT / "docs" / "how-to" / "sweeps.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_study_passes_its_check(path):
    sweep, problems = check(path)
    assert problems == []
    assert sweep is not None
    assert sweep.name == path.stem
    assert f"agentrecipes sweep sweeps/{path.name}" in path.read_text(encoding="utf-8")


def test_two_studies_are_shipped():
    assert len(SHIPPED) >= 2


def test_the_file_of_the_how_to_passes_its_check(tmp_path):
    [text] = re.findall(r"```yaml\n(.*?)```", HOW_TO, re.DOTALL)
    path = tmp_path / "rates.yaml"
    path.write_text(text.replace("recipes/rag_r1.yaml", "rag_r1"))
    sweep, problems = check(path)
    assert [problem for problem in problems if problem.severity == "error"] == []
    assert sweep.fields.seeds == 2
    named = set(re.findall(r"`(sweeps/\w+\.yaml)`", HOW_TO))
    assert all((ROOT / name).is_file() for name in named)
