"""docs/how-to/contexts.md: its commands are right, and its environment is one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from agentrecipes.analysis.query import query
from agentrecipes.components import build
from agentrecipes.recipe.load import load
from agentrecipes.rollout.play import play

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "contexts.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
COMMANDS = [shlex.split(line)[1:] for line in BLOCKS["sh"].splitlines()]


def test_its_recipe_is_played_by_the_oracle_and_takes_its_overrides():
    (_, recipe, *_), (_, same, *overrides), _ = COMMANDS
    assert recipe == same
    stage = load(ROOT / recipe).stage(1)
    task = stage.environment.tasks("train")[0]
    played = play(stage.environment, task, agent=stage.environment.oracle)
    assert played.answer in played.view.task.gold_answers
    changed = load(ROOT / recipe, overrides).stage(1).environment
    assert (changed.context.policy, changed.context.turns) == ("window", 2)


def test_its_environment_halts_as_tc_rag_does():
    world = build("environment", yaml.safe_load(BLOCKS["yaml"])["environment"])
    assert list(world.rules(None)) == []
    assert world.halting.measured((-0.5, -0.5)) == 1.0
    assert (world.halting.least_actions, world.halting.uncertainty) == (4, 1.2)


def test_its_query_is_one(tmp_path):
    found = query(COMMANDS[2][1], tmp_path)
    assert list(found.columns) == ["iteration", "turns", "edited"]


@pytest.mark.parametrize("policy", ["concatenate", "window", "stack"])
def test_it_names_every_policy(policy):
    assert f"policy: {policy}" in PAGE
