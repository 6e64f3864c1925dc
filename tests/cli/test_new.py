from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path


def test_a_starter_recipe_checks_as_it_is(command):
    done = command("new", "my_agent")
    assert done.code == 0
    assert done.out.splitlines() == ["wrote my_agent.yaml", "next: agentrecipes run my_agent.yaml"]
    checked = command("check", "my_agent.yaml")
    assert (checked.code, checked.err) == (0, "")


def test_a_plug_in_names_its_part_after_its_file_and_passes_its_own_test(command):
    assert command("new", "my-agent", "--plugin", "--json").code == 0
    project = tomllib.loads(Path("my-agent/pyproject.toml").read_text())
    [(name, target)] = project["project"]["entry-points"]["agentrecipes.reward"].items()
    module, _, class_name = target.partition(":")
    source = Path("my-agent/src", *module.split(".")).with_suffix(".py")
    assert source.stem == name
    assert f"class {class_name}(" in source.read_text()
    # Not installed here, so the part is imported by hand where its entry point would be read.
    test = next(Path("my-agent/tests").glob("test_*.py"))
    run = f"import {module}, pytest; pytest.main(['-q', '-p', 'no:randomly', {str(test)!r}])"
    done = subprocess.run(
        [sys.executable, "-c", run],
        env={"PYTHONPATH": "my-agent/src", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_nothing_that_is_there_is_overwritten(command):
    Path("mine.yaml").write_text("mine")
    done = command("new", "mine")
    assert done.code == 2
    assert "exists already" in done.err
    assert Path("mine.yaml").read_text() == "mine"


def test_a_name_is_made_of_small_letters(command):
    done = command("new", "../Mine")
    assert (done.code, done.out) == (2, "")
    assert "is no name" in done.err
