"""Recipes with judges: where caches and prompts lie, what the lock holds, what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentrecipes.recipe.load import check, load
from agentrecipes.recipe.lock import compare, lock

RECIPE = """\
name: small
model: tiny
environment: {name: search, dataset: {name: world, train: 20, dev: 10, test: 10}}
rewards: REWARDS
algorithm: grpo
iterations: 100
"""
JUDGE = "{name: openai, model: m, base_url: 'http://127.0.0.1:8000/v1'}"


@pytest.fixture
def write(tmp_path):
    """A recipe file with these rewards."""

    def to_file(rewards: str) -> Path:
        path = tmp_path / "small.yaml"
        path.write_text(RECIPE.replace("REWARDS", rewards))
        return path

    return to_file


def test_a_cache_lies_beside_the_recipe_and_need_not_be_there_yet(write, tmp_path):
    rewards = f"[{{name: judge, cache: kept, judge: {JUDGE.replace('}', ', cache: own}')}}}]"
    recipe = load(write(rewards))
    [entry] = recipe.stages[0].rewards
    assert entry.cache == str(tmp_path / "kept")
    assert entry.part.judge.cache == str(tmp_path / "own")
    assert recipe.data["stages"][0]["rewards"][0]["cache"] == "kept"
    assert not any("kept" in name for name in lock(recipe)["inputs"])
    again = tmp_path / "run" / "recipe.yaml"
    again.parent.mkdir()
    again.write_text(recipe.to_yaml())
    assert load(again, folder=recipe.folder) == recipe
    assert load(again, folder=recipe.folder).stages == recipe.stages


def test_a_cache_elsewhere_must_be_typed(write, tmp_path):
    path = write(f"[{{name: judge, cache: ../kept, judge: {JUDGE}}}]")
    _, [problem] = check(path)
    assert (problem.code, problem.path) == ("outside_folder", "rewards[0].cache")
    recipe = load(path, [f"rewards[0].cache={tmp_path / 'there'}"])
    assert recipe.stages[0].rewards[0].cache == str(tmp_path / "there")


def test_the_lock_holds_the_text_of_every_prompt(write, tmp_path):
    (tmp_path / "strict.txt").write_text("Is {answer} right?")
    rewards = f"[{{name: judge, prompt: strict.txt, judge: {JUDGE}}}]"
    before = lock(load(write(rewards)))
    assert load(write(rewards)).stages[0].rewards[0].part.template == "Is {answer} right?"
    (tmp_path / "strict.txt").write_text("Is {answer} quite right?")
    after = lock(load(write(rewards)))
    assert compare(before, after) == ["file strict.txt", "prompt grpo.rewards[0]"]
    usual = lock(load(write(f"[{{name: judge, judge: {JUDGE}}}]")))
    assert "prompt grpo.rewards[0]" in usual["inputs"]


def test_a_preset_takes_a_judge_and_a_length_and_nothing_else(write):
    recipe = load(write("{name: atom_searcher, judge: {name: openai, model: mine}, over: 40}"))
    gate = recipe.stages[0].rewards[0].part
    mix = gate.then[0].part
    assert mix.of.judge.model == "mine"
    assert recipe.stage(0, 20).rewards[0].part.then[0].part.share == 0.25
    _, problems = check(write("{name: arpo, judge: {name: openai, model: mine}, ower: 40}"))
    found = [(each.code, each.path, each.line) for each in problems]
    assert found == [("no_effect", "rewards.judge", 4), ("unknown_key", "rewards.ower", 4)]


def test_a_field_that_a_prompt_shows_is_looked_for_in_the_data(write):
    rewards = f"[{{name: judge, prompt: 'Is {{answer}} like {{refrence}}?', judge: {JUDGE}}}]"
    _, [problem] = check(write(rewards))
    assert (problem.code, problem.path) == ("missing_field", "rewards[0]")
    assert "judge reads 'refrence'" in problem.message


def test_the_page_on_judges_shows_recipes_that_are_right(write, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "judges.md").read_text("utf-8")
    [block] = re.findall(r"```yaml\nrewards:\n(.*?)```", page, re.DOTALL)
    (tmp_path / "judge.jsonl").write_text("")
    recipe, problems = check(write(f"\n{block}"))
    assert problems == []
    assert [entry.label for entry in recipe.stages[0].rewards] == ["judge", "rubric"]
